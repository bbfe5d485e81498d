//! Workers that cannot start runs: the fault is theirs, so their jobs wait for another worker.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, getuid, prlimit};

use crate::common::{Ground, Running, eventually, http, json, on_all_data};

/// A worker of this type whose folder for temporary files does not exist.
fn sick(ground: &Ground, script_type: &str) -> Running {
    let args = [
        "worker",
        "--json",
        "--type",
        script_type,
        "--concurrency",
        "2",
    ];
    let mut command = ground.command(&[&args[..], &["--metrics-addr", "127.0.0.1:0"]].concat());
    command.env("TMPDIR", ground.path("missing"));
    Running::start(command)
}

/// The path of a control group of version 1 that counts memory, below that of this process, with the name of a folder. None if this
/// user cannot make it.
fn group_of_memory(folder: &Path) -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.split_once(":memory:"))?.1;
    let own = Path::new("/sys/fs/cgroup/memory").join(own.trim_start_matches('/'));
    let may = getuid().is_root() && own.join("cgroup.procs").exists();
    may.then(|| own.join(folder.file_name().unwrap()))
}

/// The address of the metrics of a worker that listens.
fn address(worker: &mut Running) -> String {
    let event = json(&worker.line());
    assert_eq!(event["event"], "listening");
    let url = event["metrics"].as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap();
    address.strip_suffix("/metrics").unwrap().to_owned()
}

/// The status of the readiness check, and its reason.
fn readiness(address: &str) -> (u16, String) {
    let request = "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let came = http::came(http::connect(address, request));
    (came.status, came.body)
}

