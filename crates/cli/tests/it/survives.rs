//! Changes of a server under a worker that runs jobs, odd output, and a worker as the first process of a container. Each
//! accepted job ends once.

use std::fs;
use std::process::Command;

use crate::common::{Ground, Running, eventually, json, wait};
use meshwork_test_servers::servers::{RealServer, need_root};
use meshwork_test_servers::stalling::Stalling;
use rustix::process::{Pid, Signal, kill_process};

/// Waits until the gate is open, and appends its job to a file at each start.
const GATE: &str = r#"
import os, time
with open("STARTS", "a") as f: f.write(os.environ["MESHWORK_JOB"] + "\n")
while not os.path.exists("GATE"): time.sleep(0.02)
result = "through"
"#;

/// A job that has begun and waits for the gate.
fn held(ground: &Ground) -> (Running, String) {
    let script = GATE
        .replace("GATE", &ground.path("gate").display().to_string())
        .replace("STARTS", &ground.path("starts").display().to_string());
    ground.file("gate.py", script);
    let worker = ground.worker(&["--type", "python", "--lease", "2"]);
    ground.run(&["job", "enqueue", "gate.py", "--id", "j"]).ok();
    (worker, ground.job_that_is("running"))
}

/// Opens the gate. The job has to end with one start.
fn ends_once(ground: &Ground, worker: Running) {
    ground.file("gate", "");
    let result = eventually("the job ends", || {
        let done = ground.run(&["job", "result", "j", "--json"]);
        (done.code == Some(0)).then(|| done.json())
    });
    assert_eq!(result["output"], "through");
    assert_eq!(fs::read_to_string(ground.path("starts")).unwrap(), "j\n");
    worker.stop();
}

/// Runs a change of the server while a job runs.
fn through(change: impl FnOnce(&RealServer)) {
    let Some(server) = RealServer::redis()
        .append_only()
        .args(&["--enable-debug-command", "yes"])
        .start()
    else {
        return;
    };
    let ground = Ground::url(server.url());
    let (worker, _) = held(&ground);
    change(&server);
    ends_once(&ground, worker);
}

#[test]
fn a_server_that_pauses_its_clients() {
    through(|server| {
        server
            .say::<()>(&["CLIENT", "PAUSE", "1500", "ALL"])
            .unwrap();
    });
}

#[test]
fn a_server_that_reloads_its_data() {
    through(|server| server.say::<()>(&["DEBUG", "RELOAD"]).unwrap());
}

#[test]
fn databases_that_are_swapped_and_swapped_back() {
    through(|server| {
        for _ in 0..2 {
            server.say::<()>(&["SWAPDB", "0", "1"]).unwrap();
        }
    });
}

/// The record is gone, so the report is refused; the worker goes on with other jobs.
#[test]
fn a_server_that_is_emptied_while_a_job_runs() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let (worker, _) = held(&ground);
    server.say::<()>(&["FLUSHALL"]).unwrap();
    ground.file("gate", "");
    ground.file("next.py", "result = 'next'");
    ground.run(&["job", "enqueue", "next.py", "--id", "n"]).ok();
    assert_eq!(ground.run(&["job", "wait", "n"]).ok().stdout, "next\n");
    ground.run(&["job", "show", "j"]).exits(5);
    worker.stop();
}

/// Redis asks for a password only when a connection logs in, so present connections go on.
#[test]
fn a_password_that_is_changed_while_a_job_runs() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let (worker, _) = held(&ground);
    let set = ["CONFIG", "SET", "requirepass", "sesame"];
    server.say::<()>(&set).unwrap();
    let refused = ground.run(&["job", "list"]).exits(3);
    assert!(
        refused.stderr.contains("refuses the credentials"),
        "{refused:?}"
    );
    ground.file("gate", "");
    let url = server.url().replace("redis://", "redis://:sesame@");
    let with_password = Ground::url(url);
    let result = eventually("the job ends", || {
        let done = with_password.run(&["job", "result", "j", "--json"]);
        (done.code == Some(0)).then(|| done.json())
    });
    assert_eq!(result["output"], "through");
    worker.stop();
}

