//! Flows by the clock from the command: schedules of flows, and deployed flows.

use crate::common::{Done, Ground, eventually, json};

const TICK: &str = "
flow: tick
inputs: {day: mon}
jobs: {a: {script: 'parse_json(INPUT).day + ENV.MESHWORK_SLOT', type: osis, with: {day: '{{inputs.day}}'}}}
";

fn refused(done: &Done, why: &str) {
    assert_ne!(done.code, Some(0), "{}", done.stdout);
    assert!(done.stderr.contains(why), "{}", done.stderr);
}

#[test]
fn a_schedule_starts_flows_and_is_listed_with_those_of_jobs() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    ground.file("tick.yaml", TICK);
    ground.file("job.rhai", "1\n");
    let add = ["schedule", "add", "often", "--every", "1s", "tick.yaml"];
    let more = ["--set", "day=tue", "--overlap", "allow"];
    let added = ground.run(&[&add[..], &more[..]].concat()).ok();
    assert!(
        added.stdout.starts_with("often added, next "),
        "{}",
        added.stdout
    );
    assert!(
        added
            .stderr
            .contains("no worker of context 1 runs the type `osis`")
    );
    refused(&ground.run(&add), "--replace");
    let nightly = ["schedule", "add", "nightly", "--cron", "0 2 * * *"];
    ground.run(&[&nightly[..], &["job.rhai"]].concat()).ok();
    let list = ground.run(&["schedule", "list", "--json"]).ok();
    let lines: Vec<_> = list.stdout.lines().map(json).collect();
    let shown: Vec<_> = lines.iter().map(|it| (&it["name"], &it["type"])).collect();
    assert_eq!(
        shown,
        [
            (&json("\"nightly\""), &json("\"osis\"")),
            (&json("\"often\""), &json("\"flow\""))
        ]
    );
    let worker = ground.worker(&["--context", "1", "--type", "osis"]);
    eventually("three flows have finished", || {
        let list = ground
            .run(&["flow", "list", "--name", "often", "--json"])
            .ok();
        let lines = list.stdout.lines().map(json);
        let finished = lines.filter(|it| it["status"] == "finished");
        (finished.count() >= 3).then_some(())
    });
    ground.run(&["schedule", "pause", "often"]).ok();
    drop(worker);
    let status = ground.run(&["flow", "status", "1", "--json"]).ok().json();
    let result = status["jobs"][0]["result"].as_str().unwrap();
    assert!(result.starts_with("tue20"), "{result}");
    let other = ground.run(&["flow", "list", "--name", "other"]).ok();
    assert!(!other.stdout.contains("finished"), "{}", other.stdout);
    let show = ground.run(&["schedule", "show", "often"]).ok();
    assert!(show.stdout.contains("paused"), "{}", show.stdout);
    ground.run(&["schedule", "remove", "often", "nightly"]).ok();
    let list = ground.run(&["schedule", "list", "--json"]).ok();
    assert_eq!(list.stdout, "");
}

