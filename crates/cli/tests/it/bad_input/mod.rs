//! Whatever is wrong is named, with what to do about it; the exit code says which kind it is; and nothing
//! is written.

mod servers;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::common::{Done, Ground, Running, json, on_all_data};

const USAGE: i32 = 2;
const NO_JOB: i32 = 5;

/// Runs it and expects this exit code, these words on stderr, and no other trace.
pub(crate) fn refused(ground: &Ground, args: &[&str], code: i32, words: &[&str]) {
    let done = ground.run(args);
    says(&done, code, words);
    assert_eq!(ground.stored(), "", "{args:?} wrote something");
}

pub(crate) fn says(done: &Done, code: i32, words: &[&str]) {
    assert_eq!(done.code, Some(code), "{done:#?}");
    assert_eq!(done.stdout, "");
    for word in words {
        assert!(
            done.stderr.contains(word),
            "{word:?} is not in: {}",
            done.stderr
        );
    }
}

/// Lines of JSON that are no job, each with the field that its error names.
const BAD_LINES: [(&str, &str); 8] = [
    (
        r#"{"script": "1", "type": "osis", "retries": "x"}"#,
        "retries: invalid type",
    ),
    (
        r#"{"script": "1", "type": "osis", "tags": "x"}"#,
        "tags: invalid type",
    ),
    (
        r#"{"script": "1", "type": "osis", "env": {"A": 1}}"#,
        "env.A: invalid type",
    ),
    (
        r#"{"script": "1", "type": "osis", "timeout": -1}"#,
        "timeout: invalid value",
    ),
    (
        r#"{"script": "1", "type": "osis", "id": "a b"}"#,
        "id: the job id",
    ),
    (
        r#"{"script": "1", "type": "osis", "priority": "soon"}"#,
        "priority: `soon`",
    ),
    (
        r#"{"script": "1", "type": "osis", "backoff": 1e9}"#,
        "backoff: give 0 to 3600 seconds",
    ),
    (
        r#"{"script": "1", "type": "osis", "delay": "soon"}"#,
        "delay: invalid value",
    ),
];

