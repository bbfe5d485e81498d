//! No key that other systems share gets an end, a field or a member that it would not have without ours. Each case plays
//! the same on two databases: on one with ours, on the other with a program of the other system, to the letter, and
//! compares what is left. What may differ is a table, which docs/footprint.md shows.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use crate::common::{Ground, Running, eventually, json};
use meshwork_conformance::footprint::{EXCEPTIONS, unexplained};
use meshwork_test_servers::plain::Plain;

/// Exceptions that each case has met: an exception that no case meets is wrong.
type Met = BTreeSet<&'static str>;

/// Plays `before` on both sides, then ours on one and theirs on the other, and compares.
fn compared(before: &str, ours: impl Fn(&Ground), theirs: &str) -> Option<Met> {
    let sides = [Ground::redis()?, Ground::redis()?];
    for side in &sides {
        side.plain().say(before).unwrap();
    }
    ours(&sides[0]);
    sides[1].plain().say(theirs).unwrap();
    let [ours, theirs] = sides.map(|side| side.footprint());
    let (left, met) = unexplained(&ours, &theirs);
    let lines: Vec<_> = left
        .iter()
        .map(|(key, trace)| format!("{key}: {trace}"))
        .collect();
    assert!(lines.is_empty(), "ours left:\n{}", lines.join("\n"));
    Some(met)
}

/// Runs commands to their end, with any exit code.
fn say(ground: &Ground, commands: &str) {
    let lines = commands
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    for line in lines {
        let words: Vec<_> = line.split(' ').collect();
        ground.run(&words);
    }
}

fn until(what: &str, ground: &Ground, look: impl Fn(&mut Plain) -> bool) {
    let mut plain = ground.plain();
    eventually(what, || look(&mut plain).then_some(()));
}

fn is(plain: &mut Plain, words: &[&str], expected: &str) -> bool {
    plain.ask::<String>(words).is_ok_and(|is| is == expected)
}

// Hero

const HERO: &str = "id ID caller_id c context_id x script 40+2 script_type TYPE timeout 60 retries 0 concurrent false \
                    created_at 2026-11-25T00:00:00Z updated_at 2026-11-25T00:00:00Z status dispatched";

/// A job as Hero's supervisor stores and pushes it.
fn hero(id: &str, script_type: &str, more: &str) -> String {
    let fields = HERO.replace("ID", id).replace("TYPE", script_type);
    let stored = format!("HSET hero:job:{id} {fields} {more}");
    format!(
        "{}\nLPUSH hero:q:work:type:{script_type} {id}\n",
        stored.trim()
    )
}

/// A worker of Meshwork runs the jobs of a Hero client; the other side has a worker of Hero.
fn hero_runs() -> Option<Met> {
    compared(
        &[hero("h1", "osis", ""), hero("h2", "v", "")].concat(),
        |ground| {
            let worker = ground.worker(&["--type", "osis", "--group", "io", "--instance", "3"]);
            until("it has run", ground, |plain| {
                is(plain, &["HGET", "hero:job:h1", "status"], "finished")
            });
            worker.stop();
        },
        "LPOP hero:q:work:type:osis
         HSET hero:job:h1 status started
         HSET hero:job:h1 status finished output 42
         LPUSH hero:q:reply:h1 42",
    )
}

/// Commands that only read change nothing; nor does a setting that is removed again.
fn hero_is_looked_at() -> Option<Met> {
    let failed = hero("h2", "v", "").replace("dispatched", "error");
    let ended = "HSET hero:job:h2 error boom\nLREM hero:q:work:type:v 0 h2\n";
    compared(
        &[&*hero("h1", "v", ""), &failed, ended].concat(),
        |ground| {
            say(
                ground,
                "job list
                 job list --json
                 job status h1
                 job wait h1 --timeout 0.1
                 job wait h2
                 job logs h1
                 queue list
                 queue stats
                 queue pause hero:q:work:type:v
                 queue resume hero:q:work:type:v
                 queue drain hero:q:work:type:v --timeout 0.1
                 queue resume hero:q:work:type:v
                 schedule list
                 batch list
                 dead list
                 worker list
                 migrate status
                 metrics
                 events
                 doctor",
            );
        },
        "",
    )
}

