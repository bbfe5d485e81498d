//! `meshwork export` and `meshwork import`: a store moves whole, whoever is killed meanwhile.

use std::fs;

use serde_json::{Value, json};

use meshwork_test_servers::servers::RealServer;

use crate::common::{Ground, Running, eventually};

/// A store with something of all kinds.
fn fill(ground: &Ground, jobs: usize) {
    ground.file("one.rhai", "1");
    ground.file("bad.rhai", "throw \"no\"");
    ground.file("use.rhai", "INPUTS.first + 1");
    ground
        .run(&[
            "queue",
            "limit",
            "set",
            "osis",
            "--create",
            "--concurrency",
            "3",
            "--fair",
        ])
        .ok();
    for (id, file, more) in [
        ("done", "one.rhai", &[][..]),
        ("dead", "bad.rhai", &["--retries", "0"]),
    ] {
        ground
            .run(&[&["job", "submit", file, "--id", id], more].concat())
            .ok();
    }
    let worker = ground.worker(&["--type", "osis"]);
    ground.run(&["job", "wait", "done"]).ok();
    ground.run(&["job", "wait", "dead"]).exits(1);
    worker.stop();
    ground
        .run(&["batch", "create", "--id", "b", "--on-done", "one.rhai"])
        .ok();
    ground
        .run(&["batch", "add", "b", "one.rhai", "one.rhai"])
        .ok();
    ground.run(&["batch", "seal", "b"]).ok();
    ground
        .run(&[
            "schedule",
            "add",
            "nightly",
            "--cron",
            "30 2 * * *",
            "one.rhai",
        ])
        .ok();
    let lines: String = (0..jobs)
        .map(|n| {
            let priority = ["high", "normal", "low"][n % 3];
            format!("{{\"type\":\"osis\",\"script\":\"{n}\",\"id\":\"j{n}\",\"priority\":\"{priority}\"}}\n")
        })
        .collect();
    let file = ground.file("jobs.jsonl", lines);
    ground
        .run(&["job", "submit", "--jsonl", file.to_str().unwrap()])
        .ok();
    for more in [
        &["--id", "late", "--delay", "1h", "--unique", "name"][..],
        &[
            "--id", "tenant", "--key", "a", "--tag", "team:a", "--tag", "x",
        ],
        &["--id", "after", "--depends-on", "first=tenant"],
    ] {
        let file = if more.contains(&"after") {
            "use.rhai"
        } else {
            "one.rhai"
        };
        ground
            .run(&[&["job", "submit", file][..], more].concat())
            .ok();
    }
}

/// All that is to be the same, sorted.
fn content(ground: &Ground) -> Vec<String> {
    let mut all = Vec::new();
    for job in ground.run(&["job", "list", "--json"]).ok().jsons() {
        let id = job["id"].as_str().unwrap().to_owned();
        let shown = ground.run(&["job", "show", &id, "--json"]).ok().stdout;
        all.push(shown);
    }
    for args in [
        &["dead", "list", "--json"][..],
        &["batch", "list", "--json"],
        &["schedule", "list", "--json"],
        &["queue", "limit", "show", "osis", "--json"],
    ] {
        all.extend(ground.run(args).ok().stdout.lines().map(str::to_owned));
    }
    all.sort();
    all
}

fn export(ground: &Ground) -> String {
    let file = ground.path("export");
    ground.run(&["export", file.to_str().unwrap()]).ok();
    file.to_str().unwrap().to_owned()
}

/// Lines without those that a walk gives in any order.
fn sorted(file: &str) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("{\"end\""));
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// From one store to the other; the other then runs all jobs, in their order.
fn moves(from: &Ground, to: &Ground) {
    fill(from, 30);
    let file = export(from);
    let said = to.run(&["import", &file]).ok();
    assert!(
        said.stderr
            .contains("batches: 1 imported, 0 existed already"),
        "{said:#?}"
    );
    assert_eq!(content(from), content(to));
    let again = to.run(&["import", &file, "--json"]).ok().json();
    assert_eq!(
        (
            &again["jobs"],
            &again["batches"],
            &again["schedules"],
            &again["settings"]
        ),
        (&json!(0), &json!(0), &json!(0), &json!(0))
    );
    assert_eq!(content(from), content(to));
    let back = export(to);
    assert_eq!(sorted(&file), sorted(&back));
    // The unique name is taken.
    to.file("one.rhai", "1");
    assert_eq!(
        to.run(&["job", "submit", "one.rhai", "--unique", "name"])
            .ok()
            .stdout,
        "late\n"
    );
    let worker = to.worker(&["--type", "osis", "--concurrency", "1"]);
    to.run(&["batch", "status", "b", "--watch"]).ok();
    to.run(&["job", "wait", "after"]).ok();
    let after = to.run(&["job", "show", "after", "--json"]).ok().json();
    assert_eq!(after["output"], json!(2));
    to.run(&["job", "wait", "j29"]).ok();
    worker.stop();
    let ended = |n: usize| {
        let job = to
            .run(&["job", "show", &format!("j{n}"), "--json"])
            .ok()
            .json();
        assert_eq!(
            (&job["status"], &job["output"], &job["attempts"]),
            (&json!("finished"), &json!(n), &json!(1))
        );
        job["updated_at"].as_str().unwrap().to_owned()
    };
    for level in 0..3 {
        let times: Vec<_> = (0..10).map(|n| ended(3 * n + level)).collect();
        assert!(times.is_sorted(), "{times:?}");
    }
}

