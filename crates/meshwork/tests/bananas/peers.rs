//! A client, a worker and a scheduler of Bananas, to the letter of what they send, side by side with ours: each job runs
//! as often as it should, none is lost, and nothing stays among those that run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use meshwork::runner::Context;
use meshwork_testkit::eventually;
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};

use crate::support::Ground;

const JOBS: usize = 10_000;
/// Commands in one pipeline.
const STEP: usize = 500;
/// One in so many fails at first, and one in so many waits for its time.
const FLAKY: usize = 100;
const LATER: usize = 50;
const ROUTES: [&str; 3] = ["gpu", "email", "default"];
const PRIORITIES: [&str; 3] = ["high", "normal", "low"];
/// Goroutines of their worker.
const THEIR_SLOTS: usize = 4;
/// For all of it.
const PATIENCE: Duration = Duration::from_secs(180);

/// Starts by job, and how many of them were theirs.
#[derive(Default)]
struct Log {
    starts: HashMap<String, usize>,
    theirs: usize,
}

type Shared = Arc<Mutex<Log>>;

fn note(log: &Shared, id: &str, theirs: bool) {
    let mut log = log.lock().unwrap();
    *log.starts.entry(id.to_owned()).or_default() += 1;
    log.theirs += usize::from(theirs);
}

fn is_flaky(n: usize) -> bool {
    n.is_multiple_of(FLAKY)
}

/// A job as one of their clients submits it: the one in Go with routing, or the one in Python.
fn submit(pipe: &mut redis::Pipeline, n: usize, now: f64) {
    let id = format!("j{n}");
    let name = if is_flaky(n) { "flaky" } else { "echo" };
    let (route, priority) = (ROUTES[n % 3], PRIORITIES[n / 3 % 3]);
    let time = "2026-11-20T11:33:47.288434556Z";
    let later = n % LATER == 1;
    let status = if later { "scheduled" } else { "pending" };
    let python = n.is_multiple_of(2);
    let routing_key = if python && route == "default" {
        ""
    } else {
        route
    };
    let mut record = json!({
        "id": id, "name": name, "payload": n, "status": status, "priority": priority, "created_at": time,
        "updated_at": time, "attempts": 0, "max_retries": 3, "routing_key": routing_key,
    });
    if later {
        record["scheduled_for"] = json!(time);
    }
    pipe.cmd("SET")
        .arg(format!("bananas:job:{id}"))
        .arg(record.to_string())
        .ignore();
    let list = match python {
        true => format!("bananas:queue:{priority}"),
        false => format!("bananas:route:{route}:queue:{priority}"),
    };
    match later {
        true => pipe
            .cmd("ZADD")
            .arg("bananas:queue:scheduled")
            .arg(now + 1.0)
            .arg(id),
        false => pipe.cmd("LPUSH").arg(list).arg(id),
    };
}

fn seconds() -> f64 {
    meshwork::host_ms() as f64 / 1000.0
}

/// One goroutine of their worker: one blocking call for each list in turn.
async fn work(mut redis: MultiplexedConnection, log: Shared) -> redis::RedisResult<()> {
    loop {
        for route in ROUTES {
            for priority in PRIORITIES {
                let list = format!("bananas:route:{route}:queue:{priority}");
                let mut take = redis::cmd("BRPOPLPUSH");
                take.arg(list).arg("bananas:queue:processing").arg(1);
                let id: Option<String> = take.query_async(&mut redis).await?;
                if let Some(id) = id {
                    run(&mut redis, &log, &id).await?;
                }
            }
        }
    }
}

/// What their worker does with a job, in its order.
async fn run(redis: &mut MultiplexedConnection, log: &Shared, id: &str) -> redis::RedisResult<()> {
    let key = format!("bananas:job:{id}");
    let text: String = redis::cmd("GET").arg(&key).query_async(redis).await?;
    let mut job: Value = serde_json::from_str(&text).unwrap();
    note(log, id, true);
    let failed = job["name"] == "flaky" && job["attempts"] == 0;
    let result = format!("bananas:result:{id}");
    let mut pipe = redis::pipe();
    let status = if failed { "failed" } else { "completed" };
    pipe.cmd("HSET").arg(&result).arg(&[
        "status",
        status,
        "completed_at",
        "2026-11-20T11:33:57Z",
        "duration_ms",
        "0",
    ]);
    pipe.cmd("EXPIRE")
        .arg(&result)
        .arg(if failed { 86_400 } else { 3_600 });
    pipe.cmd("PUBLISH")
        .arg(format!("bananas:result:notify:{id}"))
        .arg("ready");
    pipe.query_async::<()>(redis).await?;
    let mut pipe = redis::pipe();
    if failed {
        job["attempts"] = json!(1);
        job["status"] = json!("pending");
        pipe.cmd("SET").arg(&key).arg(job.to_string());
        pipe.cmd("ZADD")
            .arg("bananas:queue:scheduled")
            .arg(seconds() as u64 + 2)
            .arg(id);
        pipe.cmd("LREM")
            .arg("bananas:queue:processing")
            .arg(1)
            .arg(id);
    } else {
        job["status"] = json!("completed");
        pipe.cmd("LREM")
            .arg("bananas:queue:processing")
            .arg(1)
            .arg(id);
        pipe.cmd("SET")
            .arg(&key)
            .arg(job.to_string())
            .arg("EX")
            .arg(86_400);
    }
    pipe.query_async::<()>(redis).await
}