/// A change of a foreign client's job has the effects of its own client, or its worker.
fn hero_is_changed() -> Option<Met> {
    let ended = "HSET hero:job:h3 status error error boom\nLREM hero:q:work:type:v 0 h3\n";
    let runs = "HSET hero:job:h4 status started\nLREM hero:q:work:type:v 0 h4\n";
    let jobs = ["h1", "h2", "h3", "h4"]
        .map(|id| hero(id, "v", ""))
        .concat();
    compared(
        &[&*jobs, ended, runs].concat(),
        |ground| {
            say(
                ground,
                "job stop h1
                 job delete h2
                 job retry h3
                 job stop h4 --no-wait",
            );
        },
        "LREM hero:q:work:type:v 0 h1
         HSET hero:job:h1 status error error stopped
         LPUSH hero:q:reply:h1 stopped
         LREM hero:q:work:type:v 0 h2
         DEL hero:job:h2
         HSET hero:job:h3 status dispatched
         HDEL hero:job:h3 error
         LPUSH hero:q:work:type:v h3
         LPUSH hero:q:ctl:type:v h4",
    )
}

// Bananas

/// A job as the client in Go stores it.
fn banana(id: &str, name: &str, status: &str) -> String {
    format!(
        "{{\"id\":\"{id}\",\"name\":\"{name}\",\"payload\":{{}},\"status\":\"{status}\",\"priority\":\"normal\",\
         \"created_at\":\"2026-11-20T11:33:47.1Z\",\"updated_at\":\"2026-11-20T11:33:47.1Z\",\"attempts\":0,\
         \"max_retries\":1,\"routing_key\":\"default\"}}"
    )
}

/// A worker of Meshwork runs a job that succeeds, one that fails for good, and a delayed one.
fn bananas_run() -> Option<Met> {
    let later = banana("b3", "good", "scheduled").replace(
        "\"attempts\"",
        "\"scheduled_for\":\"2026-11-20T11:33:48Z\",\"attempts\"",
    );
    let before = format!(
        "SET bananas:job:b1 {}
         LPUSH bananas:queue:normal b1
         SET bananas:job:b2 {}
         LPUSH bananas:route:default:queue:high b2
         SET bananas:job:b3 {later}
         ZADD bananas:queue:scheduled 1 b3
         SET bananas:job:b4 {}
         LPUSH bananas:route:gpu:queue:low b4",
        banana("b1", "good", "pending"),
        banana("b2", "bad", "pending"),
        banana("b4", "good", "pending"),
    );
    let failed = banana("b2", "bad", "failed")
        .replace("\"max_retries\"", "\"error\":\"boom\",\"max_retries\"");
    let theirs = format!(
        "RPOP bananas:queue:normal
         HSET bananas:result:b1 status completed completed_at t duration_ms 1 result 7
         EXPIRE bananas:result:b1 3600
         SET bananas:job:b1 {} EX 86400
         RPOP bananas:route:default:queue:high
         HSET bananas:result:b2 status failed completed_at t duration_ms 1 error boom
         EXPIRE bananas:result:b2 86400
         SET bananas:job:b2 {failed} EX 604800
         LPUSH bananas:queue:dead b2
         ZREM bananas:queue:scheduled b3
         HSET bananas:result:b3 status completed completed_at t duration_ms 1 result 7
         EXPIRE bananas:result:b3 3600
         SET bananas:job:b3 {} EX 86400",
        banana("b1", "good", "completed"),
        banana("b3", "good", "completed"),
    );
    compared(
        &before,
        |ground| {
            ground.file("good.rhai", "7");
            ground.file("bad.rhai", "throw \"boom\"");
            let handlers = ["--handler", "good=good.rhai", "--handler", "bad=bad.rhai"];
            let worker = ground.worker(&[&["--protocol", "bananas"][..], &handlers].concat());
            for id in ["b1", "b2", "b3"] {
                until("it has run", ground, |plain| {
                    let ends = ["TTL", &format!("bananas:job:{id}")];
                    plain.ask::<i64>(&ends).is_ok_and(|left| left > 0)
                });
            }
            worker.stop();
        },
        &theirs,
    )
}

