//! Programs as jobs: scripts with a `#!` line, commands of the worker's host, and interpreters that a worker was given.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::{Pid, test_kill_process};

use crate::common::{Ground, Running, eventually, json, on_all_data};

const USAGE: i32 = 2;

/// Writes a program.
fn program(ground: &Ground, name: &str, text: &str) {
    let path = ground.file(name, text);
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

fn is_alive(pid: i32) -> bool {
    // A process that waits to be reaped is dead.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    test_kill_process(Pid::from_raw(pid).unwrap()).is_ok() && !stat.contains(") Z ")
}

fn number(path: &Path) -> i32 {
    eventually("the script has said its number", || {
        fs::read_to_string(path).ok()?.trim().parse().ok()
    })
}

on_all_data! {
    fn a_program_is_a_job(ground: &Ground) {
        program(ground, "backup.sh", "#!/bin/sh -e\necho \"$0 $-\" >&2\necho out $A $JOB_ID; cat; exit 0\n");
        let input = fs::File::open(ground.file("in", "input\n")).unwrap();
        let args = ["run", "./backup.sh", "--env", "A=b", "--json"];
        let job = Running::with_stdin(ground.command(&args), input).ended().ok().json();
        let id = job["id"].as_str().unwrap();
        assert_eq!(job["output"], format!("out b {id}\ninput\n"));
        assert_eq!((&job["type"], &job["status"]), (&json("\"exec\""), &json("\"finished\"")));
        // The interpreter's own argument, and a file in a folder of the run.
        let said = job["stderr"].as_str().unwrap();
        assert!(said.contains("script") && said.contains('e'), "{said}");
    }

    fn the_first_line_says_who_reads_it(ground: &Ground) {
        ground.file("a.sh", "#!/bin/cat\nitself\n");
        assert_eq!(ground.run(&["run", "a.sh"]).ok().stdout, "#!/bin/cat\nitself\n");
        // Executable or not, with a known ending or not.
        ground.file("b", "#!/bin/sh\necho b $#");
        assert_eq!(ground.run(&["run", "b"]).ok().stdout, "b 0\n");
        ground.file("c.sh", "echo plain");
        assert_eq!(ground.run(&["run", "c.sh"]).ok().stdout, "plain\n");
        ground.file("d.sh", "{ echo braces; }");
        assert_eq!(ground.run(&["run", "d.sh"]).ok().stdout, "braces\n");
        ground.file("e.sh", "#!/no/such/interpreter\n");
        let done = ground.run(&["run", "e.sh", "--retries", "3"]).exits(1);
        assert!(done.stderr.contains("/no/such/interpreter"), "{}", done.stderr);
    }

    fn arguments_follow_two_dashes(ground: &Ground) {
        ground.file("a.sh", "#!/bin/sh\nfor arg; do echo \"[$arg]\"; done");
        let done = ground.run(&["run", "a.sh", "--", "-x", "a b", "{script}", ""]).ok();
        assert_eq!(done.stdout, "[-x]\n[a b]\n[{script}]\n[]\n");
        let done = ground.run(&["run", "--type", "exec", "printf", "--", "%s-%s", "a", "$HOME"]).ok();
        assert_eq!(done.stdout, "a-$HOME\n");
        let worker = ground.worker(&["--type", "exec"]);
        ground.run(&["job", "submit", "--type", "exec", "/bin/echo", "--id", "j", "--", "hi"]).ok();
        assert_eq!(ground.run(&["job", "wait", "j"]).ok().stdout, "hi\n");
        worker.stop();
        let line = r#"{"type":"exec","id":"k","payload":{"program":"echo","args":["line"]}}"#;
        ground.file("jobs", line);
        ground.run(&["job", "submit", "--jsonl", "jobs"]).ok();
        let worker = ground.worker(&["--type", "exec"]);
        assert_eq!(ground.run(&["job", "wait", "k"]).ok().stdout, "line\n");
        worker.stop();
    }

    fn an_executable_file_runs_where_it_is(ground: &Ground) {
        fs::copy("/bin/echo", ground.path("tool")).unwrap();
        let done = ground.run(&["run", "./tool", "--", "a", "b"]).ok();
        assert_eq!(done.stdout, "a b\n");
    }

    fn a_program_that_cannot_be_executed_is_the_jobs_fault(ground: &Ground) {
        program(ground, "bad", "#!/no/such/interpreter\n");
        let bad = ground.path("bad");
        let line = serde_json::json!({"type": "exec", "id": "bad", "payload": {"program": bad}});
        ground.file("jobs", line.to_string());
        ground.run(&["job", "submit", "--jsonl", "jobs"]).ok();
        let worker = ground.worker(&["--type", "exec"]);
        ground.run(&["job", "wait", "bad"]).exits(1);
        let job = ground.run(&["job", "status", "bad", "--json"]).ok().json();
        worker.stop();
        let error = format!("cannot start `{}`: No such file or directory (os error 2): its interpreter `/no/such/interpreter` does not exist", bad.display());
        assert_eq!((&job["error"], &job["attempts"]), (&serde_json::json!(error), &json("1")));
    }

    fn the_exit_code_says_how_it_went(ground: &Ground) {
        ground.file("a.sh", "#!/bin/sh\necho why >&2; exit 3");
        let job = ground.run(&["run", "a.sh", "--json"]).exits(1).json();
        assert_eq!((&job["error"], &job["attempts"]), (&json("\"exit status 3\""), &json("1")));
        assert_eq!(job["stderr"], "why\n");
        let count = ground.path("count");
        ground.file("b.sh", "#!/bin/sh\necho x >> \"$COUNT\"\n[ $(wc -l < \"$COUNT\") -gt 1 ] || exit 75\necho again");
        let env = format!("COUNT={}", count.display());
        let job = ground.run(&["run", "b.sh", "--json", "--retries", "1", "--backoff", "0", "--env", &env]).ok().json();
        assert_eq!((&job["output"], &job["attempts"]), (&json("\"again\\n\""), &json("2")));
        fs::remove_file(count).unwrap();
        let done = ground.run(&["run", "b.sh", "--env", &env]).exits(1);
        assert!(done.stderr.contains("exit status 75 (EX_TEMPFAIL)"), "{}", done.stderr);
    }

    fn nothing_of_the_workers_environment_is_there(ground: &Ground) {
        ground.file("a.sh", "#!/bin/sh\nenv | cut -d= -f1 | sort | tr '\\n' ' '");
        let done = ground.run(&["run", "a.sh"]).ok();
        let names: Vec<_> = done.stdout.split_whitespace().filter(|name| *name != "_").collect();
        assert_eq!(names, [
            "CALLER_ID", "CONTEXT_ID", "HOME", "JOB_ID", "LANG", "MESHWORK_CALLS", "MESHWORK_JOB", "PATH", "PWD", "TMPDIR",
        ]);
    }

    fn all_that_it_started_ends_with_it(ground: &Ground) {
        let (first, second) = (ground.path("first"), ground.path("second"));
        let text = format!(
            "#!/bin/sh\nsetsid sh -c 'echo $$ > {}; exec sleep 1000' > /dev/null &\n\
             until [ -s {} ]; do sleep 0.05; done\n",
            first.display(), first.display()
        );
        ground.file("a.sh", text);
        ground.run(&["run", "a.sh"]).ok();
        assert!(!is_alive(number(&first)));
        ground.file("b.sh", format!("#!/bin/sh\necho $$ > {}\nexec sleep 1000", second.display()));
        let worker = ground.worker(&["--type", "exec", "--lease", "1"]);
        ground.run(&["job", "submit", "b.sh", "--id", "b"]).ok();
        let pid = number(&second);
        worker.kill();
        eventually("the script of a killed worker ends", || (!is_alive(pid)).then_some(()));
    }

    fn a_timeout_gives_it_time_to_put_things_in_order(ground: &Ground) {
        let note = ground.path("note");
        let text = format!(
            "#!/bin/sh\ntrap 'echo ended > {}; exit 0' TERM\nwhile :; do sleep 0.05; done",
            note.display()
        );
        ground.file("a.sh", text);
        let done = ground.run(&["run", "a.sh", "--timeout", "1"]).exits(1);
        assert!(done.stderr.contains("timeout"), "{}", done.stderr);
        assert_eq!(fs::read_to_string(note).unwrap(), "ended\n");
    }

    fn a_worker_may_have_interpreters_of_its_own(ground: &Ground) {
        ground.file("a.x", "BEGIN { while ((getline line) > 0) print \"<\" line \">\" }");
        let submit = ["job", "submit", "a.x", "--type", "awk", "--input", "\"hi\"", "--id", "j"];
        // A worker of another type leaves it.
        let other = ground.worker(&["--type", "exec"]);
        let done = ground.run(&[&submit[..], &["--require-worker"]].concat()).exits(USAGE);
        assert!(done.stderr.contains("`awk`"), "{}", done.stderr);
        other.stop();
        let mut worker = ground.start(&["worker", "--json", "--runtime", "awk=awk -f {script}"]);
        assert_eq!(json(&worker.line())["types"], json("[\"awk\"]"));
        ground.run(&submit).ok();
        assert_eq!(ground.run(&["job", "wait", "j"]).ok().stdout, "<\"hi\">\n");
        worker.stop();
        let both = ["--type", "osis", "--runtime", "sh=sh {script} one 'two three'", "--runtime", "cat=cat {script}"];
        let worker = ground.worker(&both);
        ground.file("b.x", "for arg; do echo $arg; done");
        ground.run(&["job", "submit", "b.x", "--type", "sh", "--id", "b"]).ok();
        assert_eq!(ground.run(&["job", "wait", "b"]).ok().stdout, "one\ntwo three\n");
        worker.stop();
    }

    fn what_is_no_program_is_refused(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.file("notes.txt", "text");
        for (args, words) in [
            (&["run", "a.rhai", "--", "x"][..], &["--type exec", "osis", "--input"][..]),
            (&["run", "notes.txt"], &["notes.txt", "--type"]),
            (&["run", "--type", "exec", "notes.txt"], &["notes.txt", "#!/bin/sh"]),
            (&["job", "submit", "--type", "exec", "bin/none"], &["bin/none"]),
            (&["worker", "--runtime", "ruby"], &["--runtime", "ruby {script}"]),
            (&["worker", "--runtime", "x=cat"], &["{script}", "cat"]),
            (&["worker", "--runtime", "x=no-such {script}"], &["no-such"]),
            (&["worker", "--runtime", "a b=cat {script}"], &["--runtime", "script type"]),
            (&["worker", "--runtime", "python=cat {script}"], &["python has a runtime already"]),
            (&["worker", "--runtime", "x=cat {script}", "--runtime", "x=cat {script}"], &["--runtime x", "twice"]),
        ] {
            let done = ground.run(args).exits(USAGE);
            assert!(words.iter().all(|word| done.stderr.contains(word)), "{args:?}: {}", done.stderr);
            assert_eq!(ground.stored(), "", "{args:?}");
        }
        let done = ground.run(&["run", "--type", "exec", "no-such-program"]).exits(1);
        assert!(done.stderr.contains("no program `no-such-program`"), "{}", done.stderr);
    }
}