on_all_data! {
    fn lines_may_begin_with_a_byte_order_mark(ground: &Ground) {
        ground.file("jobs.jsonl", "\u{feff}{\"script\": \"1\", \"type\": \"osis\"}\n");
        let done = ground.run(&["enqueue", "--jsonl", "jobs.jsonl"]).ok();
        assert!(done.stderr.contains("1 of 1 job stored"), "{done:?}");
        for line in ["1", "[]", "null"] {
            ground.file("jobs.jsonl", line);
            let done = ground.run(&["enqueue", "--jsonl", "jobs.jsonl"]).exits(USAGE);
            assert!(!done.stderr.contains("struct") && done.stderr.contains("object"), "{}", done.stderr);
        }
    }

    fn the_error_of_a_line_names_the_field(ground: &Ground) {
        for (line, words) in BAD_LINES {
            ground.file("jobs.jsonl", line);
            refused(ground, &["enqueue", "--jsonl", "jobs.jsonl"], USAGE, &["line 1", words]);
        }
    }

    fn a_long_word_is_not_repeated(ground: &Ground) {
        ground.file("a.rhai", "1");
        let long = "k".repeat(300);
        for args in [
            &["enqueue", "a.rhai", "--key", &long][..],
            &["enqueue", "a.rhai", "--tag", &long],
            &["enqueue", "a.rhai", "--id", &long],
            &["enqueue", "a.rhai", "--unique", &long],
            &["queue", "pause", &long],
            &["job", "show", &long],
        ] {
            let done = ground.run(args);
            assert_ne!(done.code, Some(0), "{args:?}");
            let said = done.stderr;
            assert!(said.contains("kkkk…") && !said.contains(&long[..100]), "{args:?}: {said}");
        }
    }

    fn each_line_of_a_json_log_has_a_time(ground: &Ground) {
        ground.file("a.rhai", "throw 1");
        let done = ground.run(&["run", "a.rhai", "--log-format", "json", "-v"]).exits(1);
        let lines: Vec<_> = done.stderr.lines().map(json).collect();
        let notes = lines.iter().filter(|line| line["target"].is_null());
        assert!(notes.count() > 0, "{}", done.stderr);
        for line in &lines {
            let at = line["timestamp"].as_str().unwrap_or_else(|| panic!("{line}"));
            assert!(at.len() >= 24 && at.ends_with('Z'), "{line}");
        }
    }


    fn scripts(ground: &Ground) {
        ground.file("empty.rhai", " \n");
        ground.file("huge.rhai", vec![b' '; 1024 * 1024 + 1]);
        ground.file("bytes.rhai", b"\xff\xfe");
        ground.file("notes.txt", "1");
        ground.file("folder", "");
        for folder in ["dir.rhai", "plain"] {
            fs::create_dir(ground.path(folder)).unwrap();
        }
        ground.file("nul.rhai", "1\0");
        for command in [&["run"][..], &["job", "submit"]] {
            let refuse = |args: &[&str], words: &[&str]| {
                refused(ground, &[command, args].concat(), USAGE, words);
            };
            refuse(&["empty.rhai"], &["empty.rhai is empty"]);
            refuse(&["huge.rhai"], &["huge.rhai is larger than 1048576 bytes", "as input"]);
            refuse(&["bytes.rhai"], &["bytes.rhai is not UTF-8"]);
            refuse(&["missing.rhai"], &["cannot read the script missing.rhai", "No such file"]);
            for folder in ["dir.rhai", "plain"] {
                refuse(&[folder], &[&format!("{folder} is a folder: name a script in it")]);
            }
            refuse(&["nul.rhai"], &["the script nul.rhai contains a NUL byte"]);
            refuse(&["notes.txt"], &["notes.txt", ".rhai is osis, .py is python, .sh is exec, .sal is sal, .v is v", "--type"]);
            refuse(&["-"], &["on stdin", "--type"]);
            if command == ["run"] {
                refuse(&["notes.txt", "--type", "osiris"], &["`osiris`", "listens to osiris", "osis, python"]);
            }
        }
        let words = ["type `lua`", "no worker listens", "start a worker for"];
        refused(ground, &["run", "notes.txt", "--type", "lua"], USAGE, &words);
        refused(ground, &["run", "notes.txt", "--type", "ruby"], USAGE, &["type `ruby`", "runs osis, python"]);
    }

    fn names(ground: &Ground) {
        ground.file("a.rhai", "1");
        let long = "x".repeat(65);
        for (option, what) in [("--group", "group"), ("--type", "script type")] {
            for bad in ["a:b", "a b", "ä", "", &long] {
                refused(ground, &["run", "a.rhai", option, bad], USAGE, &[what, option]);
            }
        }
        refused(ground, &["job", "submit", "a.rhai", "--instance", "a:b"], USAGE, &["the instance \"a:b\"", "':'"]);
        refused(ground, &["job", "submit", "a.rhai", "--id", "a b"], USAGE, &["the job id \"a b\""]);
        refused(ground, &["worker", "--type", "osis", "--group", "a:b"], USAGE, &["the group \"a:b\""]);
        refused(ground, &["worker", "--type", ""], USAGE, &["script type"]);
        refused(ground, &["run", "a.rhai", "--namespace", "a:b"], USAGE, &["the namespace \"a:b\""]);
        refused(ground, &["job", "status", ""], USAGE, &["a job's id is not empty"]);
    }

    fn numbers(ground: &Ground) {
        ground.file("a.rhai", "1");
        for bad in ["-1", "0", "0.5", "NaN", "inf", "604801", "99999999999999999999", "soon", ""] {
            let words = ["--timeout", "whole number of seconds from 1 to 604800"];
            refused(ground, &["run", "a.rhai", "--timeout", bad], USAGE, &words);
        }
        for (args, words) in [
            (&["run", "a.rhai", "--retries", "-1"][..], "0 to 100"),
            (&["run", "a.rhai", "--retries", "101"], "0 to 100"),
            (&["run", "a.rhai", "--concurrency", "0"], "1 to 1000"),
            (&["run", "a.rhai", "--lease", "0"], "0.3 to 3600"),
            (&["worker", "--type", "osis", "--lease", "NaN"], "0.3 to 3600"),
            (&["worker", "--type", "osis", "--shutdown-timeout", "-1"], "0 to 604800"),
            (&["worker", "--type", "osis", "--concurrency", "1001"], "1 to 1000"),
            (&["job", "wait", "j", "--timeout", "-1"], "0 to 604800"),
            (&["job", "list", "--limit", "0"], "1 to 100000"),
            (&["job", "list", "--status", "lost"], "\"lost\" is no state of a job"),
            (&["job", "enqueue", "a.rhai", "--retries", "abc"], "give a whole number from 0 to 100"),
            (&["worker", "--type", "osis", "--retain-count", "many"], "give a whole number, 0 or more"),
            (&["run", "a.rhai", "--backoff", "-1"], "0 to 3600"),
            (&["run", "a.rhai", "--backoff", "3600.5"], "0 to 3600"),
            (&["job", "stop", "j", "--timeout", "NaN"], "0 to 604800"),
            (&["queue", "limit", "set", "osis", "-1"], "-1"),
            (&["queue", "limit", "set", "osis", "1000000001"], "1000000000"),
            (&["queue", "limit", "set", "osis", "many"], "many"),
            (&["dead", "list", "--limit", "0"], "1 to 100000"),
            (&["events", "--limit", "100001"], "0 to 100000"),
            (&["events", "--limit", "-1"], "0 to 100000"),
        ] {
            refused(ground, args, USAGE, &[words]);
        }
    }

    fn what_decides_when_and_where_a_job_runs(ground: &Ground) {
        ground.file("a.rhai", "1");
        let long = "x".repeat(201);
        for command in [&["run", "a.rhai"][..], &["job", "submit", "a.rhai"]] {
            let refuse = |args: &[&str], words: &[&str]| {
                refused(ground, &[command, args].concat(), USAGE, words);
            };
            for bad in ["", "urgent", "3", "-1", "High"] {
                refuse(&["--priority", bad], &["--priority", &format!("`{bad}` is no priority")]);
            }
            refuse(&["--depends-on", ""], &["--depends-on", "a job's id is not empty"]);
            refuse(&["--depends-on", "j", "--on-failure", "ignore"], &["`ignore` is not known: fail or continue"]);
            refuse(&["--on-failure", "continue"], &["--depends-on"]);
            refused(ground, &[command, &["--depends-on", &long]].concat(), NO_JOB, &[&long]);
        }
        let submit = |args: &[&str], words: &[&str]| {
            refused(ground, &[&["job", "submit", "a.rhai"], args].concat(), USAGE, words);
        };
        submit(&["--fallback", "group"], &["--instance"]);
        submit(&["--instance", "w", "--fallback", "host"], &["--fallback", "group or type"]);
        submit(&["--id", "j", "--depends-on", "j"], &["job j cannot be its own prerequisite"]);
        let many: Vec<_> = (0..1001).flat_map(|n| ["--depends-on".to_owned(), format!("j{n}")]).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        submit(&many, &["1001 prerequisites are too many: at most 1000"]);
    }

    fn moments_and_reasons(ground: &Ground) {
        for bad in ["", "soon", "-1", "1.5h", "2026-02-30", "2026-01-01T25:00:00"] {
            for args in [&["events", "--since"][..], &["dead", "list", "--until"], &["dead", "list", "--since"]] {
                refused(ground, &[args, &[bad]].concat(), USAGE, &[args[args.len() - 1], "90s, 15m, 2h, 7d"]);
            }
        }
        refused(ground, &["dead", "list", "--reason", "age"], USAGE, &["age", "failed, timeout, limit, permanent, snoozed, poison, queue"]);
        refused(ground, &["dead", "list", "--group", "a:b"], USAGE, &["the group \"a:b\""]);
        refused(ground, &["dead", "list", "--type", "a:b"], USAGE, &["the script type \"a:b\""]);
        refused(ground, &["dead", "replay", "j", "--error", "x"], USAGE, &["--error"]);
        refused(ground, &["dead", "delete", "--all", "--type", "osis"], USAGE, &["--all"]);
        refused(ground, &["dead", "delete", ""], USAGE, &["a job's id is not empty"]);
        refused(ground, &["dead", "delete"], USAGE, &["--all"]);
    }

    fn queues(ground: &Ground) {
        for bad in ["", "a b", "osis:prio:3", "osis:inst:1", "hero:work_queue:w"] {
            for verb in [&["set", bad, "1"][..], &["clear", bad]] {
                let words = [&format!("{bad:?} is no work queue")[..]];
                refused(ground, &[&["queue", "limit"], verb].concat(), USAGE, &words);
            }
        }
        refused(ground, &["queue", "limit", "set", "osis"], USAGE, &["--concurrency 5"]);
        for (args, word) in [
            (&["--concurrency", "0"][..], "1 to 1000000000"),
            (&["--rate", "100"], "100/min"),
            (&["--key-rate", "x/s"], "no whole number"),
            (&["--payload", "0"], "1 to 536870912"),
        ] {
            refused(ground, &[&["queue", "limit", "set", "osis"], args].concat(), USAGE, &[word]);
        }
        let default = ["queue", "limit", "set", "default", "--fair"];
        refused(ground, &default, USAGE, &["name a queue"]);
        refused(ground, &["queue", "weight", "osis", "a", "101"], USAGE, &["1 to 100"]);
        refused(ground, &["queue", "weight", "osis", "", "2"], USAGE, &["1 to 256 bytes"]);
        for verb in ["pause", "resume", "drain"] {
            refused(ground, &["queue", verb, "a b"], USAGE, &["is no work queue"]);
        }
        refused(ground, &["job", "stop", "j", "--no-wait", "--timeout", "1"], USAGE, &["--no-wait"]);
    }

    fn environments(ground: &Ground) {
        ground.file("a.rhai", "1");
        for bad in ["A", "=b", ""] {
            refused(ground, &["run", "a.rhai", "--env", bad], USAGE, &["--env", "NAME=VALUE"]);
        }
        refused(ground, &["run", "a.rhai", "--env", "TOKEN_2"], USAGE, &["the variable TOKEN_2 of --env is not set here"]);
        let done = ground.run(&["run", "a.rhai", "--env", "TOKEN:geheim"]).exits(USAGE);
        assert!(!done.stderr.contains("geheim"), "{}", done.stderr);
        let large = format!("A={}", "x".repeat(64 * 1024));
        refused(ground, &["run", "a.rhai", "--env", &large], USAGE, &["the environment takes 65537 bytes, `A` alone 65537", "65536"]);
    }

    fn inputs(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.file("good", "1");
        fs::create_dir(ground.path("folder")).unwrap();
        let huge = File::create(ground.path("huge")).unwrap();
        huge.set_len(16 * 1024 * 1024 + 1).unwrap();
        for (bad, word) in [
            ("missing", "No such file"),
            ("folder", "not a regular file"),
            ("/dev/zero", "not a regular file"),
            ("huge", "larger than 16777216 bytes"),
            ("-", "stdin"),
        ] {
            let named = if bad == "-" { "stdin" } else { bad };
            refused(ground, &["run", "a.rhai", "--each", "good", bad], USAGE, &[named, word]);
            if bad != "-" {
                let file = format!("@{bad}");
                for command in [&["job", "submit", "a.rhai"][..], &["run", "a.rhai"]] {
                    let args = [command, &["--input", &file]].concat();
                    refused(ground, &args, USAGE, &[named, word]);
                }
            }
        }
        refused(ground, &["run", "a.rhai", "--each"], USAGE, &["--each"]);
        refused(ground, &["run", "a.rhai", "--fresh"], USAGE, &["--each"]);
    }

    fn inputs_that_are_no_json(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.file("data.txt", "1");
        for (bad, word) in [("data.txt", "@FILE"), ("{a: 1}", "no JSON"), ("", "no JSON"), ("@", "no file")] {
            let add = ["schedule", "add", "s", "--every", "1h", "a.rhai"];
            for command in [&["run", "a.rhai"][..], &["job", "submit", "a.rhai"], &add] {
                let args = [command, &["--input", bad]].concat();
                refused(ground, &args, USAGE, &["--input", word]);
            }
        }
        refused(ground, &["run", "a.rhai", "--input", "1", "--each", "data.txt"], USAGE, &["--input", "--each"]);
        for command in [&["run", "-", "--type", "osis"][..], &["job", "submit", "-", "--type", "osis"]] {
            let args = [command, &["--input", "-"]].concat();
            let script = File::open(ground.path("a.rhai")).unwrap();
            let done = Running::with_stdin(ground.command(&args), script).ended();
            says(&done, USAGE, &["stdin", "script"]);
            assert_eq!(ground.stored(), "");
        }
    }

    fn unreadable_inputs(ground: &Ground) {
        ground.file("a.rhai", "1");
        let secret = ground.file("secret", "1");
        fs::set_permissions(&secret, Permissions::from_mode(0o000)).unwrap();
        if File::open(&secret).is_ok() {
            // Whoever may read everything, as root does, cannot see this.
            return;
        }
        refused(ground, &["run", "a.rhai", "--each", "secret"], USAGE, &["secret", "ermission"]);
    }
}

