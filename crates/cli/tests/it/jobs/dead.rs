//! `meshwork dead`: what failed for good is listed, shown, run again and forgotten.

use crate::common::{Ground, names, on_all_data};

/// Runs a job of this id that fails for good.
fn fails(ground: &Ground, id: &str, error: &str) {
    let script = format!("throw \"{error}\"");
    ground.file("fails.rhai", script);
    ground
        .run(&["job", "submit", "fails.rhai", "--id", id])
        .ok();
    let worker = ground.worker(&["--type", "osis"]);
    ground.run(&["job", "wait", id]).exits(1);
    worker.kill();
}

/// The ids of the dead letters that these options choose, the newest first.
fn dead(ground: &Ground, options: &[&str]) -> Vec<String> {
    let args = [&["dead", "list", "--json"], options].concat();
    let listed = ground.run(&args).ok().jsons();
    listed
        .iter()
        .map(|line| line["id"].as_str().unwrap().to_owned())
        .collect()
}

on_all_data! {
    fn the_newest_first_and_chosen_by_what_they_are(ground: &Ground) {
        for (id, error) in [("d1", "no disk"), ("d2", "no net"), ("d3", "no disk")] {
            fails(ground, id, error);
        }
        assert_eq!(dead(ground, &[]), ["d3", "d2", "d1"]);
        assert_eq!(dead(ground, &["--error", "disk"]), ["d3", "d1"]);
        assert_eq!(dead(ground, &["--reason", "failed", "--type", "osis"]).len(), 3);
        for none in [["--reason", "poison"], ["--type", "sal"], ["--group", "g"], ["--error", "paper"]] {
            assert_eq!(dead(ground, &none), [""; 0], "{none:?}");
        }
        assert_eq!(dead(ground, &["--newer-than", "1h"]).len(), 3);
        assert_eq!(dead(ground, &["--older-than", "1h"]), [""; 0]);
        assert_eq!(dead(ground, &["--newer-than", "2020-01-01", "--older-than", "2999-01-01"]).len(), 3);
        let done = ground.run(&["dead", "list", "--limit", "2"]).ok();
        assert_eq!(done.stdout.lines().count(), 3, "{}", done.stdout);
        assert!(done.stderr.contains("there are more"), "{}", done.stderr);
        let line = ground.run(&["dead", "list", "--json", "--limit", "1"]).ok().json();
        assert_eq!(line["dead"], "failed");
        assert!(line["died_at"].as_str().unwrap().ends_with('Z'), "{line}");
    }

    fn a_letter_tells_why(ground: &Ground) {
        fails(ground, "d1", "no disk");
        let shown = ground.run(&["dead", "show", "d1", "--json"]).ok().json();
        assert!(names(&shown).contains(&"died_at"));
        assert_eq!((shown["dead"].as_str(), shown["attempts"].as_u64()), (Some("failed"), Some(1)));
        assert!(shown["error"].as_str().unwrap().contains("no disk"));
        let text = ground.run(&["dead", "show", "d1"]).ok().stdout;
        for line in ["dead letter  failed\n", "attempts     1\n", "\ndied         "] {
            assert!(text.contains(line), "{line:?}: {text}");
        }
        ground.file("a.rhai", "1");
        ground.run(&["job", "submit", "a.rhai", "--id", "alive"]).ok();
        let done = ground.run(&["dead", "show", "alive"]).exits(1);
        assert!(done.stderr.contains("job alive is no dead letter"), "{}", done.stderr);
        let done = ground.run(&["dead", "show", "nobody"]).exits(5);
        assert!(done.stderr.contains("there is no job nobody"), "{}", done.stderr);
    }

    fn some_are_run_again_and_some_forgotten(ground: &Ground) {
        for id in ["d1", "d2", "d3"] {
            fails(ground, id, "no disk");
        }
        let done = ground.run(&["dead", "replay", "d1", "nobody"]).exits(5);
        assert_eq!(done.stdout, "d1 queued\n");
        let job = ground.run(&["job", "status", "d1", "--json"]).ok().json();
        assert_eq!((job["status"].as_str(), job["attempts"].as_u64()), (Some("dispatched"), Some(0)));
        let done = ground.run(&["dead", "replay", "d1", "--json"]).exits(1);
        assert_eq!(done.json(), serde_json::json!({"id": "d1", "result": "not_dead"}));
        assert_eq!(ground.run(&["dead", "delete", "d2"]).ok().stdout, "d2 deleted\n");
        ground.run(&["job", "status", "d2"]).exits(5);
        assert_eq!(dead(ground, &[]), ["d3"]);
    }

    fn many_are_changed_only_when_somebody_says_so(ground: &Ground) {
        for id in ["d1", "d2", "d3"] {
            fails(ground, id, if id == "d2" { "no net" } else { "no disk" });
        }
        let before = ground.stored();
        for verb in ["retry", "delete"] {
            for which in [&["--all"][..], &["--error", "disk"], &["--reason", "failed"]] {
                let done = ground.run(&[&["dead", verb], which].concat()).exits(2);
                assert!(done.stderr.contains("--yes") && done.stderr.contains(verb), "{}", done.stderr);
            }
            ground.run(&["dead", verb]).exits(2);
            ground.run(&["dead", verb, "d1", "--all"]).exits(2);
        }
        assert_eq!(ground.stored(), before);
        let done = ground.run(&["dead", "replay", "--error", "disk", "--yes", "--json"]).ok();
        let lines = done.jsons();
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line["result"] == "queued"), "{lines:?}");
        assert!(done.stderr.contains("2 of 2 dead letters"), "{}", done.stderr);
        assert_eq!(dead(ground, &[]), ["d2"]);
        assert_eq!(ground.run(&["dead", "delete", "--all", "--yes"]).ok().stdout, "d2 deleted\n");
        let done = ground.run(&["dead", "delete", "--all", "--yes"]).ok();
        assert!(done.stderr.contains("there is no such dead letter"), "{}", done.stderr);
    }
}

#[test]
fn a_letter_whose_record_is_gone_can_be_forgotten() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    ground.raw("ZADD hero:q:dead 1000 gone");
    assert_eq!(dead(&ground, &[]), ["gone"]);
    let done = ground.run(&["dead", "replay", "gone"]).exits(1);
    assert!(
        done.stderr.contains("job gone has no record"),
        "{}",
        done.stderr
    );
    ground.run(&["dead", "delete", "gone"]).ok();
    assert_eq!(ground.stored(), "");
}

#[test]
fn pages_of_one_and_the_same_moment() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    const MANY: usize = 2500;
    let ids: Vec<_> = (0..MANY).map(|n| format!("5000 d{n:04}")).collect();
    for chunk in ids.chunks(500) {
        ground.raw(&format!("ZADD hero:q:dead {}", chunk.join(" ")));
    }
    let mut listed = dead(&ground, &["--limit", "100000"]);
    assert!(listed.is_sorted_by(|a, b| a > b));
    listed.dedup();
    assert_eq!(listed.len(), MANY);
    let done = ground
        .run(&["dead", "delete", "--all", "--yes", "--json"])
        .ok();
    assert_eq!(done.jsons().len(), MANY);
    assert_eq!(ground.stored(), "");
}
