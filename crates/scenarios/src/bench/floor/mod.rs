//! The floor: the least Lua that a reliable queue with a hash per job needs. One call stores and queues a job;
//! another claims it under a lease; its result is kept. There are no retries, priorities, dates or events. Its
//! figures are the best that the server allows to any queue with a record for each job. The floor of calls is
//! [`echo`].

mod echo;
mod scripts;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::latency::{Latencies, PACE, WARM_UP};
use super::link::Link;
use super::{BenchError, PAYLOAD};
pub(super) use echo::Echoes;
use scripts::Floor;

/// Result of a handler that does nothing.
const RESULT: &str = "ok";

/// Stores `jobs` jobs with `callers` concurrent callers and `batch` jobs in each call. Returns the time that it took.
pub(super) async fn enqueue(
    link: Link,
    jobs: usize,
    callers: usize,
    batch: usize,
) -> Result<Duration, BenchError> {
    let floor = Floor::open(link).await?;
    let next = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (mut floor, next) = (floor.clone(), Arc::clone(&next));
        tasks.spawn(async move {
            let payload = "x".repeat(PAYLOAD);
            loop {
                let from = next.fetch_add(batch, Ordering::Relaxed);
                if from >= jobs {
                    return Ok(());
                }
                // Ids have the length of a ULID.
                let ids = (from..jobs.min(from + batch)).map(|n| format!("01FLOOR{n:019}"));
                floor.enqueue(ids, &payload, None).await?;
            }
        });
    }
    ended(tasks).await?;
    Ok(began.elapsed())
}

/// Runs the `jobs` that wait: each of `callers` ends its `batch` jobs and takes the next ones in one call.
pub(super) async fn work(
    link: Link,
    jobs: usize,
    callers: usize,
    batch: usize,
) -> Result<Duration, BenchError> {
    let floor = Floor::open(link).await?;
    let done = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let (mut floor, done) = (floor.clone(), Arc::clone(&done));
        tasks.spawn(async move {
            let who = format!("worker-{caller}");
            let mut ran = Vec::new();
            loop {
                let taken = floor.exchange(&ran, RESULT, batch, &who).await?;
                done.fetch_add(ran.len(), Ordering::Relaxed);
                if taken.is_empty() {
                    return Ok(());
                }
                ran.clear();
                for (id, fields) in taken {
                    black_box(fields);
                    ran.push(id);
                }
            }
        });
    }
    ended(tasks).await?;
    let took = began.elapsed();
    match done.load(Ordering::Relaxed) {
        done if done == jobs => Ok(took),
        done => Err(BenchError::Odd(format!(
            "the floor ran {done} jobs of {jobs}"
        ))),
    }
}

async fn ended(mut tasks: JoinSet<redis::RedisResult<()>>) -> Result<(), BenchError> {
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|why| BenchError::Odd(why.to_string()))??;
    }
    Ok(())
}

/// Times one job at a time for an idle worker, which has two of the links; the client has the others.
pub(super) async fn latency(links: [Link; 4], samples: usize) -> Result<Latencies, BenchError> {
    let [mut bell, of_worker, of_client, mut answers] = links;
    let (sender, mut starts) = mpsc::unbounded_channel();
    let mut worker = Floor::open(of_worker).await?;
    let serve = tokio::spawn(async move {
        loop {
            Floor::heard(&mut bell).await?;
            loop {
                let taken = worker.claim(1, "worker").await?;
                if taken.is_empty() {
                    break;
                }
                for (id, fields) in taken {
                    // The receiver is dropped when all samples are taken.
                    let _ = sender.send(Instant::now());
                    let list = fields.into_iter().find(|(name, _)| name == "answers");
                    let list = list.map(|(_, list)| list).unwrap_or_default();
                    worker.finish(&id, RESULT, &list).await?;
                }
            }
        }
        #[allow(unreachable_code, reason = "it gives the block its type")]
        Ok::<(), redis::RedisError>(())
    });
    let mut client = Floor::open(of_client).await?;
    let payload = "x".repeat(PAYLOAD);
    let (mut pace, mut taken) = (tokio::time::interval(PACE), Latencies::default());
    for sample in 0..samples + WARM_UP {
        pace.tick().await;
        let list = format!("floor:answers:{sample}");
        let id = std::iter::once(format!("01FLOOR{sample:019}"));
        let began = Instant::now();
        client.enqueue(id, &payload, Some(&list)).await?;
        redis::cmd("BLPOP")
            .arg(&list)
            .arg(0)
            .query_async::<()>(&mut answers)
            .await?;
        let known = began.elapsed();
        let start = starts.recv().await;
        let start = start.ok_or_else(|| BenchError::Odd("the floor's worker ended".into()))?;
        if sample >= WARM_UP {
            taken.add(start.duration_since(began), known);
        }
    }
    serve.abort();
    Ok(taken)
}