on_all_data! {
    fn typing_errors_are_not_accepted(ground: &Ground) {
        let script = ground.file("a.py", "print(1)");
        let script = script.to_str().unwrap();
        let flow = ground.file("f.yaml", "flow: f\njobs:\n  a: {script: 'result = 1', type: python}\n");
        let flow = flow.to_str().unwrap();
        for (args, words) in [
            (&["queue", "purge", "nosuch", "--yes"][..], &["there is no queue nosuch", "queue list"][..]),
            (&["queue", "resume", "nosuch"], &["there is no queue nosuch"]),
            (&["queue", "drain", "nosuch", "--no-wait"], &["nosuch does not exist yet"]),
            (&["queue", "weight", "nosuch", "k", "2"], &["there is no queue nosuch"]),
            (&["queue", "alert", "set", "nosuch", "--after", "3", "--job", script], &["nosuch does not exist yet"]),
            (&["queue", "limit", "show", "nosuch"], &["there is no queue nosuch"]),
            (&["queue", "limit", "remove", "nosuch"], &["there is no queue nosuch"]),
            (&["job", "list", "--queue", "nosuch"], &["there is no queue nosuch", "queue list"]),
            (&["dead", "list", "--queue", "nosuch"], &["there is no queue nosuch"]),
            (&["job", "cancel", "--queue", "nosuch", "--yes"], &["there is no queue nosuch"]),
            (&["dead", "retry", "--queue", "nosuch", "--yes"], &["there is no queue nosuch"]),
        ] {
            refused(ground, args, NO_JOB, words);
        }
        for (args, words) in [
            (&["job", "enqueue", script, "--at", "2020-01-31T12:00:00Z"][..], &["2020-01-31T12:00:00.000Z is past"][..]),
            (&["job", "enqueue", script, "--at", "2020-01-31 12:00", "--tz", "UTC"], &["2020-01-31T12:00:00.000Z is past"]),
            (&["flow", "run", "nosuch"], &["there is no file nosuch", "no flow of this name is deployed"]),
            (&["flow", "submit", "nosuch"], &["there is no file nosuch"]),
            (&["flow", "run", flow, "--set", "x=1"], &["x"]),
            (&["job", "enqueue", script, "--unique", ""], &["--unique", "give 1 to 256 bytes"]),
            (&["job", "enqueue", script, "--key", ""], &["--key", "give 1 to 256 bytes"]),
        ] {
            refused(ground, args, USAGE, words);
        }
        for verb in ["show", "remove"] {
            refused(ground, &["queue", "alert", verb, "nosuch"], NO_JOB, &["there is no queue nosuch"]);
        }
        let mut zone = ground.command(&["job", "enqueue", script, "--at", "tomorrow 9:00"]);
        zone.env("TZ", "Mars/Base");
        says(&Running::start(zone).ended(), USAGE, &["Mars/Base", "--tz"]);
        assert_eq!(ground.stored(), "");
        assert!(!ground.path(".config").exists());
        ground.run(&["queue", "pause", "python", "--create"]).ok();
        for args in [["job", "list", "--queue", "pythn"], ["queue", "limit", "show", "pyhton"]] {
            says(&ground.run(&args), NO_JOB, &["did you mean `python`?"]);
        }
        ground.run(&["job", "list", "--queue", "python"]).ok();
        ground.run(&["queue", "resume", "python"]).ok();
        // It is not needed here.
        for (zone, at) in [("Mars/Base", "+1h"), ("Europe/Brussels", "tomorrow 9:00"), ("UTC", "tomorrow 9:00")] {
            let mut enqueued = ground.command(&["job", "enqueue", script, "--at", at]);
            enqueued.env("TZ", zone);
            Running::start(enqueued).ended().ok();
        }
    }
}
