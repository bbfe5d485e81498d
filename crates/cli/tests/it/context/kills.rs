//! Job messages between two contexts while supervisors, which run the jobs too, are killed: each job runs, and each
//! message has one result.

use std::collections::BTreeSet;

use crate::common::{BOUND, Ground, Running, eventually, json as of_line};
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::RealServer;

/// Messages that are sent.
const MESSAGES: usize = 200;
/// Supervisors that are killed.
const KILLS: usize = 3;
/// Jobs that one of them runs at once.
const SLOTS: usize = 10;

fn supervisor(ground: &Ground) -> Running {
    let mut supervisor = ground.start(&["supervisor", "--json", "--worker", "osis"]);
    assert_eq!(of_line(&supervisor.line())["event"], "ready");
    supervisor
}

/// Sends a message with a job, as a plain client does.
fn send(plain: &mut Plain, number: usize, now: &str) {
    let key = format!("message:1:{number}");
    let job = format!(
        r#"{{"id": {number}, "caller_id": 1, "script": "{number}", "script_type": "osis"}}"#
    );
    let fields = [
        "message_type",
        "job",
        "target_context",
        "8",
        "created_at",
        now,
        "job",
        &job,
    ];
    let words = [&["HSET", &key], &fields[..]].concat();
    plain.ask::<i64>(&words).unwrap();
    plain.ask::<i64>(&["LPUSH", "msg_out", &key]).unwrap();
}

fn results(plain: &mut Plain) -> usize {
    plain.ask::<usize>(&["LLEN", "msg_in"]).unwrap()
}

#[test]
fn each_message_has_one_result_whoever_is_killed() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    for id in ["7", "8"] {
        ground.run(&["context", "create", "--id", id]).ok();
    }
    // The messages are written by a plain client, without a signature.
    ground
        .run(&["context", "set", "8", "--unsigned", "accept"])
        .ok();
    let mut plain = Plain::connect(&server.url_of(7)).unwrap();
    let (now, _): (u64, u64) = plain.ask(&["TIME"]).unwrap();
    for number in 1..=MESSAGES {
        send(&mut plain, number, &now.to_string());
    }
    // Each is killed when it has brought some results more.
    for _ in 0..KILLS {
        let served = supervisor(&ground);
        let before = results(&mut plain);
        eventually("some results more", || {
            let came = results(&mut plain);
            (came >= MESSAGES.min(before + 20)).then_some(())
        });
        served.kill();
    }
    let last = supervisor(&ground);
    let started = std::time::Instant::now();
    let mut came = results(&mut plain);
    while came < MESSAGES {
        came = eventually("the next result", || {
            let now = results(&mut plain);
            (now > came).then_some(now)
        });
        assert!(started.elapsed() < BOUND * 4, "{came} results");
    }
    eventually("all messages are processed", || {
        let mut statuses = (1..=MESSAGES).map(|number| {
            let key = format!("message:1:{number}");
            plain.ask::<String>(&["HGET", &key, "status"]).unwrap()
        });
        statuses.all(|status| status == "processed").then_some(())
    });
    last.stop().ok();
    let inbox: Vec<String> = plain.ask(&["LRANGE", "msg_in", "0", "-1"]).unwrap();
    let answered: BTreeSet<String> = inbox
        .iter()
        .map(|key| plain.ask(&["HGET", key, "mw_re"]).unwrap())
        .collect();
    assert_eq!((inbox.len(), answered.len()), (MESSAGES, MESSAGES));
    let jobs = ground
        .run(&["job", "list", "--context", "8", "--json", "--limit", "1000"])
        .ok()
        .jsons();
    assert_eq!(jobs.len(), MESSAGES);
    assert!(jobs.iter().all(|job| job["status"] == "finished"));
    let again = jobs.iter().filter(|job| {
        let runs = |name: &str| job[name].as_u64().unwrap_or_default();
        runs("attempts") + runs("lost") > 1
    });
    assert!(
        again.count() <= KILLS * SLOTS,
        "only what was killed runs again"
    );
}

/// Contexts in databases of their own, and in database 0.
const POOLED: [&str; 3] = ["7", "8", "20"];

/// The number of heartbeat threads of a process.
fn heartbeats(pid: u32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    let names = tasks.filter_map(|task| name(task.ok()?).ok());
    names.filter(|name| name.trim() == "meshwork-keep").count()
}

/// A worker of several contexts; it listens in all of them.
fn pooled(ground: &Ground) -> Running {
    let args = ["worker", "--json", "--type", "osis,exec", "--context"];
    let more = ["7,8,20", "--lease", "2", "--concurrency", "4"];
    let mut worker = ground.start(&[&args[..], &more].concat());
    for _ in POOLED {
        assert_eq!(of_line(&worker.line())["event"], "listening");
    }
    worker
}

#[test]
fn jobs_of_all_contexts_of_a_killed_process_run_elsewhere() {
    let servers = [RealServer::redis(), RealServer::valkey()];
    for server in servers.map(|it| it.start()).into_iter().flatten() {
        let ground = Ground::url(server.url());
        let go = ground.path("go");
        let script = format!(
            "#!/bin/sh\nwhile [ ! -e '{}' ]; do sleep 0.05; done\n",
            go.display()
        );
        ground.file("wait.sh", script);
        for id in POOLED {
            ground.run(&["context", "create", "--id", id]).ok();
        }
        let killed = pooled(&ground);
        let clients: String = server.say(&["CLIENT", "LIST"]).unwrap();
        let own = clients
            .lines()
            .filter(|line| line.contains("name=meshwork"));
        assert!(own.count() <= 3, "{clients}");
        assert_eq!(heartbeats(killed.pid()), 1);
        for id in POOLED {
            let args = ["job", "enqueue", "wait.sh", "--context", id];
            ground.run(&args).ok();
        }
        let status = |id: &str| {
            let args = ["job", "show", "1", "--context", id, "--json"];
            ground.run(&args).ok().json()["status"].clone()
        };
        eventually("a job of each context runs", || {
            POOLED
                .iter()
                .all(|id| status(id) == "started")
                .then_some(())
        });
        let other = pooled(&ground);
        killed.kill();
        ground.file("go", "");
        for id in POOLED {
            ground.run(&["job", "wait", "1", "--context", id]).ok();
            assert_eq!(status(id), "finished");
        }
        let said = other.stop().ok().jsons();
        let stopped = said.iter().filter(|line| line["event"] == "stopped");
        let released: Vec<_> = stopped.map(|line| line["released"].as_u64()).collect();
        assert_eq!(released, [Some(0); POOLED.len()]);
    }
}
