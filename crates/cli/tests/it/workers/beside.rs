//! Ours beside programs of Hero and Bananas, which are played to the letter with bare commands: their client gets its
//! reply, their worker hears of a stop, and how they ended a job is seen.

use crate::common::{Ground, Running, eventually};

/// A job as Hero's supervisor stores it, which one of its workers runs.
fn started(ground: &Ground, id: &str, more: &str) {
    let mut theirs = ground.plain();
    let job = format!(
        "HSET hero:job:{id} id {id} caller_id c context_id x script 1 script_type v timeout 60 status started {more}"
    );
    theirs.say(job.trim()).unwrap();
}

/// Waits until ours wait for a reply on a list, or have looked at records for a second.
fn waiting(ground: &Ground, many: usize) {
    let mut look = ground.plain();
    let mut waits = || {
        let clients: String = look.ask(&["CLIENT", "LIST"]).unwrap();
        let db = format!(" db={} ", ground.database());
        let own = clients.lines().filter(|line| line.contains(&db));
        let waits = own.filter(|line| {
            let looks = line.contains(" cmd=hmget ") && !line.contains(" age=0 ");
            line.contains(" cmd=blpop ") || looks
        });
        waits.count()
    };
    eventually("ours wait", || (waits() >= many).then_some(()));
}

/// Ours wait for five jobs, or stop them, while a client of Hero waits for the one reply to each.
fn the_reply_is_the_clients(command: &[&str], ends: &str, list: &str) {
    const ROUNDS: usize = 5;
    let Some(ground) = Ground::redis() else {
        return;
    };
    let ids: Vec<_> = (0..ROUNDS).map(|n| format!("j{n}")).collect();
    let ours: Vec<Running> = ids
        .iter()
        .map(|id| {
            started(&ground, id, "");
            ground.start(&[command, &[id]].concat())
        })
        .collect();
    waiting(&ground, ROUNDS);
    let mut theirs = ground.plain();
    let mut got = Vec::new();
    for id in &ids {
        // Their worker, and then their client.
        let list = format!("{list}:{id}");
        theirs
            .say(&format!("HSET hero:job:{id} {ends}\nLPUSH {list} 42"))
            .unwrap();
        got.push(
            theirs
                .ask::<Option<(String, String)>>(&["BLPOP", &list, "1"])
                .unwrap(),
        );
    }
    let expected: Vec<Option<(String, String)>> = ids
        .iter()
        .map(|id| Some((format!("{list}:{id}"), "42".to_owned())))
        .collect();
    assert_eq!(got, expected);
    for ours in ours {
        ours.ended().ok();
    }
}

#[test]
fn a_client_of_hero_gets_its_reply_while_ours_wait() {
    the_reply_is_the_clients(
        &["job", "wait"],
        "status finished output 42",
        "hero:q:reply",
    );
}

#[test]
fn an_old_client_of_hero_gets_its_reply_while_ours_wait() {
    the_reply_is_the_clients(&["job", "wait"], "status finished output 42", "hero:reply");
}

#[test]
fn a_client_of_hero_gets_its_reply_while_ours_stop() {
    the_reply_is_the_clients(
        &["job", "stop"],
        "status error error stopped_by_request",
        "hero:q:reply",
    );
}

/// Key of cancel requests, by kind of worker.
#[test]
fn a_worker_of_hero_hears_that_its_job_is_to_stop() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let mut theirs = ground.plain();
    theirs
        .say("SET hero:meta:actor:inst:v:io:3 {\"pid\":1} EX 600")
        .unwrap();
    for (id, more, queue) in [
        ("j1", "", "hero:q:ctl:type:v"),
        ("j2", "", "hero:q:ctl:type:v:group:io:inst:3"),
        ("j3", "worker_id w1", "hero:stop_queue:w1"),
    ] {
        started(&ground, id, more);
        let ours = ground.start(&["job", "stop", id]);
        eventually(&format!("a request is on {queue}"), || {
            let taken: usize = theirs.ask(&["LREM", queue, "0", id]).unwrap();
            (taken > 0).then_some(())
        });
        theirs
            .say(&format!(
                "HSET hero:job:{id} status error error stopped_by_request"
            ))
            .unwrap();
        assert!(ours.ended().ok().stdout.contains("cancelled"));
    }
}

#[test]
fn a_request_to_stop_that_nobody_takes_is_gone_after_a_while() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let mut theirs = ground.plain();
    theirs
        .say(
            "SET hero:meta:actor:inst:v:io:3 {\"pid\":1} EX 600
             LPUSH hero:q:ctl:type:v of-others",
        )
        .unwrap();
    started(&ground, "j1", "");
    ground.run(&["job", "stop", "j1", "--no-wait"]).ok();
    let keys: Vec<String> = theirs.ask(&["KEYS", "hero:stop_queue*"]).unwrap();
    assert_eq!(keys, Vec::<String>::new());
    let mut left = |key: &str| theirs.ask::<i64>(&["TTL", key]).unwrap();
    let of_instance = left("hero:q:ctl:type:v:group:io:inst:3");
    assert!((1..=60).contains(&of_instance), "{of_instance}");
    // Requests of other clients remain.
    assert_eq!(left("hero:q:ctl:type:v"), -1);
    started(&ground, "j2", "worker_id w1");
    ground.run(&["job", "stop", "j2", "--no-wait"]).ok();
    let of_worker = left("hero:stop_queue:w1");
    assert!((1..=60).contains(&of_worker), "{of_worker}");
}

/// The worker in Go writes no result for a job without a handler, and none without its result backend.
#[test]
fn how_a_worker_of_bananas_ended_a_job_is_seen() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let record = |id: &str, ends: &str| {
        format!(
            "{{\"id\":\"{id}\",\"name\":\"nobody\",\"payload\":{{}},{ends},\"priority\":\"normal\",\
             \"created_at\":\"2026-11-20T11:33:47Z\",\"updated_at\":\"2026-11-20T11:33:57Z\",\"attempts\":3,\
             \"max_retries\":3,\"routing_key\":\"default\"}}"
        )
    };
    let failed = record("b1", "\"status\":\"failed\",\"error\":\"no-handler\"");
    let completed = record("b2", "\"status\":\"completed\"");
    let corrupt = "{\"error\":\"corrupted-reference\",\"id\":\"b3\"}";
    ground
        .plain()
        .say(&format!(
            "SET bananas:job:b1 {failed} EX 604800
             LPUSH bananas:queue:dead b1
             SET bananas:job:b2 {completed} EX 86400
             SET bananas:job:b3 {corrupt} EX 604800
             LPUSH bananas:queue:dead b3"
        ))
        .unwrap();
    let wait = |id: &str| ground.run(&["bananas", "wait", id, "--timeout", "1"]);
    let said = wait("b1").exits(1).stderr;
    assert!(said.contains("no-handler"), "{said}");
    wait("b2").ok();
    let said = wait("b3").exits(1).stderr;
    assert!(said.contains("corrupted-reference"), "{said}");
    // The client in Python hears the first failure of a run as the end; the record says that another one follows.
    let again = record("b4", "\"status\":\"pending\"");
    ground
        .plain()
        .say(&format!("SET bananas:job:b4 {again}"))
        .unwrap();
    wait("b4").exits(4);
}
