//! `meshwork flow run` on a terminal, without one, and with a reader that goes away.

use std::io::pipe;
use std::process::Command;

use rustix::process::Signal;

use crate::common::pty::in_terminal;
use crate::common::{Ground, Running, eventually};

/// A flow whose first job runs until there is a file.
fn waiting() -> Option<Ground> {
    let ground = Ground::embedded()?;
    let go = ground.path("go");
    let script = format!(
        "touch {0}.seen; until test -e {0}; do sleep 0.05; done",
        go.display()
    );
    let flow = format!(
        "flow: slow\njobs:\n  first: {{script: '{script}', type: exec}}\n  second: {{script: '2', type: osis, needs: first}}\n"
    );
    ground.file("slow.yaml", flow);
    Some(ground)
}

/// A flow of 500 jobs.
fn large(ground: &Ground) {
    let mut flow = "flow: large\njobs:\n  root: {script: '1', type: osis}\n".to_owned();
    for job in 1..499 {
        flow.push_str(&format!(
            "  j{job}: {{script: '1', type: osis, needs: root, if: 'false'}}\n"
        ));
    }
    flow.push_str("  last: {script: '\"the end\"', type: osis, needs: root}\noutputs: {end: '{{last.result}}'}\n");
    ground.file("large.yaml", flow);
}

#[test]
fn a_large_flow_is_folded_on_a_terminal() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    large(&ground);
    for colour in [true, false] {
        let mut command = ground.command(&["flow", "run", "large.yaml"]);
        if !colour {
            command.env("NO_COLOR", "1");
        }
        let Some(done) = in_terminal(&command, &[]) else {
            return;
        };
        let done = done.ok();
        let (drawn, end) = done.stdout.rsplit_once("the end").unwrap();
        assert_eq!(end.trim(), "");
        // The cursor goes up before each further drawing.
        let drawings: Vec<&str> = drawn.split("large ").skip(1).collect();
        let last = drawings.last().unwrap();
        assert!(
            last.starts_with("finished: 500 jobs in 2 levels"),
            "{last:?}"
        );
        assert!(last.contains("more jobs"), "{last:?}");
        for drawing in drawings {
            assert!(drawing.lines().count() <= 23, "{drawing:?}");
            let fits = |line: &str| console::measure_text_width(line) < 80;
            assert!(drawing.lines().all(fits), "{drawing:?}");
        }
        let coloured = done.stdout.split('\u{1b}').skip(1).any(|code| {
            let end = code.find(|c: char| c.is_ascii_alphabetic());
            end.is_some_and(|at| code[at..].starts_with('m'))
        });
        assert!(colour || !coloured, "{:?}", done.stdout);
    }
}

#[test]
fn the_flow_ends_though_nobody_reads() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    large(&ground);
    let line = format!(
        "{} flow run large.yaml 2>&1 | head -1",
        env!("CARGO_BIN_EXE_meshwork")
    );
    let with = ground.command::<&str>(&[]);
    let mut shell = Command::new("/bin/sh");
    shell
        .current_dir(with.get_current_dir().unwrap())
        .env_clear();
    for (name, value) in with.get_envs() {
        shell.env(name, value.unwrap());
    }
    shell.args(["-c", &line]);
    let done = Running::start(shell).ended().ok();
    assert_eq!(done.stdout.lines().count(), 1, "{done:#?}");
    let list = ground.run(&["flow", "list", "--json"]).ok().json();
    assert_eq!(list["status"], "finished");
    // The exit code is that of SIGPIPE, as of all commands.
    let mut command = ground.command(&["flow", "run", "large.yaml"]);
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    command.stdout(writer).stderr(std::process::Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(141));
    let status = ground.run(&["flow", "status", "2", "--json"]).ok().json();
    assert_eq!(status["status"], "finished");
}

#[test]
fn ctrl_c_and_q_detach_and_release_the_jobs() {
    let Some(ground) = waiting() else { return };
    let keys = ["\u{3}", "\u{3}\u{3}", "q"];
    for (number, keys) in ["1", "2", "3"].into_iter().zip(keys) {
        // The jobs of the flows before run too.
        let command = ground.command(&["flow", "run", "slow.yaml", "--concurrency", "4"]);
        let Some(done) = in_terminal(&command, &[("▶ first", keys)]) else {
            return;
        };
        let done = done.exits(130);
        for words in [
            &format!("continue flow {number}: `meshwork worker --context 1`"),
            &format!("`meshwork flow cancel {number}` cancels it"),
            " released\r\n",
        ] {
            assert!(done.stdout.contains(words), "{words}: {}", done.stdout);
        }
        let list = ["job", "list", "--context", "1", "--json"];
        let jobs = ground.run(&list).ok().jsons();
        let is_held = |job: &serde_json::Value| job["state"] == "running";
        assert!(!jobs.iter().any(is_held), "{jobs:?}");
    }
    let watch = ground.command(&["flow", "status", "1", "--wait"]);
    let watched = in_terminal(&watch, &[("first", "q")]).unwrap().exits(130);
    assert!(watched.stdout.contains("continue flow 1"), "{watched:?}");
    ground.run(&["flow", "cancel", "3"]).ok();
    ground.file("go", "");
    let worker = ground.worker(&["--context", "1", "--type", "osis,exec"]);
    for number in ["1", "2"] {
        let ended = ["flow", "status", number, "--wait", "--json"];
        assert_eq!(ground.run(&ended).ok().json()["outputs"]["second"], 2);
    }
    worker.stop();
}

#[test]
fn without_a_terminal_an_interrupt_detaches() {
    let Some(ground) = waiting() else { return };
    let running = ground.start(&["flow", "run", "slow.yaml"]);
    let seen = ground.path("go.seen");
    eventually("the first job starts", || seen.exists().then_some(()));
    running.signal(Signal::INT);
    let done = running.ended().exits(130);
    assert!(
        done.stderr.contains(
            "`meshwork flow status 1 --wait` shows it, `meshwork flow cancel 1` cancels it"
        ),
        "{}",
        done.stderr
    );
    let status = ground.run(&["flow", "status", "1", "--json"]).ok().json();
    assert_eq!(status["status"], "started");
}