#[test]
fn a_store_moves_from_a_folder_to_a_server_and_back() {
    let (Some(folder), Some(server)) = (Ground::embedded(), Ground::redis()) else {
        return;
    };
    moves(&folder, &server);
    let (Some(server), Some(folder)) = (Ground::redis(), Ground::embedded()) else {
        return;
    };
    moves(&server, &folder);
}

/// Jobs enough that an import takes a while; `MESHWORK_TRANSFER_JOBS` sets another number for a long check.
fn many() -> usize {
    let given = std::env::var("MESHWORK_TRANSFER_JOBS").ok();
    given.map_or(5_000, |number| number.parse().unwrap())
}

fn killed_in_the_middle(from: &Ground, to: &Ground) {
    let line = |n| format!("{{\"type\":\"osis\",\"script\":\"{n}\",\"id\":\"j{n}\"}}\n");
    let lines: String = (0..many()).map(line).collect();
    let file = from.file("jobs.jsonl", lines);
    from.run(&["job", "submit", "--jsonl", file.to_str().unwrap()])
        .ok();
    let whole = export(from);
    // An export that was killed leaves no file behind that is not whole.
    let other = from.path("killed");
    let exporting = from.start(&["export", other.to_str().unwrap()]);
    exporting.kill();
    assert!(!other.exists() || sorted(other.to_str().unwrap()) == sorted(&whole));
    let importing = to.start(&["import", &whole]);
    eventually("some jobs are there", || {
        to.run(&["job", "show", "j0"])
            .code
            .filter(|code| *code == 0)
    });
    importing.kill();
    to.run(&["import", &whole]).ok();
    assert_eq!(sorted(&whole), sorted(&export(to)));
}

#[test]
fn an_import_that_was_killed_is_repeated_into_a_server() {
    let (Some(folder), Some(server)) = (Ground::embedded(), Ground::redis()) else {
        return;
    };
    killed_in_the_middle(&folder, &server);
}

#[test]
fn an_import_that_was_killed_is_repeated_into_a_folder() {
    let (Some(from), Some(to)) = (Ground::embedded(), Ground::embedded()) else {
        return;
    };
    killed_in_the_middle(&from, &to);
}