fn submit(ground: &Ground, jobs: usize) {
    let line = |at| format!(r#"{{"type":"exec","id":"j{at}","payload":{{"program":"true"}}}}"#);
    let lines: Vec<_> = (0..jobs).map(line).collect();
    ground.file("jobs", lines.join("\n"));
    ground.run(&["job", "submit", "--jsonl", "jobs"]).ok();
}

on_all_data! {
    fn a_sick_worker_fails_no_job_beside_a_healthy_one(ground: &Ground) {
        // The folder goes when the worker has checked it, or while it does.
        fs::create_dir(ground.path("missing")).unwrap();
        let mut sick = sick(ground, "exec");
        let metrics = address(&mut sick);
        fs::remove_dir_all(ground.path("missing")).unwrap();
        submit(ground, 60);
        let healthy = ground.worker(&["--type", "exec", "--concurrency", "2"]);
        eventually("all jobs have ended", || {
            let jobs = ground.jobs();
            let ended = |job: &&serde_json::Value| job["status"] != "dispatched" && job["status"] != "started";
            (jobs.iter().filter(ended).count() == 60).then_some(())
        });
        for job in ground.jobs() {
            assert_eq!((&job["status"], &job["attempts"]), (&json("\"finished\""), &json("1")), "{job}");
        }
        let (status, why) = readiness(&metrics);
        assert!(status == 503 && why.contains("exec cannot start runs: cannot lay out"), "{why}");
        // Its registration has the fault from the next renewal on.
        eventually("one of two workers has a fault", || {
            let list = ground.run(&["worker", "list", "--json"]).ok().jsons();
            let faults = list.iter().filter(|worker| worker["fault"].is_string());
            ((list.len(), faults.count()) == (2, 1)).then_some(())
        });
        let shown = ground.run(&["worker", "list"]).ok().stdout;
        assert!(shown.contains("paused: cannot lay out"), "{shown}");
        let doctor = ground.run(&["doctor", "--json"]).exits(1).jsons();
        let finding = doctor.iter().find(|finding| finding["check"] == "workers with faults");
        assert!(finding.unwrap()["what"].as_str().unwrap().contains("cannot lay out"));
        healthy.stop();
        // One line, however often it tried.
        let log = sick.stop().stderr;
        assert_eq!(log.matches("runtime paused").count(), 1, "{log}");
    }

    fn jobs_wait_until_a_sick_worker_recovers(ground: &Ground) {
        let mut sick = sick(ground, "exec");
        let metrics = address(&mut sick);
        submit(ground, 3);
        let ready = || readiness(&metrics).0;
        eventually("the fault is known", || (ready() == 503).then_some(()));
        for job in ground.jobs() {
            assert_eq!(job["status"], "dispatched", "{job}");
        }
        fs::create_dir(ground.path("missing")).unwrap();
        for id in ["j0", "j1", "j2"] {
            ground.run(&["job", "wait", id]).ok();
        }
        assert_eq!(ready(), 200);
        sick.stop();
    }

    fn a_missing_interpreter_is_the_workers_fault(ground: &Ground) {
        ground.file("a.py", "result = 1");
        // It waits already when the worker starts.
        ground.run(&["job", "submit", "a.py", "--id", "a"]).ok();
        let mut command = ground.command(&["worker", "--json", "--type", "python"]);
        command.env("MESHWORK_PYTHON", "/nowhere/python3");
        let mut worker = Running::start(command);
        assert_eq!(json(&worker.line())["event"], "listening");
        eventually("the list names the fault", || {
            let list = ground.run(&["worker", "list"]).ok().stdout;
            list.contains("paused: no Python").then_some(())
        });
        let job = ground.run(&["job", "status", "a", "--json"]).ok().json();
        assert_eq!(job["status"], "dispatched", "{job}");
        worker.stop();
    }

    fn a_control_group_that_is_gone_is_the_workers_fault(ground: &Ground) {
        let Some(group) = group_of_memory(&ground.path("")) else {
            return;
        };
        fs::create_dir(&group).unwrap();
        let worker = ground.command(&["worker", "--json", "--type", "exec"]);
        let mut command = Command::new("/bin/sh");
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.display());
        command.args(["-c", &enter, "sh"]).arg(worker.get_program()).args(worker.get_args());
        command.current_dir(ground.path(""));
        command.env_clear().envs(worker.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut worker = Running::start(command);
        assert_eq!(json(&worker.line())["event"], "listening");
        submit(ground, 1);
        ground.run(&["job", "wait", "j0"]).ok();
        let above = group.parent().unwrap().join("cgroup.procs");
        fs::write(above, worker.pid().to_string()).unwrap();
        eventually("the group is empty", || fs::remove_dir(&group).ok());
        ground.file("next", r#"{"type":"exec","id":"next","payload":{"program":"true"}}"#);
        ground.run(&["job", "submit", "--jsonl", "next"]).ok();
        eventually("the list names the fault", || {
            let list = ground.run(&["worker", "list"]).ok().stdout;
            list.contains("cannot make a control group").then_some(())
        });
        let job = ground.run(&["job", "status", "next", "--json"]).ok().json();
        assert_eq!(job["status"], "dispatched", "{job}");
        fs::create_dir(&group).unwrap();
        ground.run(&["job", "wait", "next"]).ok();
        let job = ground.run(&["job", "status", "next", "--json"]).ok().json();
        assert_eq!((&job["attempts"], &job["lost"]), (&json("1"), &json("0")), "{job}");
        worker.stop();
        eventually("the group is empty again", || fs::remove_dir(&group).ok());
    }

    fn an_input_beyond_the_stack_of_the_host_fails_its_job_alone(ground: &Ground) {
        let worker = ground.worker(&["--type", "osis"]);
        let pid = Pid::from_raw(worker.pid().cast_signed());
        let room = Some(5 << 30);
        let limit = Rlimit { current: room, maximum: room };
        prlimit(pid, Resource::As, limit).unwrap();
        ground.file("a.rhai", "INPUT.len()");
        ground.file("large", vec![b'x'; 16_000_000]);
        ground.file("small", "x");
        ground.run(&["job", "submit", "a.rhai", "--id", "large", "--input", "@large"]).ok();
        ground.run(&["job", "submit", "a.rhai", "--id", "small", "--input", "@small"]).ok();
        let done = ground.run(&["job", "wait", "large"]).exits(1);
        assert!(done.stderr.contains("The stack grows with the input"), "{}", done.stderr);
        assert_eq!(ground.run(&["job", "wait", "small"]).ok().stdout.trim(), "1");
        let log = worker.stop().stderr;
        assert!(!log.contains("runtime paused"), "{log}");
    }

    fn a_command_whose_own_worker_is_sick_says_so_at_once(ground: &Ground) {
        ground.file("a.py", "result = 1");
        let mut command = ground.command(&["run", "a.py"]);
        command.env("MESHWORK_PYTHON", "/nowhere/python3");
        let done = Running::start(command).ended().exits(1);
        assert!(done.stderr.contains("no Python: `/nowhere/python3`"), "{}", done.stderr);
        assert!(done.stderr.contains("No other worker listens"), "{}", done.stderr);
        for job in ground.jobs() {
            assert_eq!((&job["status"], &job["error"]), (&json("\"error\""), &json("\"stopped\"")), "{job}");
        }
    }

    fn a_deep_folder_harms_no_other_job(ground: &Ground) {
        if meshwork_test_servers::servers::need(meshwork_test_servers::servers::Tool::Python).is_none() {
            return;
        }
        let temporary = ground.path("tmp");
        fs::create_dir(&temporary).unwrap();
        let deep = "import os, time\nfor _ in range(3000):\n    os.mkdir('a')\n    os.chdir('a')\n";
        ground.file("deep.py", deep);
        ground.file("killed.py", format!("{deep}os.kill(os.getppid(), 9)"));
        let mut command = ground.command(&["worker", "--json", "--type", "python", "--concurrency", "4"]);
        command.env("TMPDIR", &temporary);
        let mut worker = Running::start(command);
        assert_eq!(json(&worker.line())["event"], "listening");
        ground.file("plain.py", "result = 1");
        ground.run(&["job", "submit", "deep.py", "--id", "deep"]).ok();
        ground.run(&["job", "submit", "killed.py", "--id", "killed", "--retries", "0"]).ok();
        for at in 0..8 {
            ground.run(&["job", "submit", "plain.py", "--id", &format!("p{at}")]).ok();
        }
        for at in 0..8 {
            ground.run(&["job", "wait", &format!("p{at}")]).ok();
        }
        ground.run(&["job", "wait", "deep"]).ok();
        ground.run(&["job", "wait", "killed"]).exits(1);
        worker.stop();
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    }
}

/// Which sandbox the queue asks for is unknown: the job waits, and the worker names the key.
#[test]
fn settings_of_another_type_fail_no_job() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    ground.file("one.py", "result = 1");
    let id = ground.run(&["job", "enqueue", "one.py"]).ok().stdout;
    let config = ground.broker().keys().config();
    ground.raw(&format!("SET {config} x"));
    let mut worker = ground.worker(&["--type", "python"]);
    loop {
        let line = worker.says().expect("the worker tells the fault");
        if line.contains(&config) && line.contains("another kind") {
            break;
        }
    }
    assert_ne!(ground.jobs()[0]["status"], "error");
    ground.raw(&format!("DEL {config}"));
    ground.run(&["job", "wait", id.trim()]).ok();
    let job = &ground.jobs()[0];
    assert_eq!(
        (&job["status"], &job["attempts"]),
        (&json("\"finished\""), &json("1")),
        "{job}"
    );
}

/// Only the times of delayed jobs are unknown then.
#[test]
fn a_set_of_another_type_hides_no_job() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    ground.file("one.py", "result = 1");
    let id = ground.run(&["job", "enqueue", "one.py"]).ok().stdout;
    let delayed = ground.broker().keys().delayed();
    ground.raw(&format!("SET {delayed} x"));
    let listed = ground.run(&["job", "list", "--json"]).ok();
    assert_eq!(listed.jsons()[0]["id"], id.trim());
    assert!(listed.stderr.contains(&delayed), "{}", listed.stderr);
}
