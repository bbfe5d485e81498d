//! Words and names on the screen: one word for each state, names of queues without their prefix.

use crate::common::{Ground, on_all_data};

/// Commands for a ground with jobs in all states.
const USUAL: [&str; 24] = [
    "job list",
    "job show queued",
    "job show waiting",
    "job show delayed",
    "job show finished",
    "job show failed",
    "job show cancelled",
    "job why queued",
    "job why waiting",
    "job why delayed",
    "job list --queue osis",
    "queue list",
    "queue stats --interval 0.5",
    "queue pause osis",
    "queue resume osis",
    "queue limit set osis --concurrency 5",
    "queue limit show",
    "queue purge osis --dry-run",
    "dead list",
    "dead show failed",
    "worker list",
    "events",
    "schedule list",
    "batch list",
];

/// Enqueues a job of each state; the id is the state.
fn jobs_of_all_states(ground: &Ground) {
    ground.file("a.rhai", "1");
    ground.file("bad.rhai", "throw 1");
    let enqueue = |args: &[&str]| {
        ground.run(&[&["job", "enqueue"], args].concat()).ok();
    };
    enqueue(&["a.rhai", "--id", "finished"]);
    enqueue(&["bad.rhai", "--id", "failed"]);
    let worker = ground.worker(&["--type", "osis"]);
    ground.run(&["job", "wait", "finished"]).ok();
    ground.run(&["job", "wait", "failed"]).exits(1);
    worker.stop();
    enqueue(&["a.rhai", "--id", "queued"]);
    enqueue(&["a.rhai", "--delay", "1h", "--id", "delayed"]);
    enqueue(&["a.rhai", "--depends-on", "queued", "--id", "waiting"]);
    enqueue(&["a.rhai", "--id", "cancelled"]);
    ground.run(&["job", "cancel", "cancelled"]).ok();
}

on_all_data! {
    fn a_state_has_one_word(ground: &Ground) {
        jobs_of_all_states(ground);
        let states = [
            ("queued", "dispatched"), ("delayed", "dispatched"), ("waiting", "waiting_for_prerequisites"),
            ("finished", "finished"), ("failed", "error"), ("cancelled", "error"),
        ];
        let table = ground.run(&["job", "list"]).ok().stdout;
        let jobs = ground.jobs();
        for (state, status) in states {
            let job = jobs.iter().find(|job| job["id"] == state).unwrap();
            assert_eq!((&job["state"], &job["status"]), (&state.into(), &status.into()), "{job}");
            let row = table.lines().find(|line| line.starts_with(state)).unwrap();
            assert_eq!(row.split_whitespace().nth(1), Some(state), "{table}");
            let listed = ground.run(&["job", "list", "--json", "--state", state]).ok().jsons();
            let ids: Vec<_> = listed.iter().map(|job| job["id"].as_str().unwrap()).collect();
            assert_eq!(ids, [state]);
            let shown = ground.run(&["job", "show", state]).ok().stdout;
            assert!(shown.contains(&format!("\nstate        {state}\n")), "{shown}");
            let shown = ground.run(&["job", "show", state, "--json"]).ok().json();
            assert_eq!((&shown["state"], &shown["status"]), (&state.into(), &status.into()), "{shown}");
        }
        let failed = ground.run(&["job", "list", "--failed", "--json"]).ok().jsons();
        assert_eq!(failed.len(), 1, "{failed:?}");
        for word in ["dispatched", "error", "started", "done"] {
            let done = ground.run(&["job", "list", "--state", word]).exits(2);
            assert!(done.stderr.contains("queued, delayed, waiting, running"), "{done:?}");
        }
    }

    fn usual_commands_do_not_name_hero(ground: &Ground) {
        jobs_of_all_states(ground);
        for line in USUAL {
            let words: Vec<_> = line.split(' ').collect();
            let done = ground.run(&words).ok();
            let said = format!("{}{}", done.stdout, done.stderr);
            assert!(!said.to_lowercase().contains("hero"), "{line}: {said}");
        }
        // The key of a queue is there on request.
        let queues = ground.run(&["queue", "list", "--json"]).ok().jsons();
        assert_eq!(queues[0]["queue"], "hero:q:work:type:osis");
        assert!(ground.run(&["queue", "list", "-v"]).ok().stdout.contains("hero:q:work:type:osis"));
        ground.run(&["queue", "limit", "set", "osis", "0"]).ok();
        let done = ground.run(&["job", "enqueue", "a.rhai"]).exits(1);
        assert!(done.stderr.contains("the queue osis holds 0 jobs already"), "{}", done.stderr);
    }
}
