//! `queue` by the API, as on the store.

use serde_json::{Value, json};

use super::Far;
use crate::common::{Ground, eventually, on_all_data, on_both};

on_all_data! {
    fn queue(ground: &Ground) {
        ground.file("a.rhai", "1");
        for _ in 0..3 {
            ground.run(&["job", "enqueue", "a.rhai"]).ok();
        }
        let far = Far::start(ground);
        let json = |args: &[&str]| far.ok(&[args, &["--json"]].concat()).json();
        let near = |args: &[&str]| ground.run(&[args, &["--json"]].concat()).ok().json();
        let list = far.same(&["queue", "list"]);
        assert_eq!((list.len(), &list[0]["waiting"]), (1, &json!(3)));
        assert_eq!(far.ok(&["queue", "list"]).stdout, ground.run(&["queue", "list"]).ok().stdout);
        // Each change answers as on the store, where it is seen.
        let show = ["queue", "limit", "show", "osis"];
        for (args, field, value) in [
            (&["queue", "pause", "osis"][..], "paused", json!(true)),
            (&["queue", "limit", "set", "osis", "50", "--concurrency", "5", "--rate", "10/s", "--fair", "--memory", "64M"], "limit", json!(50)),
            (&["queue", "set", "osis", "--key-rate", "1/s"], "rate", json!("10/s burst 10")),
            (&["queue", "weight", "osis", "k", "3"], "weights", json!({"k": 3})),
            (&["queue", "weight", "osis", "k", "1"], "weights", json!({})),
            (&["queue", "limit", "remove", "osis", "--rate"], "rate", Value::Null),
            (&["queue", "limit", "remove", "osis"], "concurrency", Value::Null),
            (&["queue", "drain", "osis", "--no-wait"], "waiting", json!(3)),
            (&["queue", "resume", "osis"], "paused", json!(false)),
        ] {
            let answer = json(args);
            assert_eq!(answer[field], value, "{args:?}: {answer}");
            let (there, here) = (far.ok(&show).stdout, ground.run(&show).ok().stdout);
            assert_eq!(there, here, "{args:?}");
            if args[1] != "drain" {
                assert_eq!(answer, near(&show), "{args:?}");
            }
        }
        far.refuses(&["queue", "pause", "osis"]);
        far.run("admin", &["queue", "pause", "osys"]).exits(5);
        far.ok(&["queue", "pause", "osys", "--create"]);
        far.ok(&["queue", "resume", "--all", "--yes"]);
        assert_eq!(json(&["queue", "purge", "osis", "--dry-run"]), near(&["queue", "purge", "osis", "--dry-run"]));
        far.run("admin", &["queue", "purge", "osis"]).exits(2);
        let purged = far.ok(&["queue", "purge", "osis", "--yes"]);
        assert!(purged.stderr.contains("3 jobs deleted"), "{}", purged.stderr);
        eventually("the queue is empty there, too", || {
            let args = ["queue", "drain", "osis", "--json"];
            (far.ok(&args).json()["waiting"] == 0).then_some(())
        });
        far.stop();
    }

    fn alert(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.run(&["job", "enqueue", "a.rhai"]).ok();
        let far = Far::start(ground);
        let show = ["queue", "alert", "show", "osis"];
        far.run("admin", &show).exits(5);
        let set = ["queue", "alert", "set", "osis", "--after", "3", "--job", "a.rhai", "--tag", "t"];
        far.refuses(&set);
        assert_eq!(far.ok(&[&set[..], &["--json"]].concat()).json()["after"], 3);
        far.same(&show);
        assert_eq!(far.ok(&show).stdout, ground.run(&show).ok().stdout);
        let typo = ["queue", "alert", "set", "osys", "--after", "3", "--job", "a.rhai"];
        let refused = far.run("admin", &typo).exits(5).stderr;
        assert!(refused.contains("did you mean `osis`"), "{refused}");
        far.ok(&["queue", "alert", "remove", "osis"]);
        far.run("admin", &["queue", "alert", "remove", "osis"]).exits(5);
        far.stop();
    }

    fn lines(ground: &Ground) {
        let far = Far::start(ground);
        ground.file("a.rhai", "1");
        ground.file("lines.jsonl", "{\"id\":\"a\",\"script\":\"1\",\"type\":\"osis\"}\n{\"id\":\"b\",\"script\":\"2\",\"type\":\"osis\",\"delay\":\"1h\"}\n");
        let enqueue = ["job", "enqueue", "--jsonl", "lines.jsonl"];
        far.refuses(&enqueue);
        let done = far.ok(&enqueue);
        assert_eq!((&*done.stdout, &*done.stderr), ("a stored\nb stored\n", "2 of 2 jobs stored\n"));
        let again = far.ok(&[&enqueue[..], &["--json"]].concat()).jsons();
        assert_eq!(again[1], json!({"line": 2, "id": "b", "result": "exists"}));
        far.has_event("b", "enqueue");
        ground.run(&["queue", "drain", "osis", "--no-wait"]).ok();
        ground.file("more.jsonl", "{\"id\":\"c\",\"script\":\"1\",\"type\":\"osis\"}\n");
        let refused = far.run("admin", &["job", "enqueue", "--jsonl", "more.jsonl"]).exits(1);
        assert_eq!(refused.stdout, "c draining\n");
        ground.file("wrong.jsonl", "{\"id\":\"d\",\"script\":\"1\",\"type\":\"osis\"}\n{\"tpye\":\"osis\"}\n");
        let wrong = far.run("admin", &["job", "enqueue", "--jsonl", "wrong.jsonl"]).exits(2);
        assert!(wrong.stderr.contains("line 2") && wrong.stderr.contains("nothing was submitted"), "{}", wrong.stderr);
        far.run("admin", &["job", "enqueue", "--jsonl", "lines.jsonl", "--context", "1"]).exits(2);
        far.stop();
    }
}

#[test]
fn spread() {
    on_both(|ground| {
        let far = super::contexts::far(ground);
        let spread = ["queue", "spread", "osis", "--parts", "2"];
        far.refuses(&spread);
        assert_eq!(far.ok(&spread).stdout.lines().count(), 3);
        for args in [&["queue", "spread"][..], &["queue", "spread", "osis"]] {
            assert_eq!(far.same(args).len(), 2);
            assert_eq!(far.ok(args).stdout, ground.run(args).ok().stdout);
        }
        far.stop();
    });
}
