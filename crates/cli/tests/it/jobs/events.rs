//! `meshwork events`: who did what to which job, and when.

use crate::common::{Ground, json, names, on_all_data};
use serde_json::Value;

fn events(ground: &Ground, options: &[&str]) -> Vec<Value> {
    let args = [&["events", "--json"], options].concat();
    ground.run(&args).ok().jsons()
}

fn words<'a>(events: &'a [Value], of: &str) -> Vec<&'a str> {
    let mine = events.iter().filter(|event| event["job"] == of);
    mine.map(|event| event["event"].as_str().unwrap()).collect()
}

on_all_data! {
    fn the_whole_life_of_a_job(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.run(&["job", "submit", "a.rhai", "--id", "j1"]).ok();
        ground.run(&["job", "submit", "a.rhai", "--id", "j2"]).ok();
        ground.run(&["job", "stop", "j2"]).ok();
        let worker = ground.worker(&["--type", "osis"]);
        ground.run(&["job", "wait", "j1"]).ok();
        let all = events(ground, &[]);
        assert_eq!(words(&all, "j1"), ["enqueue", "claim", "finished"]);
        assert_eq!(words(&all, "j2"), ["enqueue", "error"]);
        assert_eq!(names(&all[0]), ["at", "by", "event", "id", "job", "note"]);
        for event in &all {
            let by = event["by"].as_str().unwrap();
            let worker = ["claim", "finished"].contains(&event["event"].as_str().unwrap());
            let cli = by.strip_prefix("cli:").is_some_and(|place| place.contains('@'));
            assert!(cli != worker && !by.is_empty(), "{event}");
        }
        assert_eq!(words(&events(ground, &["--job", "j1"]), "j2"), [""; 0]);
        assert_eq!(events(ground, &["--limit", "1"]), all[all.len() - 1..]);
        assert_eq!(events(ground, &["--since", "1h"]), all);
        assert!(events(ground, &["--since", "2999-01-01"]).is_empty());
        let text = ground.run(&["events", "--limit", "1"]).ok();
        assert!(text.stderr.contains("there are more"), "{}", text.stderr);
        assert_eq!(text.stdout.lines().count(), 1);
        worker.kill();
    }

    fn what_happens_next_is_told_as_it_happens(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.run(&["job", "submit", "a.rhai", "--id", "before"]).ok();
        let mut all = ground.start(&["events", "-f", "--json"]);
        assert_eq!(json(&all.line())["job"], "before");
        let mut one = ground.start(&["events", "-f", "--json", "--job", "j2"]);
        ground.run(&["job", "submit", "a.rhai", "--id", "j1"]).ok();
        assert_eq!(json(&all.line())["job"], "j1");
        ground.run(&["job", "submit", "a.rhai", "--id", "j2", "--priority", "low"]).ok();
        let event = json(&all.line());
        assert_eq!((&event["job"], &event["event"]), (&json("\"j2\""), &json("\"enqueue\"")));
        assert_eq!(json(&one.line())["job"], "j2");
        all.kill();
        one.kill();
    }
}