fn bananas_are_looked_at() -> Option<Met> {
    compared(
        &format!(
            "SET bananas:job:b1 {}
             LPUSH bananas:queue:normal b1
             LPUSH bananas:queue:processing b2
             LPUSH bananas:queue:dead b3
             ZADD bananas:queue:scheduled 1 b4",
            banana("b1", "good", "pending")
        ),
        |ground| {
            say(
                ground,
                "bananas get b1
                 bananas wait b1 --timeout 0.1
                 bananas queues
                 bananas dead
                 bananas limit set gpu --concurrency 2
                 bananas limit remove gpu
                 bananas schedule list
                 bananas submit good {} --id b5",
            );
        },
        &format!(
            "SET bananas:job:b5 {}
             LPUSH bananas:queue:normal b5",
            banana("b5", "good", "pending")
        ),
    )
}

// Nooble4

const IDS: &str = "\"action_id\":\"01900000-0000-7000-8000-000000000001\",\"timestamp\":\"2026-11-25T00:00:00Z\",\
                   \"tenant_id\":\"01900000-0000-7000-8000-000000000002\",\
                   \"session_id\":\"01900000-0000-7000-8000-000000000003\",\
                   \"correlation_id\":\"01900000-0000-7000-8000-000000000006\",\
                   \"trace_id\":\"01900000-0000-7000-8000-000000000007\",\"origin_service\":\"tester\"";

/// An action as a client of Nooble4 writes it: its code writes every field that it knows.
fn action(dialect: &str, action_type: &str, reply: &str) -> String {
    let reply = if reply.is_empty() {
        "null".to_owned()
    } else {
        format!("\"{reply}\"")
    };
    let more = match dialect {
        "streams" => concat!(
            ",\"task_id\":\"01900000-0000-7000-8000-000000000004\"",
            ",\"agent_id\":\"01900000-0000-7000-8000-000000000005\"",
            ",\"execution_config\":null,\"query_config\":null,\"rag_config\":null"
        ),
        _ => "",
    };
    format!(
        "{{{IDS}{more},\"action_type\":\"{action_type}\",\"callback_queue_name\":{reply},\"user_id\":null,\
         \"callback_action_type\":null,\"data\":{{}},\"metadata\":{{}}}}"
    )
}

/// The answer to it; that of the standard as it was written down says less.
fn answer(dialect: &str, good: bool) -> String {
    let mut names = vec![
        "action_id",
        "correlation_id",
        "trace_id",
        "success",
        "timestamp",
        "data",
        "error",
    ];
    if dialect == "streams" {
        names.extend(["task_id", "tenant_id", "session_id"]);
    }
    let fields: Vec<_> = names
        .iter()
        .map(|name| format!("\"{name}\":{good}"))
        .collect();
    format!("{{{}}}", fields.join(","))
}

fn service(ground: &Ground, dialect: &str) -> Running {
    ground.file("good.rhai", "#{n: 1}");
    ground.file("bad.rhai", "throw \"boom\"");
    let mut service = ground.start(&[
        "service",
        "--name",
        "demo",
        "--handler",
        "demo.good=good.rhai",
        "--handler",
        "demo.bad=bad.rhai",
        "--max-attempts",
        "1",
        "--dialect",
        dialect,
        "--lease",
        "1",
        "--json",
    ]);
    assert_eq!(json(&service.line())["event"], "listening");
    service
}

/// A service of Meshwork answers a call, a failing one, and an action without a waiting caller; then it stops.
fn a_service_runs(dialect: &str) -> Option<Met> {
    let (queue, send) = match dialect {
        "streams" => (
            "nooble4:dev:demo:streams:main",
            "XADD nooble4:dev:demo:streams:main * data",
        ),
        _ => ("nooble4:dev:demo:actions", "LPUSH nooble4:dev:demo:actions"),
    };
    let replies = ["good", "bad"].map(|name| format!("nooble4:dev:tester:responses:demo_{name}:c"));
    let sent = format!(
        "{send} {}\n{send} {}\n{send} {}",
        action(dialect, "demo.good", &replies[0]),
        action(dialect, "demo.bad", &replies[1]),
        action(dialect, "demo.good", "")
    );
    let take = match dialect {
        "streams" => format!(
            "XGROUP CREATE {queue} demo-group 0
             XREADGROUP GROUP demo-group demo-worker COUNT 3 STREAMS {queue} >"
        ),
        _ => format!("DEL {queue}"),
    };
    let theirs = format!(
        "{take}
         LPUSH {} {}
         LPUSH {} {}",
        replies[0],
        answer(dialect, true),
        replies[1],
        answer(dialect, false)
    );
    let side = ["--dialect", dialect];
    compared(
        &sent,
        |ground| {
            let service = service(ground, dialect);
            until_all_are_over(ground, dialect, queue, &replies);
            service.stop();
            for command in ["trace x", "dead list demo", "notify done {}"] {
                let words: Vec<_> = ["action"]
                    .into_iter()
                    .chain(command.split(' '))
                    .chain(side)
                    .collect();
                ground.run(&words);
            }
        },
        &theirs,
    )
}

