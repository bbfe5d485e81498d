//! `meshwork flow run` and its like: from the file to the result, also where the process is killed.

use crate::common::{Ground, eventually, json};

const WORDS: &str = "
flow: words
inputs: {times: 2}
jobs:
  list:  {run: list.sh}
  count: {run: count.rhai, needs: list, foreach: list.result, with: {word: '{{item}}', times: '{{inputs.times}}'}}
  none:  {run: list.sh, needs: list, if: list.result.len() == 0}
  sum:   {script: 'let n = 0; for c in parse_json(INPUT).counts { n += c } n', type: osis, needs: [count, none], with: {counts: '{{count.result}}'}}
outputs: {sum: '{{sum.result}}', counts: '{{count.result}}'}
";

/// A ground with an actor's key of its own, and the flow with its scripts.
fn ground() -> Option<Ground> {
    let ground = Ground::embedded()?;
    ground.file("list.sh", "#!/bin/sh\necho '[\"a\", \"bb\", \"ccc\"]'\n");
    ground.file(
        "count.rhai",
        "let input = parse_json(INPUT); input.word.len() * input.times\n",
    );
    ground.file("words.yaml", WORDS);
    Some(ground)
}

#[test]
fn a_flow_runs_from_its_file_to_its_result() {
    let Some(ground) = ground() else { return };
    let done = ground.run(&["flow", "run", "words.yaml", "--json"]).ok();
    let view = done.json();
    assert_eq!(view["status"], "finished");
    assert_eq!(view["outputs"], json(r#"{"sum": 12, "counts": [2, 4, 6]}"#));
    assert_eq!(view["jobs"][1]["result"], json("[2, 4, 6]"));
    assert_eq!(view["jobs"][2]["status"], "skipped");
    let done = ground
        .run(&["flow", "run", "words.yaml", "--set", "times=1"])
        .ok();
    assert_eq!(done.stdout, "counts: [1,2,3]\nsum: 6\n");
    assert!(done.stderr.contains("sum: finished"), "{}", done.stderr);
    let list = ground.run(&["flow", "list", "--json"]).ok();
    let status = |line: &str| json(line)["status"].clone();
    let statuses: Vec<_> = list.stdout.lines().map(status).collect();
    assert_eq!(statuses, ["finished", "finished"]);
    let shown = ground.run(&["flow", "status", "1"]).ok();
    assert!(
        shown
            .stdout
            .starts_with("words finished: 4 jobs in 3 levels"),
        "{}",
        shown.stdout
    );
    let logs = ground.run(&["flow", "logs", "1", "list"]).ok();
    assert!(logs.stdout.contains("\"bb\""), "{}", logs.stdout);
    ground.run(&["flow", "delete", "1"]).ok();
    ground.run(&["flow", "status", "1"]).exits(5);
}

#[test]
fn a_flow_that_fails_says_so() {
    let Some(ground) = ground() else { return };
    let bad = "flow: bad\njobs:\n  a: {script: 'exit 3', type: exec, retries: 1, backoff: 10ms}\n  b: {run: list.sh, needs: a}\n";
    ground.file("bad.yaml", bad);
    let done = ground.run(&["flow", "run", "bad.yaml"]).exits(1);
    assert!(done.stderr.contains("b: skipped"), "{}", done.stderr);
    assert!(
        done.stderr.contains("flow 1 failed: job `a`: "),
        "{}",
        done.stderr
    );
    // An input that is not there, and what cannot be run yet: nothing is stored.
    let done = ground
        .run(&["flow", "run", "words.yaml", "--set", "size=1"])
        .exits(2);
    assert!(
        done.stderr.contains("has no input `size`"),
        "{}",
        done.stderr
    );
    ground.file(
        "later.yaml",
        "flow: f\njobs: {s: {wait: {message: done, from: 1}}}\n",
    );
    let done = ground.run(&["flow", "submit", "later.yaml"]).exits(2);
    assert!(
        done.stderr
            .contains("the job `s` uses a wait for a message"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_killed_run_is_gone_on_with() {
    let Some(ground) = ground() else { return };
    let waits = ground.path("go");
    let slow = format!(
        "flow: slow\njobs:\n  a: {{script: 'touch {}.seen; until test -e {}; do sleep 0.05; done; echo 1', type: exec}}\n  \
         b: {{script: 'parse_json(INPUT).a + 1', type: osis, needs: a, with: {{a: '{{{{a.result}}}}'}}}}\n",
        waits.display(),
        waits.display()
    );
    ground.file("slow.yaml", slow);
    let first = ground.start(&["flow", "run", "slow.yaml"]);
    let seen = ground.path("go.seen");
    eventually("the first job starts", || seen.exists().then_some(()));
    first.kill();
    ground.file("go", "");
    // Another flow brings a worker to the context, which goes on with both.
    ground.file("ask.yaml", "flow: ask\njobs:\n  a: {script: 'true', type: exec}\n  b: {script: '1', type: osis}\n  ask: {approve: 'End?'}\n");
    let other = ground.start(&["flow", "run", "ask.yaml", "--json"]);
    let ended = ground
        .run(&["flow", "status", "1", "--wait", "--json"])
        .ok()
        .json();
    assert_eq!(
        (&ended["status"], &ended["outputs"]),
        (&json("\"finished\""), &json(r#"{"b": 2}"#))
    );
    eventually("the question is open", || {
        let answer = ground.run(&["flow", "approve", "2", "ask"]);
        (answer.code == Some(0)).then_some(())
    });
    other.ended().ok();
}

#[test]
fn a_flow_is_retried_from_the_job_that_failed() {
    let Some(ground) = ground() else { return };
    let fails = ground.path("ok");
    let flow = format!(
        "flow: again\njobs:\n  a: {{script: 'echo ran >> a.txt; echo 1', type: exec}}\n  \
         b: {{script: 'test -e {}', type: exec, needs: a}}\n  c: {{script: '1', type: osis, needs: b}}\n",
        fails.display()
    );
    ground.file("again.yaml", flow);
    ground.run(&["flow", "run", "again.yaml"]).exits(1);
    for (from, why) in [
        ("x", "the flow has no job `x` that could be retried"),
        ("b[0]", "the job `b` has no item 0"),
    ] {
        let refused = ground.run(&["flow", "retry", "1", "--from", from]).exits(2);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
    let refused = ground.run(&["flow", "retry", "1", "--from", "b["]).exits(2);
    assert!(
        refused.stderr.contains("`b[` is no job"),
        "{}",
        refused.stderr
    );
    ground.run(&["flow", "retry", "9", "--from", "b"]).exits(5);
    ground.file("ok", "");
    let done = ground
        .run(&["flow", "retry", "1", "--from", "b", "--json"])
        .ok()
        .json();
    assert_eq!(done["status"], "finished");
    assert_eq!(done["outputs"], json(r#"{"c": 1}"#));
    let a = done["jobs"][0]["id"].as_str().unwrap().to_owned();
    let log = ground.run(&["flow", "retry", "1", "--from", "c", "--detach", "--json"]);
    assert_eq!(log.ok().json(), json(r#"{"id": 1, "outcome": "retrying"}"#));
    let refused = ground.run(&["flow", "retry", "1", "--from", "c"]).exits(1);
    assert!(
        refused.stderr.contains("has not ended"),
        "{}",
        refused.stderr
    );
    // It runs nowhere: it is stopped first, and then runs again.
    let done = ground.run(&["flow", "retry", "1", "--from", "c", "--force", "--json"]);
    assert_eq!(done.ok().json()["status"], "finished");
    // A job of a flow is the flow's to retry and to delete.
    for verb in ["retry", "delete"] {
        let refused = ground.run(&["job", verb, &a, "--context", "1"]).exits(1);
        assert!(
            refused.stderr.contains("belongs to a flow"),
            "{}",
            refused.stderr
        );
    }
}