crate::common::on_all_data! {
    fn running_jobs_are_refused_or_waited_for(ground: &Ground) {
        let go = ground.path("go");
        ground.file("wait.sh", format!("#!/bin/sh\nuntil [ -e {} ]; do sleep 0.01; done\necho 1", go.display()));
        let worker = ground.worker(&["--type", "exec"]);
        ground.run(&["job", "submit", "wait.sh", "--id", "w"]).ok();
        ground.job_that_is("running");
        let file = ground.path("export");
        let file = file.to_str().unwrap();
        let refused = ground.run(&["export", file]).exits(1);
        assert!(refused.stderr.contains("1 running job,"), "{refused:#?}");
        assert!(refused.stderr.contains("--wait"), "{refused:#?}");
        ground.run(&["export", file, "--wait=300ms"]).exits(1);
        assert!(!ground.path("export").exists());
        let waiting = ground.start(&["export", file, "--wait"]);
        fs::write(&go, "").unwrap();
        waiting.ended().ok();
        assert!(fs::read_to_string(file).unwrap().contains("\"finished\""));
        worker.stop();
    }

    fn bad_files_are_refused_and_nothing_is_imported(ground: &Ground) {
        let source = Ground::embedded().unwrap();
        source.file("one.rhai", "1");
        source.run(&["job", "submit", "one.rhai", "--id", "a"]).ok();
        source.run(&["job", "submit", "one.rhai", "--id", "b"]).ok();
        let good = fs::read_to_string(export(&source)).unwrap();
        let lines: Vec<_> = good.lines().collect();
        let job = lines.iter().position(|line| line.contains("\"job\"")).unwrap() + 1;
        let cut = &good[..good.len() - 10];
        let without_end = lines[..lines.len() - 1].join("\n") + "\n";
        let bad = good.replacen("\"status\":\"dispatched\"", "\"status\":\"started\"", 1);
        let fewer = [&lines[..1], &lines[2..]].concat().join("\n");
        for (text, said) in [
            (String::new(), "cut off".to_owned()),
            ("hello\n".to_owned(), "line 1 is not the beginning".to_owned()),
            (cut.to_owned(), "it was cut off".to_owned()),
            (without_end, "it was cut off".to_owned()),
            (good.replacen("{\"job\"", "{\"jab\"", 1), format!("line {job}: ")),
            (bad, format!("line {job}: job ")),
            (good.replacen("\"version\":1", "\"version\":2", 1), "version 2".to_owned()),
            (good.replacen("\"prefix\":\"hero:\"", "\"prefix\":\"other:\"", 1), "--namespace other".to_owned()),
            (fewer, "by its last one".to_owned()),
            (format!("{good}{good}"), format!("line {}", lines.len() + 1)),
        ] {
            let file = ground.file("bad", text);
            let refused = ground.run(&["import", file.to_str().unwrap()]).exits(2);
            assert!(refused.stderr.contains(&said), "{said}: {refused:#?}");
        }
        let gone = ground.run(&["import", "no-such-file"]).exits(2);
        assert!(gone.stderr.contains("no-such-file"), "{gone:#?}");
        assert_eq!(ground.jobs(), Vec::<Value>::new());
        let file = ground.file("good", &good);
        let mut command = ground.command(&["import", "-"]);
        command.stdin(fs::File::open(file).unwrap());
        assert!(command.status().unwrap().success());
        assert_eq!(ground.jobs().len(), 2);
    }
}

/// Jobs that a server gets beside those of the data directory.
const OF_THE_SERVER: usize = 1;

#[test]
fn all_jobs_come_back_from_a_server_that_took_the_data_directory_over() {
    for options in [RealServer::redis(), RealServer::valkey()] {
        let ground = Ground::embedded().unwrap();
        let lines: String = (0..200)
            .map(|n| format!("{{\"type\":\"osis\",\"script\":\"{n}\",\"id\":\"j{n}\"}}\n"))
            .collect();
        ground.file("jobs.jsonl", lines);
        ground
            .run(&["job", "enqueue", "--jsonl", "jobs.jsonl"])
            .ok();
        let data = ground.path("data");
        let dir = ["--dir", data.to_str().unwrap()];
        let Some(mut server) = options.append_only().args(&dir).start() else {
            continue;
        };
        ground.file("a.rhai", "1");
        let mut command = ground.command(&["job", "enqueue", "a.rhai"]);
        command.env("REDIS_URL", server.url());
        Running::start(command).ended().ok();
        server.kill9();
        let refused = ground.run(&["job", "list"]).exits(3);
        let remedy = format!("meshwork import --aof {}", data.display());
        assert!(refused.stderr.contains(&remedy), "{refused:?}");
        let done = ground
            .run(&["import", "--aof", data.to_str().unwrap(), "--json"])
            .ok();
        assert_eq!(done.json()["files"], 2);
        let all = ground
            .run(&["job", "list", "--json", "--limit", "1000"])
            .ok();
        assert_eq!(all.jsons().len(), 200 + OF_THE_SERVER);
    }
}

#[test]
fn append_only_files_are_not_imported_into_a_server() {
    let ground = Ground::url("redis://127.0.0.1:1");
    let done = ground.run(&["import", "--aof", "."]).exits(2);
    assert!(done.stderr.contains("data directory"), "{done:?}");
}

#[test]
fn a_foreign_list_under_the_name_of_a_job_is_left_out_by_name() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    ground.file("a.rhai", "1");
    ground.run(&["job", "enqueue", "a.rhai", "--id", "a"]).ok();
    ground.raw("RPUSH hero:job:notes remember the milk");
    let done = ground.run(&["export", "store.jsonl"]).ok();
    assert!(done.stderr.contains("hero:job:notes is a list"), "{done:?}");
    ground.raw("RPUSH hero:job:old_actor a");
    let done = ground.run(&["export", "no/such/folder.jsonl"]).exits(6);
    assert!(
        done.stderr.contains("cannot write no/such/folder.jsonl"),
        "{done:?}"
    );
    let done = ground.run(&["export", "store.jsonl"]).exits(1);
    assert!(done.stderr.contains("hero:job:old_actor"), "{done:?}");
}
