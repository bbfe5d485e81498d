//! The points of each series.

use std::time::Duration;

use meshwork::Client;

use super::super::figure::With;
use super::super::ground::{Engine, Ground};
use super::super::{BenchError, PAYLOAD, bulk, ours};
use super::delay::Delayed;
use super::workers::Processes;
use super::{Growth, Series, Value, idle, nodes};

/// Jobs that are enqueued one by one at a point.
const ONE: usize = 4_000;
/// Jobs that are run at a point.
const WORK: usize = 20_000;
/// Jobs whose latency is measured.
const SAMPLES: usize = 200;
/// Greatest number of bytes in all payloads of a run, and in one call.
const BYTES: usize = 64 << 20;
const BYTES_OF_CALL: usize = 1 << 20;
/// Number of concurrent handlers of `work-10`.
const CONCURRENCY: usize = 10;

/// Measures one point on a fresh server or cluster.
pub(super) async fn take(
    series: Series,
    at: usize,
    growth: &Growth,
) -> Result<Vec<Value>, BenchError> {
    let ground = async || Ground::start(Engine::Redis, &[]).await;
    let few = |jobs: usize| (jobs / growth.divisor).max(1);
    match series {
        Series::Waiting => waiting(&ground().await?, at, few).await,
        Series::Workers => workers(&ground().await?, at, few(WORK), growth).await,
        Series::Payload => payload(&ground().await?, at, few).await,
        Series::Delay => delay(&ground().await?, at, few).await,
        Series::Nodes => nodes::take(at, few).await,
        Series::Contexts => idle::take(at, few).await,
    }
}

fn rate(figure: &'static str, jobs: usize, took: Duration) -> Value {
    (figure, "jobs/s", jobs as f64 / took.as_secs_f64())
}

/// `at` jobs wait, and stay while others are enqueued and run.
async fn waiting(
    ground: &Ground,
    at: usize,
    few: impl Fn(usize) -> usize,
) -> Result<Vec<Value>, BenchError> {
    let client = ground.client().await?;
    ours::enqueue(&client, at, bulk(), With::Nothing, PAYLOAD).await?;
    enqueue_and_work(&client, few(ONE), few(WORK), PAYLOAD).await
}

/// `at` processes run jobs of one queue, each ten at once, while this one enqueues them.
async fn workers(
    ground: &Ground,
    at: usize,
    jobs: usize,
    growth: &Growth,
) -> Result<Vec<Value>, BenchError> {
    let client = ground.client().await?;
    let processes = Processes::start(&growth.program, &ground.server()?.url(), at).await?;
    let began = std::time::Instant::now();
    let (_, ids) = ours::enqueue(&client, jobs, bulk(), With::Nothing, PAYLOAD).await?;
    ours::all_ended(&client, jobs).await?;
    let took = began.elapsed();
    processes.stop().await?;
    ours::finished(&client, &ids).await?;
    Ok(vec![rate("enqueue-and-work", jobs, took)])
}

/// Payloads have `at` bytes.
async fn payload(
    ground: &Ground,
    at: usize,
    few: impl Fn(usize) -> usize,
) -> Result<Vec<Value>, BenchError> {
    let client = ground.client().await?;
    let most = (BYTES / at).max(1);
    enqueue_and_work(&client, few(ONE).min(most), few(WORK).min(most), at).await
}

/// Enqueues `one` jobs one by one, then runs `work` jobs; payloads have `bytes` bytes.
async fn enqueue_and_work(
    client: &Client,
    one: usize,
    work: usize,
    bytes: usize,
) -> Result<Vec<Value>, BenchError> {
    let enqueued = ours::enqueue_one(client, one, 1, bytes).await?;
    let (callers, batch) = bulk();
    let shape = (callers, batch.min(BYTES_OF_CALL / bytes).max(1));
    ours::enqueue(client, work, shape, With::Nothing, bytes).await?;
    let ran = ours::work_some(client, work, CONCURRENCY).await?;
    Ok(vec![
        rate("enqueue-one", one, enqueued),
        rate("work-10", work, ran),
    ])
}

/// Everything that the client and the worker send and receive arrives `at` ms later.
async fn delay(
    ground: &Ground,
    at: usize,
    few: impl Fn(usize) -> usize,
) -> Result<Vec<Value>, BenchError> {
    let delay = Duration::from_millis(at as u64);
    let link = Delayed::before(ground.server()?.port(), delay)?;
    let (client, of_worker) = (link.client().await?, link.client().await?);
    // Each of these waits for the network.
    let (one, samples) = (few(ONE / 8), few(SAMPLES));
    let mut values = Vec::new();
    for (figure, callers) in [("enqueue-one", 1), ("enqueue-one-10", 10)] {
        let enqueued = ours::enqueue_one(&client, one, callers, PAYLOAD).await?;
        values.push(rate(figure, one, enqueued));
        ours::work_some(&of_worker, one, CONCURRENCY).await?;
    }
    for (figure, concurrency, jobs) in [("work-10", CONCURRENCY, WORK / 4), ("work-50", 50, WORK)] {
        let jobs = few(jobs);
        ours::enqueue(&client, jobs, bulk(), With::Nothing, PAYLOAD).await?;
        let ran = ours::work_some(&of_worker, jobs, concurrency).await?;
        values.push(rate(figure, jobs, ran));
    }
    let latencies = ours::latency(&client, &of_worker, samples).await?.values();
    values.push(("latency-start-p50", "us", latencies[0]));
    values.push(("latency-result-p50", "us", latencies[2]));
    Ok(values)
}
