//! `meshwork migrate`: the phases from the command line, and what is refused in which words.

use crate::common::{Ground, names, on_all_data};

fn submit(ground: &Ground) -> String {
    ground.file("a.rhai", "40 + 2");
    let done = ground.run(&["job", "submit", "a.rhai"]).ok();
    done.stdout.trim().to_owned()
}

fn migrate(step: &str) -> [&str; 4] {
    ["migrate", step, "--type", "osis"]
}

on_all_data! {
    fn all_phases_in_their_order(ground: &Ground) {
        let started = ground.run(&[&migrate("start")[..], &["--json"]].concat()).ok().json();
        assert_eq!(started["phase"], "dual");
        assert_eq!(started["list"], "hero:job:actor_queue:osis");
        assert_eq!(started["age_s"], 30.0);
        let id = submit(ground);
        let status = ground.run(&["migrate", "status", "--json"]).ok().json();
        let osis = &status["types"][0];
        assert_eq!((&osis["canonical"], &osis["marked"]), (&1.into(), &1.into()));
        assert_eq!(osis["old"][0]["waiting"], 1);
        ground.run(&migrate("canonical-first")).ok();
        let refused = ground.run(&migrate("finish")).exits(1);
        assert!(refused.stderr.contains("hero:job:actor_queue:osis"), "{}", refused.stderr);
        let worker = ground.worker(&["--type", "osis", "--legacy-worker-id", "osis_runner_1"]);
        ground.run(&["job", "wait", &id]).ok();
        let ended = ground.run(&[&migrate("finish")[..], &["--json"]].concat()).ok().json();
        assert_eq!(ended["phase"], "off");
        drop(worker);
    }

    fn a_phase_that_is_left_out_is_refused_and_says_what_to_do(ground: &Ground) {
        for step in ["canonical-first", "finish", "abort"] {
            let refused = ground.run(&migrate(step)).exits(1);
            assert!(refused.stderr.contains("`osis`") && refused.stderr.contains("`start`"), "{}", refused.stderr);
        }
        ground.run(&migrate("start")).ok();
        ground.run(&migrate("start")).ok();
        let refused = ground.run(&migrate("finish")).exits(1);
        assert!(refused.stderr.contains("`canonical-first`"), "{}", refused.stderr);
        let refused = ground.run(&[&migrate("start")[..], &["--age", "7"]].concat()).exits(1);
        assert!(refused.stderr.contains("already"), "{}", refused.stderr);
        ground.run(&migrate("abort")).ok();
        ground.run(&migrate("abort")).exits(1);
    }

    fn bad_values_are_named_and_nothing_is_written(ground: &Ground) {
        for (option, value, words) in [
            ("--list", "hero:jobs", "hero:jobs"),
            ("--list", "hero:job:a b", "a b"),
            ("--list", "hero:work_queue:", "empty"),
            ("--list", "hero:q:work:type:osis", "old lists"),
            ("--age", "0", "age"),
            ("--age", "-1", "age"),
            ("--age", "soon", "soon"),
            ("--type", "o:s", "o:s"),
        ] {
            let mut args = vec!["migrate", "start", option, value];
            if option != "--type" {
                args.extend(["--type", "osis"]);
            }
            let done = ground.run(&args).exits(2);
            assert!(done.stderr.contains(words), "{value}: {}", done.stderr);
        }
        ground.run(&["migrate", "start"]).exits(2);
        assert_eq!(ground.stored(), "");
    }

    fn two_types_on_one_list_are_refused(ground: &Ground) {
        ground.run(&migrate("start")).ok();
        let args = ["migrate", "start", "--type", "sal", "--list", "hero:job:actor_queue:osis"];
        let done = ground.run(&args).exits(2);
        assert!(done.stderr.contains("`osis`"), "{}", done.stderr);
    }

    fn status_is_a_table_or_one_object(ground: &Ground) {
        let list = "hero:work_queue:{actor_id}";
        ground.run(&[&migrate("start")[..], &["--list", list]].concat()).ok();
        let shown = ground.run(&["migrate", "status", "--type", "osis"]).ok().stdout;
        assert!(shown.contains("phase") && shown.contains("dual"), "{shown}");
        let status = ground.run(&["migrate", "status", "--json"]).ok().json();
        assert_eq!(names(&status), ["listeners", "types", "unroutable", "watched"]);
        assert_eq!(status["types"][0]["list"], "hero:work_queue:{worker_id}");
        let other = ground.run(&["migrate", "status", "--json", "--type", "sal"]).ok().json();
        assert_eq!(other["types"], serde_json::json!([]));
    }
}