/// A network that loses all packets of a connection, without a sign to either side.
#[test]
fn a_connection_that_is_open_to_nobody() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let proxy = wait(Stalling::at("of-the-job", &server.url())).unwrap();
    let (behind, direct) = (Ground::url(proxy.url()), Ground::url(server.url()));
    behind.file("a.py", "result = 'of-the-job'");
    let worker = behind.worker(&["--type", "python", "--lease", "2"]);
    direct.file("a.py", "result = 'of-the-job'");
    direct.run(&["job", "enqueue", "a.py", "--id", "j"]).ok();
    wait(proxy.stands_still());
    // Another worker takes the job over.
    let other = direct.worker(&["--type", "python", "--lease", "2"]);
    assert_eq!(
        direct.run(&["job", "wait", "j"]).ok().stdout,
        "of-the-job\n"
    );
    proxy.goes_on();
    behind.run(&["job", "enqueue", "a.py", "--id", "k"]).ok();
    direct.run(&["job", "wait", "k"]).ok();
    other.stop();
    worker.stop();
}

/// Bytes of the longest line: more than any buffer has.
const LONG: usize = 50 * 1024 * 1024;

#[test]
fn a_line_of_50_mb_and_bytes_that_are_no_text() {
    let ground = Ground::embedded().unwrap();
    let worker = ground.worker(&["--type", "exec"]);
    ground.file(
        "long.sh",
        format!("#!/bin/sh\nhead -c {LONG} /dev/zero | tr '\\0' x >&2\necho end\n"),
    );
    ground
        .run(&["job", "enqueue", "long.sh", "--id", "long"])
        .ok();
    assert_eq!(ground.run(&["job", "wait", "long"]).ok().stdout, "end\n");
    let logs = ground.run(&["job", "logs", "long", "--stderr"]).ok();
    // The first line says that the log was cut.
    let kept = logs.stdout.trim_start_matches(|c| c != '\n');
    assert!(
        kept.trim().len() > 60_000 && kept.trim().bytes().all(|byte| byte == b'x'),
        "{}",
        logs.stdout.len()
    );
    ground.file("bytes.sh", "#!/bin/sh\nprintf 'a\\377\\376\\000b'\n");
    ground
        .run(&["job", "enqueue", "bytes.sh", "--id", "bytes"])
        .ok();
    let output = ground.command(&["job", "wait", "bytes"]).output().unwrap();
    assert_eq!(output.stdout, b"a\xff\xfe\0b\n");
    let record = ground
        .run(&["job", "result", "bytes", "--json"])
        .ok()
        .json();
    assert!(
        record["output"].as_str().unwrap().contains('\u{fffd}'),
        "{record}"
    );
    worker.stop();
}

/// The command as the process 1 of a new pid namespace, as in a container.
fn contained(ground: &Ground, args: &[&str]) -> Running {
    let inner = ground.command(args);
    let mut command = Command::new("unshare");
    command.env_clear().current_dir(ground.path("."));
    for (name, value) in inner.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
    command.arg(inner.get_program()).args(inner.get_args());
    Running::start(command)
}

/// The system ignores signals of the process 1 for which it has no handler.
#[test]
fn the_first_process_of_a_container_stops_in_order() {
    if !need_root("the_first_process_of_a_container_stops_in_order") {
        return;
    }
    let ground = Ground::embedded().unwrap();
    let mut worker = contained(&ground, &["worker", "--json", "--type", "osis"]);
    assert_eq!(json(&worker.line())["event"], "listening");
    let first = eventually("the worker has a process id out here", || {
        let children = format!("/proc/{0}/task/{0}/children", worker.pid());
        let children = fs::read_to_string(children).ok()?;
        children.trim().parse().ok()
    });
    ground.file("a.rhai", "1");
    ground.run(&["job", "enqueue", "a.rhai", "--id", "a"]).ok();
    ground.run(&["job", "wait", "a"]).ok();
    let pid = Pid::from_raw(first).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    worker.ended().ok();
}

/// It waits until the registration has expired, and the live worker has renewed it.
#[test]
fn a_live_worker_of_another_container_keeps_its_name() {
    if !need_root("a_live_worker_of_another_container_keeps_its_name") {
        return;
    }
    let Some(ground) = Ground::redis() else {
        return;
    };
    let args = ["worker", "--json", "--type", "osis", "--instance", "one"];
    let worker = ground.worker(&args[2..]);
    let refused = contained(&ground, &args).ended().exits(3);
    assert!(refused.stderr.contains("one"), "{}", refused.stderr);
    worker.stop();
}
