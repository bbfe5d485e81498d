//! Tags of jobs: given, inherited, shown, and chosen by.

use serde_json::{Value, json};

use crate::common::{Ground, eventually, on_all_data};

fn submit(ground: &Ground, file: &str, id: &str, options: &[&str]) {
    let args = [&["job", "submit", file, "--id", id], options].concat();
    ground.run(&args).ok();
}

fn tags(ground: &Ground, id: &str) -> Value {
    ground.run(&["job", "show", id, "--json"]).ok().json()["tags"].clone()
}

/// The ids of the jobs with these tags, in order.
fn tagged(ground: &Ground, tags: &[&str]) -> Vec<String> {
    let options = tags.iter().flat_map(|tag| ["--tag", tag]);
    let args: Vec<_> = ["job", "list", "--json"]
        .into_iter()
        .chain(options)
        .collect();
    let lines = ground.run(&args).ok().jsons();
    let ids = lines
        .iter()
        .map(|line| line["id"].as_str().unwrap().to_owned());
    let mut ids: Vec<_> = ids.collect();
    ids.sort();
    ids
}

on_all_data! {
    fn tags_are_shown_and_choose(ground: &Ground) {
        ground.file("a.rhai", "1");
        submit(ground, "a.rhai", "both", &["--tag", "team:a", "--tag", "nightly", "--tag", "nightly"]);
        submit(ground, "a.rhai", "one", &["--tag", "nightly"]);
        submit(ground, "a.rhai", "none", &[]);
        assert_eq!(tags(ground, "both"), json!(["nightly", "team:a"]));
        assert_eq!(tags(ground, "none"), json!([]));
        let shown = ground.run(&["job", "show", "both"]).ok().stdout;
        assert!(shown.contains("tags         nightly, team:a\n"), "{shown}");
        assert_eq!(tagged(ground, &["nightly"]), ["both", "one"]);
        assert_eq!(tagged(ground, &["nightly", "team:a"]), ["both"]);
        assert_eq!(tagged(ground, &["night"]), [""; 0]);
        let lines = "{\"tags\":[\"x\"],\"id\":\"l1\"}\n{\"id\":\"l2\"}\n";
        let file = ground.file("jobs.jsonl", lines);
        ground.run(&["job", "submit", "a.rhai", "--tag", "all", "--jsonl", file.to_str().unwrap()]).ok();
        assert_eq!((tags(ground, "l1"), tags(ground, "l2")), (json!(["all", "x"]), json!(["all"])));
        ground.run(&["job", "cancel", "--tag", "team:a", "--yes"]).ok();
        ground.run(&["job", "delete", "--tag", "team:a", "--yes"]).ok();
        assert_eq!(tagged(ground, &["nightly"]), ["one"]);
    }

    fn dead_letters_are_chosen_by_tag(ground: &Ground) {
        ground.file("bad.rhai", "throw \"no\"");
        submit(ground, "bad.rhai", "a", &["--tag", "x"]);
        submit(ground, "bad.rhai", "b", &["--tag", "y"]);
        let worker = ground.worker(&["--type", "osis"]);
        for id in ["a", "b"] {
            ground.run(&["job", "wait", id]).exits(1);
        }
        worker.stop();
        let listed = ground.run(&["dead", "list", "--tag", "x", "--json"]).ok().jsons();
        assert_eq!((listed.len(), &listed[0]["id"], &listed[0]["tags"]), (1, &json!("a"), &json!(["x"])));
        ground.run(&["dead", "delete", "--tag", "x", "--yes"]).ok();
        ground.run(&["dead", "retry", "--tag", "y", "--yes"]).ok();
        assert_eq!(tagged(ground, &["x"]), [""; 0]);
        assert_eq!(tags(ground, "b"), json!(["y"]));
    }

    fn jobs_of_schedules_and_of_run_have_tags(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.run(&["schedule", "add", "s", "--every", "1h", "a.rhai", "--tag", "nightly", "--tag", "a/b"]).ok();
        let shown = ground.run(&["schedule", "show", "s"]).ok().stdout;
        assert!(shown.contains("tags         a/b, nightly\n"), "{shown}");
        let run = ground.run(&["schedule", "run", "s", "--json"]).ok().json();
        assert_eq!(tags(ground, run["id"].as_str().unwrap()), json!(["a/b", "nightly"]));
        ground.run(&["run", "a.rhai", "--tag", "run"]).ok();
        ground.run(&["run", "a.rhai", "--each", "a.rhai", "--tag", "each"]).ok();
        assert_eq!((tagged(ground, &["run"]).len(), tagged(ground, &["each"]).len()), (1, 1));
    }

    fn children_inherit_tags_also_after_kills(ground: &Ground) {
        let reached = ground.path("reached");
        let script = format!(
            "import os, signal\n\
             ids = [submit('1', type='v'), submit('submit(\"1\", #{{\"type\": \"v\"}})', type='osis')]\n\
             if not os.path.exists({reached:?}):\n\
             \x20   open({reached:?}, 'w').close()\n\
             \x20   while True: signal.pause()\n\
             result = ids + [submit('1', type='v')]\n"
        );
        ground.file("p.py", script);
        submit(ground, "p.py", "p", &["--tag", "b", "--tag", "a"]);
        let first = ground.worker(&["--type", "python"]);
        eventually("the run has submitted two", || reached.exists().then_some(()));
        first.kill();
        assert_eq!(tagged(ground, &["a"]), ["p", "p.1", "p.2"]);
        let second = ground.worker(&["--type", "python,osis"]);
        let done = ground.run(&["job", "wait", "p", "--json"]).ok().json();
        assert_eq!(done["output"], json!(["p.1", "p.2", "p.3"]));
        ground.run(&["job", "wait", "p.2"]).ok();
        second.stop();
        assert_eq!(tagged(ground, &["a", "b"]), ["p", "p.1", "p.2", "p.2.1", "p.3"]);
    }

    fn what_is_no_tag_is_refused_by_name(ground: &Ground) {
        ground.file("a.rhai", "1");
        let lines = ground.file("bad.jsonl", "{\"tags\":[\"a b\"]}\n");
        let lines = lines.to_str().unwrap();
        let eleven: Vec<_> = (0..11).map(|n| format!("t{n}")).collect();
        let many: Vec<_> = eleven.iter().flat_map(|tag| ["--tag", tag]).collect();
        let long = "x".repeat(65);
        let before = ground.stored();
        for (args, word) in [
            (&["job", "submit", "a.rhai", "--tag", "a b"][..], "the tag \"a b\" is not possible: give 1 to 64"),
            (&["job", "submit", "a.rhai", "--tag", ""], "--tag"),
            (&["job", "submit", "a.rhai", "--tag", &long], "give 1 to 64"),
            (&["run", "a.rhai", "--tag", "ä"], "the tag \"ä\""),
            (&["schedule", "add", "s", "--every", "1h", "a.rhai", "--tag", "a,b"], "the tag \"a,b\""),
            (&["job", "submit", "a.rhai", "--jsonl", lines], "line 1 of"),
            (&["job", "list", "--tag", "a b"], "the tag \"a b\""),
            (&["job", "delete", "--tag", "", "--yes"], "--tag"),
            (&[&["job", "submit", "a.rhai"][..], &many[..]].concat(), "11 tags are too many: at most 10"),
            (&[&["schedule", "add", "s", "--every", "1h", "a.rhai"][..], &many[..]].concat(), "at most 10"),
        ] {
            let said = ground.run(args).exits(2).stderr;
            assert!(said.contains(word), "{word}: {said}");
        }
        assert_eq!(ground.stored(), before);
        ground.run(&[&["job", "submit", "a.rhai"][..], &many[..20]].concat()).ok();
    }
}
