//! `queue` by the API, as on the store.

use serde_json::{Value, json};

use super::Far;
use crate::common::{Ground, eventually, on_all_data};

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
}
