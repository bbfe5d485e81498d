//! `context`, `actor`, `flow`, and jobs of a context.

use serde_json::{Value, json};

use super::Far;
use crate::common::{Ground, eventually, on_both};

/// Context 1 of actor 1, whose keys the users have.
fn far(ground: &Ground) -> Far<'_> {
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
        let text = far.ok(&["flow", "status", &second]).stdout;
        assert!(text.contains("  finished  one"), "{text}");
        let lines = far.ok(&["flow", "logs", &first]).stdout;
        assert_eq!(lines, "one: hello\n");
        let retried: Value = changed(&["flow", "retry", &second, "--from", "ask", "--detach"]);
        assert_eq!(retried["outcome"], "retrying");
        asks(&second);
        far.ok(&["flow", "reject", &second, "ask"]);
        far.run("admin", &["flow", "status", &second, "--wait"])
            .exits(1);
        assert_eq!(changed(&["flow", "delete", &second])["outcome"], "deleted");
        far.run("admin", &["flow", "status", &second]).exits(5);
        worker.stop();
        far.stop();
    });
}
