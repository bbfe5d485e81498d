//! `context`, `actor`, `flow`, and jobs of a context.

use serde_json::{Value, json};

use super::Far;
use crate::common::{Ground, eventually, on_both};

/// Context 1 of actor 1, whose keys the users have.
pub(super) fn far(ground: &Ground) -> Far<'_> {
    ground.run(&["context", "create"]).ok();
    let grant = ["actor", "grant-node", "1", "--scope", "admin"];
    ground.run(&grant).ok();
    Far::start_as(ground, &["--actor", "1"])
}

/// Returns the latest entry of the audit trail: its actor, and what it did.
fn noted(ground: &Ground) -> (String, String) {
    let trail = ground.run(&["context", "audit", "1", "--json"]).ok();
    let trail = trail.jsons();
    let text = |name: &str| trail.last().unwrap()[name].as_str().unwrap().to_owned();
    (text("who"), text("what"))
}

#[test]
fn context_and_actor() {
    on_both(|ground| {
        let far = far(ground);
        for args in [
            &["context", "list"][..],
            &["context", "show", "1"],
            &["actor", "list"],
            &["actor", "show", "1"],
        ] {
            far.same(args);
            let (there, here) = (far.ok(args).stdout, ground.run(args).ok().stdout);
            assert_eq!(there, here, "{args:?}");
        }
        let refused = far.run("admin", &["context", "grant", "1", "reader", "1"]);
        let refused = refused.exits(2).stderr;
        assert!(refused.contains("does not work with --api"), "{refused}");
        far.stop();
    });
}

#[test]
fn jobs_of_a_context() {
    on_both(|ground| {
        let far = far(ground);
        ground.file("a.rhai", "1");
        let id = far.ok(&[
            "job",
            "enqueue",
            "a.rhai",
            "--context",
            "1",
            "--delay",
            "1h",
        ]);
        let id = id.stdout.trim().to_owned();
        let by = "actor 1 api:admin".to_owned();
        assert_eq!(noted(ground), (by.clone(), "enqueue job".to_owned()));
        for args in [
            &["job", "list", "--context", "1"][..],
            &["job", "show", &id, "--context", "1"],
            &["queue", "list", "--context", "1"],
        ] {
            far.same(args);
        }
        far.refuses(&["job", "cancel", &id, "--context", "1"]);
        let open = ["job", "approve", "go", "--context", "1"];
        far.refuses(&open);
        for word in ["opened", "open"] {
            assert_eq!(far.ok(&open).stdout, format!("go {word}\n"));
        }
        assert_eq!(noted(ground), (by.clone(), "open gate".to_owned()));
        far.run("admin", &open[..3]).exits(2);
        for (args, what) in [
            (
                &["job", "run-now", &id, "--context", "1"][..],
                "run jobs now",
            ),
            (
                &["job", "cancel", "--all", "--yes", "--context", "1"],
                "cancel jobs",
            ),
            (&["queue", "pause", "osis", "--context", "1"], "pause queue"),
            (&["job", "delete", &id, "--context", "1"], "delete jobs"),
        ] {
            far.ok(args);
            assert_eq!(noted(ground), (by.clone(), what.to_owned()), "{args:?}");
        }
        far.stop();
    });
}

const FLOW: &str = "
flow: sums
jobs:
  one: {script: 'print(\"hello\"); 40 + 2', type: osis}
  ask: {approve: 'Go on?', needs: one}
  two: {script: '7', type: osis, needs: ask}
outputs: {answer: '{{ two.result }}'}
";

