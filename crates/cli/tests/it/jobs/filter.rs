//! The options that choose among jobs, the same for lists and for changes of many jobs; and purging a queue.

use crate::common::{Ground, on_all_data};

fn submit(ground: &Ground, id: &str, options: &[&str]) {
    let script = ground.file(&format!("{id}.rhai"), format!("// {id}\n1"));
    let args = [
        &["job", "submit", script.to_str().unwrap(), "--id", id],
        options,
    ];
    ground.run(&args.concat()).ok();
}

/// The ids of the jobs that these options choose, in order.
fn listed(ground: &Ground, options: &[&str]) -> Vec<String> {
    let args = [&["job", "list", "--json"], options].concat();
    let lines = ground.run(&args).ok().jsons();
    let mut ids: Vec<_> = lines
        .iter()
        .map(|line| line["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

/// Refused, and nothing was written.
fn refused(ground: &Ground, args: &[&str], code: i32, words: &[&str]) {
    let before = ground.stored();
    let done = ground.run(args).exits(code);
    for word in words {
        assert!(done.stderr.contains(word), "{word:?}: {}", done.stderr);
    }
    assert_eq!(ground.stored(), before, "{args:?} wrote something");
}

on_all_data! {
    fn each_option_chooses(ground: &Ground) {
        submit(ground, "plain", &[]);
        submit(ground, "keyed", &["--key", "k"]);
        submit(ground, "grouped", &["--group", "g"]);
        submit(ground, "low", &["--priority", "low"]);
        submit(ground, "late", &["--delay", "1h"]);
        submit(ground, "second", &["--depends-on", "plain"]);
        ground.run(&["batch", "create", "--id", "b"]).ok();
        submit(ground, "member", &["--batch", "b"]);
        for (options, ids) in [
            (&["--key", "k"][..], &["keyed"][..]),
            (&["--group", "g"], &["grouped"]),
            (&["--route", "g"], &["grouped"]),
            (&["--route", "default"], &["keyed", "late", "low", "member", "plain", "second"]),
            (&["--queue", "osis:prio:2"], &["low"]),
            (&["--batch", "b"], &["member"]),
            (&["--state", "delayed"], &["late"]),
            (&["--state", "waiting"], &["second"]),
            (&["--state", "queued"], &["grouped", "keyed", "low", "member", "plain"]),
            (&["--state", "running"], &[]),
            (&["--state", "stale"], &[]),
            (&["--text", "// keyed"], &["keyed"]),
            (&["--text", "nowhere"], &[]),
            (&["--since", "1h", "--key", "k"], &["keyed"]),
            (&["--until", "1h"], &[]),
            (&["--type", "python"], &[]),
        ] {
            assert_eq!(listed(ground, options), ids, "{options:?}");
        }
        for (options, word) in [
            (["--state", "lost"], "queued, delayed"),
            (["--queue", "a b"], "no work queue"),
            (["--text", ""], "it is empty"),
            (["--error", ""], "it is empty"),
            (["--reason", "bored"], "poison"),
            (["--since", "soon"], "give an age"),
            (["--cursor", "x"], "no cursor"),
        ] {
            refused(ground, &[&["job", "list"], &options[..]].concat(), 2, &[word]);
        }
    }

    fn a_list_goes_on_at_its_cursor(ground: &Ground) {
        for number in 0..5 {
            submit(ground, &format!("j{number}"), &[]);
        }
        let (mut ids, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mut args = vec!["job", "list", "--json", "--limit", "2"];
            if let Some(cursor) = &cursor {
                args.extend(["--cursor", cursor]);
            }
            let done = ground.run(&args).ok();
            ids.extend(done.jsons().iter().map(|line| line["id"].as_str().unwrap().to_owned()));
            let next = done.stderr.split("--cursor ").nth(1);
            cursor = next.map(|word| word.trim().to_owned());
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(ids, ["j4", "j3", "j2", "j1", "j0"]);
    }

    fn a_list_of_dead_letters_goes_on_at_its_cursor(ground: &Ground) {
        ground.file("bad.rhai", "throw \"no\"");
        let worker = ground.worker(&["--type", "osis"]);
        for number in 0..5 {
            let id = format!("d{number}");
            ground.run(&["job", "submit", "bad.rhai", "--id", &id]).ok();
            ground.run(&["job", "wait", &id]).exits(1);
        }
        worker.stop();
        let (mut ids, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mut args = vec!["dead", "list", "--json", "--limit", "2"];
            if let Some(cursor) = &cursor {
                args.extend(["--cursor", cursor]);
            }
            let done = ground.run(&args).ok();
            ids.extend(done.jsons().iter().map(|line| line["id"].as_str().unwrap().to_owned()));
            let next = done.stderr.split("--cursor ").nth(1);
            cursor = next.map(|word| word.trim().to_owned());
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(ids, ["d4", "d3", "d2", "d1", "d0"]);
        refused(ground, &["dead", "list", "--cursor", "soon/d1"], 2, &["no cursor"]);
    }

    fn many_jobs_are_retried_and_deleted(ground: &Ground) {
        for id in ["a1", "a2", "b1"] {
            submit(ground, id, &["--key", &id[..1]]);
        }
        submit(ground, "ends", &[]);
        ground.run(&["job", "cancel", "--key", "a", "--yes"]).ok();
        refused(ground, &["job", "retry", "--all"], 2, &["to retry 2 jobs", "--yes"]);
        refused(ground, &["job", "retry"], 2, &["--all"]);
        refused(ground, &["job", "retry", "a1", "--key", "a"], 2, &["--key"]);
        refused(ground, &["job", "retry", "--key", "c", "--yes"], 0, &["no such job"]);
        let dry = ground.run(&["job", "retry", "--all", "--dry-run"]).ok();
        assert!(dry.stdout.contains("a1 meant") && dry.stderr.contains("2 jobs meant"), "{dry:#?}");
        let done = ground.run(&["job", "retry", "--error", "stopped", "--yes"]).ok();
        assert!(done.stdout.contains("a2 queued") && done.stderr.contains("2 jobs queued"), "{done:#?}");
        assert_eq!(listed(ground, &["--state", "cancelled"]), [""; 0]);
        refused(ground, &["job", "delete", "--key", "a"], 2, &["to delete 2 jobs"]);
        let done = ground.run(&["job", "delete", "--key", "a", "-y"]).ok();
        assert!(done.stderr.contains("2 jobs deleted"), "{done:#?}");
        assert_eq!(listed(ground, &[]), ["b1", "ends"]);
        // Jobs that are done run again only where they are named.
        let worker = ground.worker(&["--type", "osis"]);
        ground.run(&["job", "wait", "ends"]).ok();
        worker.kill();
        refused(ground, &["job", "retry", "--all", "--yes"], 0, &["no such job"]);
        let done = ground.run(&["job", "retry", "--state", "finished", "--text", "// ends", "--yes"]).ok();
        assert_eq!(done.stdout, "ends queued\n");
    }

    fn a_queue_is_purged_of_what_waits(ground: &Ground) {
        refused(ground, &["queue", "purge", "osis", "--yes"], 5, &["there is no queue osis"]);
        refused(ground, &["queue", "purge", "a b", "--yes"], 2, &["no work queue"]);
        for id in ["j1", "j2"] {
            submit(ground, id, &[]);
        }
        submit(ground, "urgent", &["--priority", "high"]);
        submit(ground, "late", &["--delay", "1h"]);
        submit(ground, "after", &["--depends-on", "late"]);
        submit(ground, "other", &["--group", "g"]);
        refused(ground, &["queue", "purge", "osis"], 2, &["to delete 3 jobs", "--yes"]);
        let dry = ground.run(&["queue", "purge", "osis", "--dry-run", "--json"]).ok().json();
        assert_eq!(dry["purgeable"], 3);
        let done = ground.run(&["queue", "purge", "osis:prio:0", "--yes"]).ok();
        assert_eq!(done.stdout, "urgent deleted\n");
        let done = ground.run(&["queue", "purge", "osis", "--yes"]).ok();
        assert!(done.stdout.contains("j1 deleted") && done.stderr.contains("2 jobs deleted"), "{done:#?}");
        assert_eq!(listed(ground, &[]), ["after", "late", "other"]);
    }

    /// Jobs that are set aside for the turn of their key wait in the queue too.
    fn a_fair_queue_is_purged_whole(ground: &Ground) {
        let limit = ["queue", "limit", "set", "osis", "--create", "--fair", "--key-concurrency", "1"];
        ground.run(&limit).ok();
        for number in 0..6 {
            submit(ground, &format!("j{number}"), &["--key", "k"]);
        }
        ground.run(&["queue", "purge", "osis", "--yes"]).ok();
        let queues = ground.run(&["queue", "list", "--json"]).ok().jsons();
        let waiting = |line: &serde_json::Value| line["waiting"].as_u64().unwrap() + line["set_aside"].as_u64().unwrap();
        assert_eq!(queues.iter().map(waiting).sum::<u64>(), 0, "{queues:?}");
        assert_eq!(listed(ground, &[]), [""; 0]);
    }
}
