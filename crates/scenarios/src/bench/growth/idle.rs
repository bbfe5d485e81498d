//! Idle contexts on a Cluster of three nodes: what their pools call while no job is there, and the latency of the first job.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use meshwork::WorkerHandle;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::super::latency::percentiles;
use super::super::ours::{Noop, request};
use super::super::{BenchError, PAYLOAD};
use super::Value;
use super::site::Site;

const NODES: usize = 3;
/// Number of concurrent handlers of a pool.
const SLOTS: usize = 10;
/// Time from the last registration until the measurement, and of the measurement, in ms: longer than the frequent polls
/// of a context that had work.
const WATCHED_MS: usize = 30_000;
/// Number of contexts that get a job.
const SAMPLES: usize = 100;
/// Longest time from an enqueued job to its start.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures `contexts` idle contexts.
pub(super) async fn take(
    contexts: usize,
    few: impl Fn(usize) -> usize,
) -> Result<Vec<Value>, BenchError> {
    let site = Site::start(NODES, contexts).await?;
    let (sender, mut starts) = mpsc::unbounded_channel();
    let handler = move |_: Noop| {
        // The receiver is dropped when all samples are taken.
        let _ = sender.send(Instant::now());
        async { Ok::<_, String>("ok".to_owned()) }
    };
    let workers = site.work(SLOTS, |worker| worker.job(handler.clone()));
    let workers = workers.await?;
    let watched = Duration::from_millis(few(WATCHED_MS) as u64);
    let mut values = idle(&site, watched).await?;
    let (clients, samples) = (site.clients().await?, few(SAMPLES).min(contexts));
    let mut times = Vec::with_capacity(samples);
    for client in clients.iter().step_by((contexts / samples).max(1)) {
        let began = Instant::now();
        client.enqueue(request(PAYLOAD)?).await?;
        let start = timeout(PATIENCE, starts.recv()).await.ok().flatten();
        let start = start.ok_or_else(|| BenchError::Odd(format!("no start in {PATIENCE:?}")))?;
        times.push(start.duration_since(began));
    }
    join_all(workers.into_iter().map(WorkerHandle::stop)).await;
    let [p50, p99] = percentiles(times);
    values.extend([("start-p50", "us", p50), ("start-p99", "us", p99)]);
    Ok(values)
}

/// Reads the counters over the time `watched`, after the same time. The cost of a reading itself is subtracted.
async fn idle(site: &Site, watched: Duration) -> Result<Vec<Value>, BenchError> {
    let mut watch = tokio::time::interval(watched);
    watch.tick().await;
    watch.tick().await;
    let first = site.read()?;
    let (before, began) = (site.read()?, Instant::now());
    // The readings may have taken longer than that time.
    watch.reset();
    watch.tick().await;
    let after = site.read()?;
    let seconds = began.elapsed().as_secs_f64();
    let (mut sums, nodes) = ([0.0; 5], before.len() as f64);
    for ((first, before), after) in first.iter().zip(&before).zip(&after) {
        let (reading, cost) = (before.since(first, 1), after.since(before, 1));
        let part = |value: Option<f64>, reading: Option<f64>| {
            (value.unwrap_or_default() - reading.unwrap_or_default()).max(0.0)
        };
        let calls = cost.commands.unwrap_or_default();
        sums[0] += calls;
        sums[1] += part(cost.bytes_in, reading.bytes_in);
        sums[2] += part(cost.bytes_out, reading.bytes_out);
        sums[3] += part(cost.server_us, reading.server_us);
        // Each reading has the time of the whole program.
        sums[4] += (cost.client_us - reading.client_us).max(0.0);
    }
    let each = sums.map(|sum| sum / nodes / seconds);
    Ok(vec![
        ("calls", "1/s", each[0]),
        ("bytes-in", "B/s", each[1]),
        ("bytes-out", "B/s", each[2]),
        ("server-cpu", "us/s", each[3]),
        ("client-cpu", "us/s", each[4]),
    ])
}
