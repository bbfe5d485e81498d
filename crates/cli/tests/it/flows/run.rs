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
    // The label is on the stream of the lines.
    assert!(logs.stdout.starts_with("list:\n"), "{}", logs.stdout);
    ground.run(&["flow", "delete", "1"]).ok();
    ground.run(&["flow", "status", "1"]).exits(5);
}

#[test]
fn a_status_names_the_failed_item() {
    let Some(ground) = ground() else { return };
    let bad = "flow: bad\njobs:\n  a: {script: 'if INPUT == \"1\" { throw \"part 1 broken\" }', type: osis, foreach: 3}\n";
    ground.file("bad.yaml", bad);
    ground.run(&["flow", "run", "bad.yaml"]).exits(1);
    let shown = ground.run(&["flow", "status", "1"]).ok();
    let line = shown.stdout.lines().find(|line| line.starts_with("a[1]: "));
    assert!(
        line.is_some_and(|line| line.contains("part 1 broken")),
        "{}",
        shown.stdout
    );
    assert!(!shown.stdout.contains("a[0]: "), "{}", shown.stdout);
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
    assert!(!done.stderr.contains("WARN"), "{}", done.stderr);
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
            .contains("the job `s` uses a message of an unknown type"),
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

#[test]
fn tags_find_the_jobs_of_a_flow() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let flow = "
flow: tagged
tags: [nightly]
jobs:
  list:  {script: '[1, 2]', type: osis, tags: io}
  each:  {script: 'if INPUT == \"2\" { throw 5 } 1', type: osis, needs: list, foreach: list.result, tags: [team:a, nightly], continue: true}
  pause: {wait: {for: 1ms}, needs: each}
";
    ground.file("tagged.yaml", flow);
    ground.run(&["flow", "run", "tagged.yaml"]).ok();
    let args = ["job", "list", "--context", "1", "--json", "--tag"];
    let names = |tag: &str| {
        let jobs = ground.run(&[&args[..], &[tag]].concat()).ok().jsons();
        jobs.len()
    };
    let counts = ["nightly", "io", "team:a", "none"].map(names);
    // `each` is a job with two items.
    assert_eq!(counts, [5, 1, 3, 0]);
    let retried = ["flow", "retry", "1", "--from", "list", "--json"];
    ground.run(&retried).ok();
    let counts = ["nightly", "io", "team:a"].map(names);
    assert_eq!(counts, [5, 1, 3]);
}

#[test]
fn bad_tags_of_a_flow_are_refused_with_their_place() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let many: Vec<_> = (0..9).map(|n| format!("t{n}")).collect();
    let many = format!(
        "flow: f\ntags: [{}]\njobs: {{a: {{script: '1', type: osis, tags: [x, y]}}}}\n",
        many.join(", ")
    );
    for (text, says) in [
        (
            "flow: f\ntags: [a b]\njobs: {a: {script: '1', type: osis}}\n",
            "bad.yaml:2:8: the flow: the tag \"a b\" is not possible: give 1 to 64",
        ),
        (
            "flow: f\njobs: {a: {script: '1', type: osis, tags: ['']}}\n",
            "job `a`: the tag \"\" is not possible",
        ),
        (
            "flow: f\njobs: {a: {script: '1', type: osis, tags: [2024]}}\n",
            "a tag is a text, not the number 2024: quote it",
        ),
        (
            "flow: f\ntags: {a: b}\njobs: {a: {script: '1', type: osis}}\n",
            "`tags` has to be a list",
        ),
        (
            &many,
            "job `a`: 11 tags are too many, with those of the flow: at most 10",
        ),
    ] {
        ground.file("bad.yaml", text);
        let check = ["flow", "check", "bad.yaml", "--offline"];
        let said = ground.run(&check).exits(2);
        let said = format!("{}{}", said.stdout, said.stderr);
        assert!(said.contains(says), "{says}: {said}");
    }
}

#[test]
fn logs_are_followed_with_the_names_of_the_jobs_on_stdout() {
    let Some(ground) = ground() else { return };
    let text = "flow: talk\njobs:\n  a: {script: 'echo one; echo two >&2', type: exec}\n  b: {script: 'echo item $ITEM_INDEX', type: exec, needs: a, foreach: 2}\n  c: {script: 'exit 3', type: exec, needs: b}\n";
    ground.file("talk.yaml", text);
    let id = ground.run(&["flow", "submit", "talk.yaml"]).ok();
    assert_eq!(id.stdout, "1\n");
    let mut follow = ground.start(&["flow", "logs", "-f", "1"]);
    let _worker = ground.worker(&["--context", "1", "--type", "exec"]);
    let mut lines: Vec<String> = (0..4).map(|_| follow.line()).collect();
    lines.sort();
    let expected = ["a: one\n", "a: two\n", "b[0]: item 0\n", "b[1]: item 1\n"];
    assert_eq!(lines, expected);
    let done = follow.ended().exits(1);
    assert!(
        done.stderr.contains("flow 1 failed: job `c`: "),
        "{}",
        done.stderr
    );
    let again = ground
        .run(&["flow", "logs", "-f", "1", "b", "--json"])
        .exits(1);
    let jobs: Vec<_> = again.jsons().iter().map(|it| it["job"].clone()).collect();
    assert_eq!(jobs, ["b[0]", "b[1]"]);
}

#[test]
fn a_submission_says_that_nobody_may_run_its_jobs() {
    let Some(ground) = ground() else { return };
    ground.run(&["context", "create"]).ok();
    let done = ground.run(&["flow", "submit", "words.yaml"]).ok();
    assert!(!done.stderr.contains("nobody may run"), "{}", done.stderr);
    ground
        .run(&["context", "revoke", "1", "executor", "1"])
        .ok();
    let done = ground.run(&["flow", "submit", "words.yaml"]).ok();
    let why = "nobody may run jobs of context 1";
    assert!(done.stderr.contains(why), "{}", done.stderr);
}

#[test]
fn a_python_script_gets_partial_results() {
    let Some(ground) = ground() else { return };
    ground.file("part.py", "import sys\nn = int(sys.stdin.read())\nif n == 1:\n    raise ValueError('part 1 broken')\nresult = n * 2\n");
    ground.file("sum.py", "try:\n    inputs['one']\nexcept KeyError as error:\n    kind = type(error).__name__\nresult = [inputs['part'], inputs.errors('part'), kind]\n");
    let text = "flow: part\njobs:\n  part: {run: part.py, foreach: 3, continue: true}\n  one: {script: 'exit 3', type: exec, continue: true}\n  sum: {run: sum.py, needs: [part, one]}\n";
    ground.file("part.yaml", text);
    let done = ground.run(&["flow", "run", "part.yaml"]).ok();
    let result = json(done.stdout.trim());
    assert_eq!(result[0], json("[0, null, 4]"));
    assert_eq!(result[1], json(r#"{"1": "ValueError: part 1 broken"}"#));
    assert_eq!(result[2], json(r#""KeyError""#));
}