/// Waits until a service has answered these, has renewed its registration, and holds nothing.
fn until_all_are_over(ground: &Ground, dialect: &str, queue: &str, replies: &[String]) {
    for reply in replies {
        until("it is answered", ground, |plain| {
            plain
                .ask::<usize>(&["LLEN", reply])
                .is_ok_and(|many| many == 1)
        });
    }
    // It has said for a while that it is there.
    let began = OnceCell::new();
    until("it was renewed", ground, |plain| {
        let since = plain.ask::<Vec<u64>>(&["TIME"]).unwrap()[0];
        let workers = format!("{queue}:mw:workers");
        let until: Vec<(String, f64)> = plain
            .ask(&["ZRANGE", &workers, "0", "0", "WITHSCORES"])
            .unwrap();
        let began = began.get_or_init(|| since);
        until
            .iter()
            .any(|(_, until)| *until >= (*began as f64 + 2.5) * 1000.0)
    });
    until("all three are over", ground, |plain| match dialect {
        "streams" => plain
            .ask::<Vec<(String, String, u64, u64)>>(&[
                "XPENDING",
                queue,
                "demo-group",
                "-",
                "+",
                "10",
            ])
            .is_ok_and(|pending| pending.is_empty()),
        _ => plain
            .ask::<usize>(&["LLEN", queue])
            .is_ok_and(|many| many == 0),
    });
}

/// A client of Meshwork calls a service that does not answer in time, and sends an action without waiting.
fn a_client_asks(dialect: &str) -> Option<Met> {
    let send = match dialect {
        "streams" => "XADD nooble4:dev:demo:streams:main * data",
        _ => "LPUSH nooble4:dev:demo:actions",
    };
    let theirs = format!(
        "{send} {}\n{send} {}",
        action(dialect, "demo.good", "r"),
        action(dialect, "demo.good", "")
    );
    compared(
        "",
        |ground| {
            for command in [
                &["call", "demo.good", "--wait", "0.2"][..],
                &["send", "demo.good"],
            ] {
                ground.run(&[&["action"], command, &["--dialect", dialect]].concat());
            }
        },
        &theirs,
    )
}

#[test]
fn nothing_but_what_is_listed_is_left() {
    let mut met = Met::new();
    for (case, of) in [
        ("hero_runs", hero_runs()),
        ("hero_is_looked_at", hero_is_looked_at()),
        ("hero_is_changed", hero_is_changed()),
        ("bananas_run", bananas_run()),
        ("bananas_are_looked_at", bananas_are_looked_at()),
        ("a_service_runs streams", a_service_runs("streams")),
        ("a_service_runs lists", a_service_runs("lists")),
        ("a_client_asks streams", a_client_asks("streams")),
        ("a_client_asks lists", a_client_asks("lists")),
    ] {
        eprintln!("{case}");
        let Some(of) = of else {
            return;
        };
        met.extend(of);
    }
    let idle: Vec<_> = EXCEPTIONS
        .iter()
        .filter(|exception| !met.contains(exception.why))
        .collect();
    assert!(idle.is_empty(), "no case meets {idle:?}");
}

#[test]
fn the_exceptions_stand_in_the_docs() {
    let page = include_str!("../../../../../docs/footprint.md");
    for exception in EXCEPTIONS {
        let row = format!(
            "| `{}` | {} | {} |",
            exception.key, exception.trace, exception.why
        );
        assert!(
            page.contains(&row),
            "docs/footprint.md lacks this row:\n{row}"
        );
    }
}
