//! `meshwork queue alert`: one job for a series of failures, and one for its end, also while workers are killed.

use serde_json::{Value, json};

use crate::common::{Ground, eventually, on_all_data};

/// The inputs of the alert jobs, the oldest first.
fn alerts(ground: &Ground) -> Vec<Value> {
    let list = ["job", "list", "--tag", "ops", "--json"];
    let jobs = ground.run(&list).ok().jsons();
    let input = |job: &Value| {
        let id = job["id"].as_str().unwrap();
        let shown = ground.run(&["job", "show", id, "--json"]).ok().json();
        let input = &shown["input"];
        match input.as_str() {
            Some(text) => serde_json::from_str(text).unwrap(),
            None => input.clone(),
        }
    };
    let mut inputs: Vec<Value> = jobs.iter().map(input).collect();
    inputs.sort_by_key(|input| input["at"].as_str().unwrap().to_owned());
    inputs
}

fn set(ground: &Ground, after: &str) {
    ground.file("tell.rhai", "INPUT");
    let args = [
        "queue",
        "alert",
        "set",
        "python",
        "--after",
        after,
        "--job",
        "tell.rhai",
        "--tag",
        "ops",
        "--create",
    ];
    let said = ground.run(&args).ok().stdout;
    assert!(
        said.starts_with(&format!("python alert after {after}, 0 failures in a row")),
        "{said}"
    );
}

on_all_data! {
    fn a_series_has_one_alert_although_its_workers_are_killed(ground: &Ground) {
        set(ground, "3");
        ground.file("bad.py", "raise ValueError('no disk')\n");
        ground.file("good.py", "result = 1\n");
        let hangs = format!(
            "import os, signal\n\
             if not os.path.exists({0:?}):\n\
             \x20   open({0:?}, 'w').close()\n\
             \x20   while True: signal.pause()\n\
             raise ValueError('no disk')\n",
            ground.path("hangs")
        );
        ground.file("hangs.py", hangs);
        let worker = || ground.worker(&["--type", "python", "--lease", "0.5"]);
        for n in 1..=5 {
            let running = worker();
            let id = format!("bad{n}");
            ground.run(&["job", "submit", "bad.py", "--id", &id]).ok();
            ground.run(&["job", "wait", &id]).exits(1);
            running.kill();
        }
        // One whose first worker is killed in the middle fails once.
        let running = worker();
        ground.run(&["job", "submit", "hangs.py", "--id", "hangs"]).ok();
        eventually("it runs", || ground.path("hangs").exists().then_some(()));
        running.kill();
        let running = worker();
        ground.run(&["job", "wait", "hangs"]).exits(1);
        let shown = ground.run(&["queue", "alert", "show", "python", "--json"]).ok().json();
        assert_eq!((&shown["failures"], &shown["alerted"], &shown["failed_job"]), (&json!(6), &json!(true), &json!("hangs")));
        let raised = alerts(ground);
        assert_eq!(raised.len(), 1, "{raised:?}");
        assert_eq!((&raised[0]["kind"], &raised[0]["failures"], &raised[0]["job"]), (&json!("alert"), &json!(3), &json!("bad3")));
        assert!(raised[0]["error"].as_str().unwrap().contains("no disk"), "{raised:?}");
        for id in ["good1", "good2"] {
            ground.run(&["job", "submit", "good.py", "--id", id]).ok();
            ground.run(&["job", "wait", id]).ok();
        }
        let raised = alerts(ground);
        let kinds: Vec<_> = raised.iter().map(|input| &input["kind"]).collect();
        assert_eq!(kinds, ["alert", "recovery"]);
        assert_eq!((&raised[1]["failures"], &raised[1]["job"]), (&json!(6), &json!("good1")));
        running.stop();
    }

    fn an_alert_is_shown_removed_and_refused_by_name(ground: &Ground) {
        ground.run(&["queue", "alert", "show", "python"]).exits(5);
        ground.run(&["queue", "alert", "remove", "python"]).exits(5);
        ground.file("tell.rhai", "INPUT");
        let before = ground.stored();
        for (args, word) in [
            (&["python", "--after", "0", "--job", "tell.rhai"][..], "1 to 1000"),
            (&["python", "--after", "1001", "--job", "tell.rhai"], "1 to 1000"),
            (&["python", "--after", "2"], "--job"),
            (&["python", "--job", "tell.rhai"], "--after"),
            (&["python", "--after", "2", "--job", "none.rhai"], "none.rhai"),
        ] {
            let said = ground.run(&[&["queue", "alert", "set"], args].concat()).exits(2).stderr;
            assert!(said.contains(word), "{word}: {said}");
        }
        assert_eq!(ground.stored(), before);
        set(ground, "2");
        let limits = ground.run(&["queue", "limit", "show", "python"]).ok().stdout;
        assert!(limits.contains("alert after 2"), "{limits}");
        ground.run(&["queue", "alert", "remove", "python"]).ok();
        assert_eq!(ground.stored(), before);
    }
}