/// Their scheduler: once a second, without a lock.
async fn schedule(mut redis: MultiplexedConnection) -> redis::RedisResult<()> {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        ticks.tick().await;
        let mut due = redis::cmd("ZRANGEBYSCORE");
        due.arg("bananas:queue:scheduled")
            .arg("-inf")
            .arg(seconds() as u64);
        let due: Vec<String> = due.query_async(&mut redis).await?;
        for id in due {
            let key = format!("bananas:job:{id}");
            let text: String = redis::cmd("GET").arg(&key).query_async(&mut redis).await?;
            let mut job: Value = serde_json::from_str(&text).unwrap();
            job.as_object_mut().unwrap().remove("scheduled_for");
            let (route, priority) = (
                job["routing_key"].as_str().unwrap(),
                job["priority"].as_str().unwrap(),
            );
            let list = match route {
                "" | "default" => format!("bananas:queue:{priority}"),
                route => format!("bananas:route:{route}:queue:{priority}"),
            };
            let mut pipe = redis::pipe();
            pipe.cmd("SET").arg(&key).arg(job.to_string());
            pipe.cmd("LPUSH").arg(list).arg(&id);
            pipe.cmd("ZREM").arg("bananas:queue:scheduled").arg(&id);
            pipe.query_async::<()>(&mut redis).await?;
        }
    }
}

/// How many results say so.
async fn results(ground: &Ground) -> HashMap<String, usize> {
    let keys: Vec<String> = ground.say(&["KEYS", "bananas:result:*"]).await;
    let mut pipe = redis::pipe();
    for key in &keys {
        pipe.cmd("HGET").arg(key).arg("status");
    }
    let all: Vec<String> = match keys.is_empty() {
        true => Vec::new(),
        false => pipe.query_async(&mut ground.raw().await).await.unwrap(),
    };
    let mut counts = HashMap::new();
    for status in all {
        *counts.entry(status).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_jobs_of_theirs_over_both_workers() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let log = Shared::default();
    let (echoes, flakes) = (Arc::clone(&log), Arc::clone(&log));
    let echo = move |n: usize, context: Context| {
        note(&echoes, &context.job_id, false);
        async move { Ok::<_, String>(n) }
    };
    let flaky = move |n: usize, context: Context| {
        note(&flakes, &context.job_id, false);
        async move {
            if context.attempt == 1 {
                Err("boom")
            } else {
                Ok(n)
            }
        }
    };
    let worker = ground
        .worker()
        .handle("echo", echo)
        .handle("flaky", flaky)
        .routes(ROUTES.map(|route| route.parse().unwrap()))
        .scheduler(false)
        .concurrency(20)
        .start()
        .await
        .unwrap();
    let mut theirs = tokio::task::JoinSet::new();
    for _ in 0..THEIR_SLOTS {
        theirs.spawn(work(ground.raw().await, Arc::clone(&log)));
    }
    theirs.spawn(schedule(ground.raw().await));
    let mut client = ground.raw().await;
    let now = seconds();
    for from in (0..JOBS).step_by(STEP) {
        let mut pipe = redis::pipe();
        for n in from..from + STEP {
            submit(&mut pipe, n, now);
        }
        pipe.query_async::<()>(&mut client).await.unwrap();
    }
    eventually("all are done", PATIENCE, async || {
        if let Some(ended) = theirs.try_join_next() {
            panic!("one of theirs ended: {ended:?}");
        }
        if log.lock().unwrap().starts.len() < JOBS {
            return None;
        }
        let done = results(&ground).await.get("completed").copied();
        (done == Some(JOBS)).then_some(())
    })
    .await;
    ground.quiet().await;
    worker.stop().await;
    theirs.shutdown().await;
    let waiting: Vec<String> = ground.say(&["KEYS", "bananas:*queue:*"]).await;
    assert_eq!(waiting, [""; 0]);
    let log = log.lock().unwrap();
    assert_eq!(log.starts.len(), JOBS, "0 lost");
    for n in 0..JOBS {
        let starts = log.starts[&format!("j{n}")];
        assert_eq!(starts, 1 + usize::from(is_flaky(n)), "j{n}");
    }
    let ours = log.starts.values().sum::<usize>() - log.theirs;
    assert!(ours > 0 && log.theirs > 0, "{ours} and {}", log.theirs);
}
