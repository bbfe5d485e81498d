//! `meshwork job logs -f`: the output of a job while it runs, and what there is of workers that do not tell
//! it line by line.

use crate::common::{Ground, claimed, json, names, on_all_data, wait};

on_all_data! {
    fn lines_come_while_the_job_runs(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.run(&["job", "submit", "a.rhai", "--id", "j"]).ok();
        // Before anybody runs it.
        let mut plain = ground.start(&["job", "logs", "-f", "j"]);
        let mut lines = ground.start(&["job", "logs", "-f", "j", "--json"]);
        let worker = ground.broker();
        let taken = claimed(&worker);
        let print = |stream: &str, line: &str| {
            wait(worker.log(&taken, &[(stream, line.as_bytes())], None)).unwrap();
        };
        print("stdout", "one");
        assert_eq!(plain.line(), "one\n");
        let line = json(&lines.line());
        assert_eq!(names(&line), ["at", "line", "stream"]);
        assert_eq!((&line["line"], &line["stream"]), (&json("\"one\""), &json("\"stdout\"")));
        let so_far = ground.run(&["job", "logs", "j", "--stdout"]).ok();
        assert_eq!(so_far.stdout, "one\n", "without following, what is there");
        print("stdout", "");
        print("stderr", "two");
        wait(worker.complete(&taken, b"4", b"one\n\n", b"two\n")).unwrap();
        let done = plain.ended().ok();
        assert_eq!((done.stdout.as_str(), done.stderr.trim_end()), ("one\n\n", "two"));
        assert_eq!(lines.ended().ok().jsons().len(), 3);
        let stderr = ground.run(&["job", "logs", "-f", "j", "--stderr", "--json"]).ok();
        assert_eq!(stderr.json()["line"], "two");
    }

    fn how_the_job_ended_is_the_exit_code(ground: &Ground) {
        ground.file("a.rhai", "throw \"boom\"");
        ground.run(&["job", "submit", "a.rhai", "--id", "j"]).ok();
        let follower = ground.start(&["job", "logs", "-f", "j"]);
        let worker = ground.worker(&["--type", "osis"]);
        let done = follower.ended().exits(1);
        assert!(done.stderr.contains("job j failed") && done.stderr.contains("boom"), "{}", done.stderr);
        ground.run(&["job", "logs", "-f", "nobody"]).exits(5);
        worker.kill();
    }
}

#[test]
fn a_worker_that_tells_nothing_line_by_line() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    ground.raw("HSET hero:job:j status finished mw_stdout one mw_stderr two");
    let done = ground.run(&["job", "logs", "-f", "j"]).ok();
    assert_eq!(
        (done.stdout.as_str(), done.stderr.as_str()),
        ("one\n", "two\n")
    );
    let log = ground.file("log", "a\nb\n");
    let folder = log.parent().unwrap().to_str().unwrap();
    let follow = |id: &str, more: &[&str]| {
        let args = ["job", "logs", "-f", id, "--log-dir", folder];
        ground.run(&[&args, more].concat()).ok()
    };
    let record = format!("HSET hero:job:k status finished log_path {}", log.display());
    ground.raw(&record);
    assert_eq!(follow("k", &[]).stdout, "a\nb\n");
    let lines = follow("k", &["--json"]).jsons();
    assert_eq!(
        lines[1],
        serde_json::json!({"at": null, "stream": "stdout", "line": "b"})
    );
    let done = ground.run(&["job", "logs", "-f", "k"]).ok();
    assert_eq!(done.stdout, "");
    assert!(done.stderr.contains("--log-dir"), "{}", done.stderr);
}

#[test]
fn secrets_are_masked_in_lines_too() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    ground.raw(r#"HSET hero:job:j status finished env_vars "{\"TOKEN\":\"geheim\"}""#);
    ground.raw(r#"XADD hero:q:log:j * stdout "it is geheim""#);
    assert_eq!(
        ground.run(&["job", "logs", "-f", "j"]).ok().stdout,
        "it is ***\n"
    );
}

#[test]
fn a_line_without_its_end_is_shown_while_the_job_runs() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    ground.file(
        "ask.py",
        "import os, time\nprint('10 %\\r20 %\\r30 %', end='', flush=True)\n\
         while not os.path.exists(os.environ['GO']): time.sleep(0.05)\nprint(' done')\n",
    );
    let go = format!("GO={}", ground.path("go").display());
    let args = ["job", "enqueue", "ask.py", "--id", "j", "--env", &go];
    ground.run(&args).ok();
    let worker = ground.worker(&["--type", "python"]);
    let mut follower = ground.start(&["job", "logs", "-f", "j"]);
    assert_eq!(follower.line(), "30 %\n");
    ground.file("go", "");
    assert_eq!(follower.line(), " done\n");
    follower.ended().ok();
    let logs = ground.run(&["job", "logs", "j"]).ok();
    assert_eq!(
        logs.stdout, "10 %\r20 %\r30 % done\n",
        "the record has all bytes"
    );
    worker.stop();
}
