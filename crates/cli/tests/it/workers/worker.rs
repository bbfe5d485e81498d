//! `meshwork worker`: what it says, what it takes, and how it stops.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::available_parallelism;
use std::time::Duration;

use crate::common::{BOUND, Ground, json, on_all_data};
use rustix::process::Signal;

const ENDLESS: &str = "loop { }";

on_all_data! {
    fn it_says_what_it_listens_to_and_stops_in_order(ground: &Ground) {
        for signal in [Signal::TERM, Signal::INT] {
            let mut worker = ground.start(&["worker", "--type", "osis,python", "--group", "g", "--instance", "i"]);
            let said = worker.said();
            for word in ["osis, python", "group g", "instance i"] {
                assert!(said.contains(word), "{said}");
            }
            worker.signal(signal);
            let done = worker.ended().ok();
            assert_eq!(done.stdout, "");
        }
    }

    fn as_json_it_says_so_on_stdout(ground: &Ground) {
        let mut worker = ground.start(&["worker", "--json", "--type", "osis"]);
        let event = json(&worker.line());
        assert_eq!((&event["event"], &event["types"]), (&json("\"listening\""), &json("[\"osis\"]")));
        let events = worker.stop().jsons();
        assert_eq!(events[1], serde_json::json!({"event": "stopped", "worker": event["worker"], "released": 0}));
    }

    fn what_it_runs_goes_back_at_no_cost(ground: &Ground) {
        ground.file("endless.rhai", ENDLESS);
        let worker = ground.worker(&["--type", "osis", "--shutdown-timeout", "0"]);
        let id = ground.run(&["job", "submit", "endless.rhai"]).ok().stdout.trim().to_owned();
        ground.job_that_is("running");
        assert_eq!(worker.stop().jsons()[1]["released"], 1);
        let job = ground.run(&["job", "status", &id, "--json"]).ok().json();
        assert_eq!((job["status"].as_str(), &job["attempts"]), (Some("dispatched"), &json("0")));
    }

    fn what_it_runs_may_end_within_its_grace(ground: &Ground) {
        ground.file("endless.rhai", ENDLESS);
        let worker = ground.worker(&["--type", "osis", "--shutdown-timeout", "60"]);
        let id = ground.run(&["job", "submit", "endless.rhai", "--timeout", "1"]).ok().stdout.trim().to_owned();
        ground.job_that_is("running");
        assert_eq!(worker.stop().jsons()[1]["released"], 0);
        let job = ground.run(&["job", "status", &id, "--json"]).ok().json();
        assert_eq!(job["error"], "timeout");
    }

    fn a_second_signal_releases_its_jobs_at_once(ground: &Ground) {
        ground.file("endless.rhai", ENDLESS);
        let mut worker = ground.worker(&["--type", "osis", "--shutdown-timeout", "600"]);
        ground.run(&["job", "submit", "endless.rhai"]).ok();
        let id = ground.job_that_is("running");
        worker.signal(Signal::TERM);
        assert!(worker.said().contains("repeat the signal"));
        worker.signal(Signal::TERM);
        assert_eq!(worker.ended().exits(143).jsons()[1]["released"], 1);
        let job = ground.run(&["job", "status", &id, "--json"]).ok().json();
        assert_eq!((&job["state"], &job["attempts"]), (&json("\"queued\""), &json("0")));
    }

    fn a_job_for_one_instance_waits_for_it(ground: &Ground) {
        ground.file("a.rhai", "1");
        let args = ["job", "submit", "a.rhai", "--instance", "two"];
        let id = ground.run(&args).ok().stdout.trim().to_owned();
        let one = ground.worker(&["--type", "osis", "--instance", "one"]);
        let two = ground.worker(&["--type", "osis", "--instance", "two"]);
        let job = ground.run(&["job", "wait", &id, "--json"]).ok().json();
        assert!(job["worker"].as_str().unwrap().starts_with("two."), "{job}");
        for worker in [one, two] {
            worker.stop();
        }
    }

    fn a_type_without_a_runtime_is_refused(ground: &Ground) {
        let done = ground.run(&["worker", "--type", "osis,ruby"]).exits(2);
        assert!(done.stderr.contains("`ruby`") && done.stderr.contains("osis, python"), "{}", done.stderr);
    }
}

