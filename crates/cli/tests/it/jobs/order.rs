//! Order and worker of jobs: prerequisites, priorities, limits of queues, fallbacks.

use crate::common::{Ground, on_all_data};
use serde_json::{Value, json};

fn submit(ground: &Ground, id: &str, options: &[&str]) {
    ground.file("a.rhai", "1");
    let args = [&["job", "submit", "a.rhai", "--id", id], options].concat();
    ground.run(&args).ok();
}

fn status(ground: &Ground, id: &str) -> Value {
    ground.run(&["job", "status", id, "--json"]).ok().json()
}

fn waiting(ground: &Ground) -> Vec<(String, u64)> {
    let queues = ground.run(&["queue", "list", "--json"]).ok().jsons();
    let queue = |line: &Value| {
        let name = line["queue"].as_str().unwrap();
        (name.to_owned(), line["waiting"].as_u64().unwrap())
    };
    queues
        .iter()
        .map(queue)
        .filter(|(_, waiting)| *waiting > 0)
        .collect()
}

on_all_data! {
    fn a_job_waits_for_others(ground: &Ground) {
        submit(ground, "first", &[]);
        submit(ground, "second", &[]);
        submit(ground, "last", &["--depends-on", "first", "--depends-on", "second"]);
        let job = status(ground, "last");
        assert_eq!(job["status"], "waiting_for_prerequisites");
        assert_eq!(job["depends_on"], json!(["first", "second"]));
        assert_eq!(job["waits_for"], json!([
            {"id": "first", "status": "dispatched", "state": "queued"}, {"id": "second", "status": "dispatched", "state": "queued"},
        ]));
        assert_eq!(status(ground, "first")["dependents"], json!(["last"]));
        let listed = ["job", "list", "--json", "--state", "waiting"];
        assert_eq!(ground.run(&listed).ok().json()["id"], "last");
        let shown = status(ground, "second");
        let reasons = shown["waits"].clone();
        let place = json!({
            "reason": "position", "queue": "hero:q:work:type:osis", "ahead": 1, "exact": true, "higher": 0,
        });
        assert_eq!(reasons, json!([{"reason": "no_worker", "queue": "hero:q:work:type:osis"}, place]));
        let why = ground.run(&["job", "why", "second", "--json"]).ok().json();
        assert_eq!((&why["waits"], &why["reasons"]), (&reasons, &shown["reasons"]));
        assert!(why["reasons"][1].as_str().unwrap().starts_with("jobs before it in its queue: 1"), "{why}");
        let why = ground.run(&["job", "why", "last"]).ok().stdout;
        assert!(why.contains("it waits for first (queued)\n"), "{why}");
        let text = ground.run(&["job", "status", "second"]).ok().stdout;
        assert!(text.contains("position     jobs before it in its queue: 1\n"), "{text}");
        let text = ground.run(&["job", "status", "last"]).ok().stdout;
        assert!(text.contains("waits for    first (queued)\n"), "{text}");
        assert_eq!(waiting(ground), [("hero:q:work:type:osis".to_owned(), 2)]);
        ground.file("a.rhai", "1");
        let worker = ground.worker(&["--type", "osis"]);
        ground.run(&["job", "wait", "last"]).ok();
        assert_eq!(status(ground, "last")["waits_for"], json!([]));
        worker.kill();
    }

    fn a_failure_is_that_of_those_who_wait_unless_they_go_on(ground: &Ground) {
        submit(ground, "bad", &[]);
        submit(ground, "fails", &["--depends-on", "bad"]);
        submit(ground, "goes-on", &["--depends-on", "bad", "--on-failure", "continue"]);
        ground.run(&["job", "stop", "bad"]).ok();
        let done = ground.run(&["job", "wait", "fails"]).exits(1);
        assert!(done.stderr.contains("prerequisite bad did not finish"), "{}", done.stderr);
        assert_eq!(status(ground, "goes-on")["status"], "dispatched");
        let worker = ground.worker(&["--type", "osis"]);
        ground.run(&["job", "wait", "goes-on"]).ok();
        worker.kill();
        let run = ["run", "a.rhai", "--depends-on", "bad"];
        let done = ground.run(&run).exits(1);
        assert!(done.stderr.contains("prerequisite bad did not finish"), "{}", done.stderr);
    }

    fn waiting_has_a_bound_of_its_own(ground: &Ground) {
        ground.run(&["queue", "pause", "osis", "--create"]).ok();
        submit(ground, "first", &[]);
        submit(ground, "patient", &["--depends-on", "first", "--timeout", "1"]);
        submit(ground, "short", &["--depends-on", "first", "--prerequisite-timeout", "1"]);
        let line = json!({"script": "1", "type": "osis", "id": "line", "depends_on": ["first"], "prerequisite_timeout": 1});
        let file = ground.file("jobs.jsonl", line.to_string()).display().to_string();
        ground.run(&["job", "submit", "--jsonl", &file]).ok();
        let worker = ground.worker(&["--type", "osis"]);
        for id in ["short", "line"] {
            let done = ground.run(&["job", "wait", id]).exits(1);
            assert!(done.stderr.contains("timeout: prerequisite first has not ended"), "{}", done.stderr);
        }
        // Its timeout, which is as long, has passed too.
        assert_eq!(status(ground, "patient")["status"], "waiting_for_prerequisites");
        ground.run(&["queue", "resume", "osis"]).ok();
        ground.run(&["job", "wait", "patient"]).ok();
        worker.kill();
        let alone = ["job", "submit", "a.rhai", "--prerequisite-timeout", "1"];
        ground.run(&alone).exits(2);
    }

    fn routes_are_groups_and_bindings_choose_them(ground: &Ground) {
        ground.file("bindings.yaml", "bindings:\n  - {route: eu, topic: 'orders.eu.#'}\n  \
            - {route: large, payload: {/rows: {from: 100}}}\n  - {route: py, name: 'pyth*'}\ndefault: rest\n");
        ground.file("lines", "{\"payload\": {\"rows\": 100}}\n{\"payload\": 1, \"topic\": \"orders.eu\"}\n\
            {\"payload\": 1, \"route\": \"own\"}\n{\"payload\": 1}\n");
        submit(ground, "routed", &["--route", "gpu"]);
        submit(ground, "plain", &["--route", "default"]);
        let bound = ["--bindings", "bindings.yaml"];
        submit(ground, "named", &[&bound[..], &["--type", "python"]].concat());
        let lines = ["job", "submit", "--jsonl", "lines", "--type", "osis", "--bindings", "bindings.yaml"];
        ground.run(&lines).ok();
        let queues = waiting(ground).into_iter().map(|(queue, _)| queue.replace("hero:q:work:type:", ""));
        let mut queues: Vec<_> = queues.collect();
        queues.sort();
        let expected = ["osis", "osis:group:eu", "osis:group:gpu", "osis:group:large", "osis:group:own",
            "osis:group:rest", "python:group:py"];
        assert_eq!(queues, expected);
        let worker = ground.worker(&["--type", "osis", "--routes", "gpu=3,default=1"]);
        ground.run(&["job", "wait", "routed"]).ok();
        ground.run(&["job", "wait", "plain"]).ok();
        worker.kill();
    }

    fn routes_that_are_none_are_refused(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.file("bad.yaml", "bindings: [{route: 'team@alpha', name: x}]\n");
        for (args, words) in [
            (&["job", "submit", "a.rhai", "--route", "a:b"][..], "routing key"),
            (&["job", "submit", "a.rhai", "--route", "a", "--group", "b"], "cannot be used with"),
            (&["job", "submit", "a.rhai", "--topic", "a..b"], "a word of the topic"),
            (&["job", "submit", "a.rhai", "--bindings", "bad.yaml"], "route of binding 1"),
            (&["job", "submit", "a.rhai", "--bindings", "none.yaml"], "No such file"),
            (&["worker", "--type", "osis", "--routes", "a,a"], "is listed twice"),
            (&["worker", "--type", "osis", "--routes", "a=0"], "no weight"),
        ] {
            let done = ground.run(args).exits(2);
            assert!(done.stderr.contains(words), "{args:?}: {}", done.stderr);
        }
        assert_eq!(ground.stored(), "");
    }

    fn what_is_not_there_cannot_be_waited_for(ground: &Ground) {
        ground.file("a.rhai", "1");
        for command in [&["job", "submit"][..], &["run"]] {
            let args = [command, &["a.rhai", "--depends-on", "nobody"]].concat();
            let done = ground.run(&args).exits(5);
            assert!(done.stderr.contains("depends on job nobody, which does not exist"), "{}", done.stderr);
        }
        assert_eq!(ground.stored(), "");
    }

    fn a_priority_is_a_list_of_its_own(ground: &Ground) {
        for (id, level) in [("j0", "high"), ("j1", "1"), ("j2", "low")] {
            submit(ground, id, &["--priority", level]);
        }
        let queues: Vec<_> = ["", ":prio:0", ":prio:2"]
            .map(|level| (format!("hero:q:work:type:osis{level}"), 1))
            .into();
        assert_eq!(waiting(ground), queues);
        assert_eq!(status(ground, "j0")["priority"], "high");
        assert_eq!(status(ground, "j1")["priority"], "normal");
        // It is taken out of the list that it stands in.
        ground.run(&["job", "stop", "j2"]).ok();
        assert_eq!(waiting(ground), queues[..2]);
        ground.run(&["job", "retry", "j2"]).ok();
        assert_eq!(waiting(ground), queues);
        assert_eq!(ground.run(&["run", "a.rhai", "--priority", "high"]).ok().stdout, "1\n");
    }

    fn a_queue_takes_as_many_as_it_may(ground: &Ground) {
        let set = ground.run(&["queue", "limit", "set", "osis", "2", "--create"]).ok().stdout;
        assert_eq!(set, "osis length 2\n");
        submit(ground, "j1", &[]);
        submit(ground, "j2", &[]);
        let before = ground.stored();
        let done = ground.run(&["job", "submit", "a.rhai", "--id", "j3"]).exits(1);
        for word in ["job j3 is refused", "the queue osis holds 2 jobs already", "queue limit set"] {
            assert!(done.stderr.contains(word), "{word}: {}", done.stderr);
        }
        assert_eq!(ground.stored(), before);
        let each = ["run", "a.rhai", "--each", "a.rhai"];
        assert!(ground.run(&each).exits(1).stderr.contains("is refused"));
        submit(ground, "urgent", &["--priority", "high"]);
        let listed = ground.run(&["queue", "list", "--json"]).ok().jsons();
        assert_eq!((&listed[0]["limit"], &listed[1]["limit"]), (&json!(2), &json!(null)));
        ground.run(&["queue", "limit", "set", "default", "1"]).ok();
        ground.run(&["job", "submit", "a.rhai", "--priority", "high"]).exits(1);
        let shown = ground.run(&["queue", "limit", "show", "--json"]).ok().jsons();
        let shown: Vec<_> = shown.iter().map(|line| (&line["queue"], &line["limit"])).collect();
        let osis = json!("hero:q:work:type:osis");
        assert_eq!(shown, [(&json!("default"), &json!(1)), (&osis, &json!(2))]);
        ground.run(&["queue", "limit", "clear", "hero:q:work:type:osis"]).ok();
        ground.run(&["queue", "limit", "clear", "default"]).ok();
        assert!(ground.run(&["queue", "limit", "show", "--json"]).ok().jsons().is_empty());
        submit(ground, "j3", &[]);
    }

    fn a_job_for_a_worker_that_is_not_there(ground: &Ground) {
        submit(ground, "waits", &["--instance", "w1"]);
        submit(ground, "group", &["--instance", "w1", "--fallback", "group"]);
        submit(ground, "type", &["--instance", "w1", "--fallback", "type"]);
        let osis = "hero:q:work:type:osis";
        assert_eq!(waiting(ground), [
            (osis.to_owned(), 1),
            (format!("{osis}:group:default"), 1),
            (format!("{osis}:group:default:inst:w1"), 1),
        ]);
    }
}

#[test]
fn old_lists_have_a_mark() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    for list in [
        "hero:work_queue:w1",
        "hero:job:actor_queue:osis",
        "hero:job:w1",
        "hero:reply:j",
    ] {
        ground.raw(&format!("LPUSH {list} j"));
    }
    ground.raw("HSET hero:job:j status dispatched");
    submit(&ground, "new", &[]);
    let queues = ground.run(&["queue", "list", "--json"]).ok().jsons();
    let marked: Vec<_> = queues
        .iter()
        .map(|line| {
            (
                line["queue"].as_str().unwrap(),
                line["legacy"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        marked,
        [
            ("hero:job:actor_queue:osis", true),
            ("hero:job:w1", true),
            ("hero:q:work:type:osis", false),
            ("hero:work_queue:w1", true),
        ]
    );
    let table = ground.run(&["queue", "list"]).ok().stdout;
    let old = table
        .lines()
        .find(|line| line.starts_with("hero:job:w1 "))
        .unwrap();
    assert!(old.ends_with("legacy"), "{table}");
}
