//! `message` and `runner`.

use serde_json::{Value, json};

use super::Far;
use super::contexts::far;
use crate::common::{Ground, eventually, on_both};

fn sent(far: &Far<'_>, args: &[&str]) -> String {
    let args = [&["message", "send", "2", "--context", "1"], args].concat();
    let key = far.ok(&args).stdout;
    key.trim().trim_start_matches("message:").to_owned()
}

/// With a second context, which accepts the messages of the API: they have no signature.
fn far_with_two(ground: &Ground) -> Far<'_> {
    let far = far(ground);
    ground.run(&["context", "create"]).ok();
    let accept = ["context", "set", "2", "--unsigned", "accept"];
    ground.run(&accept).ok();
    far
}

#[test]
fn message() {
    on_both(|ground| {
        let far = far_with_two(ground);
        let of = |context: &str| far.same(&["message", "list", "--context", context]);
        let first = sent(&far, &["hello"]);
        assert_eq!(of("1")[0]["message"], "hello");
        eventually("the message arrives", || {
            (!of("2").is_empty()).then_some(())
        });
        let args = ["message", "list", "--context", "2"];
        assert_eq!(far.ok(&args).stdout, ground.run(&args).ok().stdout);
        far.refuses(&["message", "delete", &first, "--context", "1"]);
        far.refuses(&["message", "read", "--context", "2"]);
        let read = far
            .ok(&["message", "read", "--context", "2", "--json"])
            .jsons();
        assert_eq!((read.len(), &read[0]["message"]), (1, &json!("hello")));
        assert_eq!(
            far.ok(&["message", "read", "--context", "2"])
                .stdout
                .lines()
                .count(),
            1
        );
        let outcome = |key: &str| far.ok(&["message", "wait", key, "--context", "1"]).stdout;
        assert_eq!(outcome(&first), format!("message:{first}: processed\n"));
        let deleted = far.ok(&["message", "delete", &first, "--context", "1", "--json"]);
        assert_eq!(
            deleted.json(),
            json!({"message": first, "outcome": "deleted"})
        );
        far.run("admin", &["message", "wait", &first, "--context", "1"])
            .exits(5);
        far.stop();
    });
}

#[test]
fn jobs_of_a_message() {
    on_both(|ground| {
        let far = far_with_two(ground);
        ground.file("a.rhai", "40 + 2");
        // Its jobs wait for a worker.
        let second = sent(&far, &["--job", "a.rhai", "--job", "a.rhai", "--chain"]);
        eventually("the jobs are there", || {
            let jobs: Vec<Value> = far.ok(&["job", "list", "--context", "2", "--json"]).jsons();
            (jobs.len() == 2).then_some(())
        });
        far.run(
            "admin",
            &[
                "message",
                "delete",
                &second,
                "--context",
                "1",
                "--timeout",
                "1s",
            ],
        )
        .exits(2);
        far.run(
            "admin",
            &[
                "message",
                "wait",
                &second,
                "--context",
                "1",
                "--timeout",
                "1s",
            ],
        )
        .exits(4);
        far.run(
            "admin",
            &["message", "cancel", &second, "--context", "1", "--wait"],
        )
        .exits(1);
        let worker = ground.worker(&["--context", "2", "--type", "osis"]);
        let args = [
            "message",
            "send",
            "2",
            "--context",
            "1",
            "--job",
            "a.rhai",
            "--wait",
        ];
        let done = far.ok(&args).stdout;
        assert!(
            done.contains(": processed\n") && done.contains("result=42"),
            "{done}"
        );
        worker.stop();
        far.stop();
    });
}

#[test]
fn runner() {
    on_both(|ground| {
        let far = far(ground);
        assert_eq!(far.same(&["runner", "list"]).len(), 0);
        far.refuses(&["runner", "register", "--type", "osis"]);
        assert_eq!(
            far.ok(&["runner", "register", "--type", "osis,python"])
                .stdout,
            "1\n"
        );
        let other = [
            "runner", "register", "--type", "osis", "--id", "7", "--topic", "t", "--json",
        ];
        assert_eq!(far.ok(&other).json()["topic"], "t");
        assert_eq!(far.same(&["runner", "list"]).len(), 2);
        let args = ["runner", "list"];
        assert_eq!(far.ok(&args).stdout, ground.run(&args).ok().stdout);
        far.stop();
    });
}