on_all_data! {
    fn a_job_has_its_log_file_where_the_worker_allows_it(ground: &Ground) {
        std::fs::create_dir(ground.path("logs")).unwrap();
        ground.file("a.rhai", r#"print("with " + ENV["API_KEY"]); debug("done")"#);
        let worker = ground.worker(&["--type", "osis", "--log-dir", "logs", "--cancel-grace", "1"]);
        let submitted = |path: &str| {
            let args = ["job", "submit", "a.rhai", "--env", "API_KEY=hunter22", "--log-path", path];
            ground.run(&args).ok().stdout.trim().to_owned()
        };
        let id = submitted("of/today.log");
        ground.run(&["job", "wait", &id]).ok();
        let text = std::fs::read_to_string(ground.path("logs/of/today.log")).unwrap();
        let lines: Vec<_> = text.lines().map(|line| line.split_once(' ').unwrap().1).collect();
        assert_eq!(lines, [format!("{id} stdout with ***"), format!("{id} stderr \"done\"")]);
        let outside = ground.path("out.log");
        let id = submitted(outside.to_str().unwrap());
        let failed = ground.run(&["job", "wait", &id]).exits(1);
        assert!(failed.stderr.contains("is not inside a folder that this worker allows"), "{}", failed.stderr);
        assert!(!outside.exists());
        let refused = ground.run(&["job", "submit", "a.rhai", "--log-path", "../a"]).exits(2);
        assert!(refused.stderr.contains("the log_path \"../a\" is not possible"), "{}", refused.stderr);
        worker.stop();
        let nowhere = ground.run(&["worker", "--type", "osis", "--log-dir", "nowhere"]).exits(2);
        assert!(nowhere.stderr.contains("the folder for log files nowhere: "), "{}", nowhere.stderr);
    }

    fn a_second_one_of_a_name_is_refused_and_those_that_are_there_are_listed(ground: &Ground) {
        let args = ["--type", "osis", "--instance", "one"];
        let one = ground.worker(&args);
        let refused = ground.run(&["worker", "--type", "osis", "--instance", "one"]).exits(2);
        assert!(refused.stderr.contains("osis worker one of group default already"), "{}", refused.stderr);
        let listed = ground.run(&["worker", "list"]).ok().stdout;
        assert!(listed.contains("osis") && listed.contains("one"), "{listed}");
        let workers = ground.run(&["worker", "list", "--json"]).ok().jsons();
        assert_eq!((workers.len(), &workers[0]["instance"]), (1, &json("\"one\"")));
        assert_eq!((&workers[0]["slots"], &workers[0]["in_flight"]), (&json("10"), &json("0")));
        one.stop();
        assert_eq!(ground.run(&["worker", "list", "--json"]).ok().stdout, "");
    }

    fn without_a_type_there_is_nothing_to_start(ground: &Ground) {
        let done = ground.run(&["worker"]).exits(2);
        assert!(done.stderr.contains("--type"), "{}", done.stderr);
    }
}

/// A script of the engine that takes all the time that scripts have: 5 seconds.
const HOLDS_UP: &[u8] = b"*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n";

/// No answer for so long: the engine is busy.
const SILENCE: Duration = Duration::from_millis(200);

/// A machine that does nothing for 5 seconds proves nothing.
const TRIALS: usize = 3;

/// Runs two such scripts for each thread of a worker that owns the data; returns when it answers nobody.
fn hold_up(socket: &Path) -> Vec<UnixStream> {
    let threads = available_parallelism().unwrap().get();
    let mut streams: Vec<_> = (0..2 * threads)
        .map(|_| UnixStream::connect(socket).unwrap())
        .collect();
    for stream in &mut streams {
        stream.set_read_timeout(Some(BOUND)).unwrap();
        stream.write_all(HOLDS_UP).unwrap();
    }
    let mut probe = UnixStream::connect(socket).unwrap();
    probe.set_read_timeout(Some(SILENCE)).unwrap();
    loop {
        probe.write_all(b"PING\r\n").unwrap();
        match probe.read_exact(&mut [0; b"+PONG\r\n".len()]) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return streams,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_second_signal_ends_it_also_while_a_script_holds_up_all_threads() {
    let in_time = (0..TRIALS).any(|_| {
        let ground = Ground::embedded().unwrap();
        let mut worker = ground.worker(&["--type", "osis"]);
        let streams = hold_up(&ground.path("data/redis.sock"));
        worker.signal(Signal::TERM);
        assert!(worker.said().contains("repeat the signal"));
        worker.signal(Signal::TERM);
        worker.ended().exits(143);
        // It has waited for none of the scripts.
        streams.into_iter().all(|mut stream| {
            let mut replies = Vec::new();
            stream.read_to_end(&mut replies).ok();
            replies.is_empty()
        })
    });
    assert!(in_time, "each time a script ended before the worker did");
}