#[test]
fn a_deployed_flow_runs_by_name_and_by_its_schedule() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let file = |schedule: &str, add: u32| {
        let text = format!(
            "flow: sum\n{schedule}inputs: {{n: 1}}\njobs: {{a: {{run: sum.rhai, with: {{n: '{{{{inputs.n}}}}'}}}}}}\n"
        );
        ground.file("sum.yaml", &text);
        ground.file("sum.rhai", format!("parse_json(INPUT).n + {add}\n"));
    };
    file("schedule: {cron: '0 2 * * *', with: {n: 5}}\n", 10);
    let deployed = ground.run(&["flow", "deploy", "sum.yaml"]).ok();
    assert!(
        deployed.stdout.starts_with("sum deployed, number 1, next "),
        "{}",
        deployed.stdout
    );
    // The script of the deployment counts, not that of the folder.
    ground.file("sum.rhai", "0\n");
    let run = ground.run(&["flow", "run", "sum", "--set", "n=2"]).ok();
    assert_eq!(run.stdout, "12\n");
    let id = ground.run(&["schedule", "run", "sum"]).ok();
    assert_eq!(id.stdout, "2\n");
    let retry = ground
        .run(&["flow", "list", "--name", "sum", "--json"])
        .ok();
    // No worker has the flow of the slot yet.
    assert_eq!(retry.stdout.lines().count(), 2, "{}", retry.stdout);
    file("", 20);
    ground.run(&["flow", "deploy", "sum.yaml"]).ok();
    let run = ground.run(&["flow", "run", "sum"]).ok();
    assert_eq!(run.stdout, "21\n");
    let list = ground.run(&["flow", "list", "--deployed", "--json"]).ok();
    let line = json(list.stdout.trim());
    assert_eq!(
        (&line["name"], &line["deployments"]),
        (&json("\"sum\""), &json("2"))
    );
    ground.run(&["schedule", "show", "sum"]).exits(5);
    ground.run(&["flow", "undeploy", "sum"]).ok();
    refused(
        &ground.run(&["flow", "run", "sum"]),
        "no flow of this name is deployed",
    );
    refused(
        &ground.run(&["flow", "undeploy", "sum"]),
        "no flow `sum` is deployed",
    );
}

#[test]
fn the_flow_of_a_slot_is_seen_before_a_worker_has_it() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let flow = "flow: f\nschedule: {cron: '0 0 * * *', overlap: allow}\njobs: {a: {script: '42', type: osis}}\n";
    ground.file("f.yaml", flow);
    ground.run(&["flow", "deploy", "f.yaml"]).ok();
    let shown = |command: &[&str]| ground.run(&[command, &["--json"]].concat()).ok().json();
    for id in ["1", "2"] {
        assert_eq!(
            ground.run(&["schedule", "run", "f"]).ok().stdout,
            format!("{id}\n")
        );
        let status = shown(&["flow", "status", id]);
        assert_eq!(
            (&status["status"], &status["jobs"][0]["status"]),
            (&json("\"dispatched\""), &json("\"waiting\""))
        );
    }
    let list = ground.run(&["flow", "list", "--json"]).ok();
    let ids: Vec<_> = list
        .stdout
        .lines()
        .map(|line| json(line)["id"].clone())
        .collect();
    assert_eq!(ids, [2, 1]);
    ground.run(&["flow", "cancel", "2"]).ok();
    let _worker = ground.worker(&["--context", "1", "--type", "osis"]);
    ground.run(&["flow", "status", "1", "--wait"]).ok();
    let cancelled = ground.run(&["flow", "status", "2", "--wait"]).exits(1);
    assert!(cancelled.stderr.contains("stopped"), "{}", cancelled.stderr);
}

#[test]
fn a_schedule_refuses_what_flows_do_not_have() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    ground.file("tick.yaml", TICK);
    ground.file("job.rhai", "1\n");
    let add = |more: &[&str]| {
        let first = ["schedule", "add", "s", "--every", "1m"];
        ground.run(&[&first[..], more].concat())
    };
    refused(
        &add(&["tick.yaml", "--retries", "3"]),
        "options of jobs are not for flows",
    );
    refused(&add(&["tick.yaml", "--set", "dya=tue"]), "no input `dya`");
    refused(
        &add(&["job.rhai", "--set", "day=tue"]),
        "--set gives inputs to flows",
    );
    refused(
        &ground.run(&["job", "enqueue", "tick.yaml"]),
        "run it with `meshwork flow run tick.yaml`",
    );
    let bad = "flow: f\nschedule: 'at noon'\njobs: {a: {script: '1', type: osis}}\n";
    ground.file("bad.yaml", bad);
    refused(&ground.run(&["flow", "check", "bad.yaml"]), "`schedule`: ");
    let needs =
        "flow: f\nschedule: '@daily'\ninputs: {x: null}\njobs: {a: {script: '1', type: osis}}\n";
    ground.file("needs.yaml", needs);
    refused(
        &ground.run(&["flow", "check", "needs.yaml"]),
        "needs the input `x`",
    );
}