#[test]
fn flow() {
    on_both(|ground| {
        let far = far(ground);
        ground.file("f.yaml", FLOW);
        let worker = ground.worker(&["--context", "1", "--type", "osis"]);
        let submit = || {
            ground
                .run(&["flow", "submit", "f.yaml"])
                .ok()
                .stdout
                .trim()
                .to_owned()
        };
        let (first, second) = (submit(), submit());
        let asks = |id: &str| {
            eventually("the flow asks", || {
                let view = far.ok(&["flow", "status", id, "--json"]).json();
                view["jobs"][1]["question"].is_string().then_some(())
            });
        };
        asks(&first);
        asks(&second);
        far.refuses(&["flow", "cancel", &first]);
        let changed = |args: &[&str]| far.ok(&[args, &["--json"]].concat()).json();
        assert_eq!(
            changed(&["flow", "approve", &first]),
            json!({"id": first.parse::<u32>().unwrap(), "job": "ask", "outcome": "approved"})
        );
        let ended = far.ok(&["flow", "status", &first, "--wait"]);
        assert_eq!(ended.stdout, "7\n");
        assert_eq!(changed(&["flow", "cancel", &second])["outcome"], "stopping");
        far.run("admin", &["flow", "status", &second, "--wait"])
            .exits(1);
        far.run("admin", &["flow", "cancel", &second]).exits(1);
        for args in [&["flow", "list"][..], &["flow", "list", "--name", "sums"]] {
            far.same(args);
        }
        far.same(&["flow", "status", &first]);
        for args in [
            &["flow", "status", &second][..],
            &["flow", "graph", &second],
            &["flow", "graph", &second, "--format", "mermaid"],
        ] {
            let (there, here) = (far.ok(args).stdout, ground.run(args).ok().stdout);
            assert_eq!(there, here, "{args:?}");
        }
        let lines = far.ok(&["flow", "logs", &first]).stdout;
        assert_eq!(lines, "one: hello\n");
        let retried: Value = changed(&["flow", "retry", &second, "--from", "ask", "--detach"]);
        assert_eq!(retried["outcome"], "retrying");
        asks(&second);
        far.ok(&["flow", "reject", &second, "ask"]);
        far.run("admin", &["flow", "status", &second, "--wait"])
            .exits(1);
        far.refuses(&["flow", "delete", &second]);
        assert_eq!(changed(&["flow", "delete", &second])["outcome"], "deleted");
        far.run("admin", &["flow", "status", &second]).exits(5);
        worker.stop();
        far.stop();
    });
}

const NESTED: &str = "
flow: nested
inputs: {n: 1, who: ''}
jobs:
  add: {run: parts/add.rhai, with: {n: '{{ inputs.n }}', who: '{{ inputs.who }}'}}
outputs: {answer: '{{ add.result }}'}
";

#[test]
fn new_flows() {
    on_both(|ground| {
        let far = far(ground);
        let worker = ground.worker(&["--context", "1", "--type", "osis"]);
        ground.file(
            "f.yaml",
            FLOW.replace("needs: one", "needs: one, timeout: 1h"),
        );
        std::fs::create_dir(ground.path("parts")).unwrap();
        ground.file("parts/add.rhai", "6 * 7");
        ground.file("nested.yaml", NESTED);
        far.refuses(&["flow", "submit", "nested.yaml"]);
        let run = [
            "flow",
            "run",
            "nested.yaml",
            "--set",
            "n=2",
            "--set",
            "who=3",
        ];
        let ran = far.ok(&run);
        assert_eq!(ran.stdout, "42\n", "{}", ran.stderr);
        let submitted = far
            .ok(&[
                "flow",
                "submit",
                "nested.yaml",
                "--input",
                r#"{"n": 3, "who": "x"}"#,
                "--json",
            ])
            .json();
        assert_eq!(submitted["context"], 1);
        let id = submitted["id"].to_string();
        assert_eq!(far.ok(&["flow", "status", &id, "--wait"]).stdout, "42\n");
        for wrong in [
            &["--set", "n=x"][..],
            &["--set", "none=1"],
            &["--input", r#"{"n": "x"}"#],
        ] {
            far.run(
                "admin",
                &[&["flow", "submit", "nested.yaml"], wrong].concat(),
            )
            .exits(2);
        }
        far.run("admin", &["flow", "run", "nosuch"]).exits(5);
        // A deployed flow starts by its name.
        let deployed = far.ok(&["flow", "deploy", "nested.yaml", "--json"]).json();
        assert_eq!(
            deployed,
            json!({"name": "nested", "deployments": 1, "next_at": null})
        );
        assert_eq!(
            far.ok(&["flow", "deploy", "nested.yaml"]).stdout,
            "nested deployed, number 2\n"
        );
        far.same(&["flow", "list", "--deployed"]);
        assert_eq!(
            far.ok(&["flow", "run", "nested", "--set", "n=5", "--set", "who=9"])
                .stdout,
            "42\n"
        );
        far.ok(&["flow", "undeploy", "nested"]);
        far.run("admin", &["flow", "undeploy", "nested"]).exits(5);
        assert_eq!(far.same(&["flow", "list", "--deployed"]).len(), 0);
        worker.stop();
        far.stop();
    });
}
