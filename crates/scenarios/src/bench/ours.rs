//! Measurements with the public interface: the client, and a worker with a handler in Rust, in their default
//! settings.

use std::future::{Ready, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_util::future::{join_all, try_join_all};
use meshwork::runtime::SandboxPolicy;
use meshwork::{Client, Job, JobRequest, Worker, WorkerHandle};
use meshwork_model::job::{NewJob, OnDuplicate, Unique, Until};
use meshwork_model::name::{JobId, ScriptType};
use meshwork_model::route::{Priority, Route};
use meshwork_model::sandbox::Profile;
use meshwork_model::state::Status;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::figure::{With, payload};
use super::latency::{Latencies, PACE, WARM_UP, percentiles};
use super::{BenchError, PAYLOAD};

/// The job that is measured: a payload, and nothing to do.
#[meshwork::job(output = String)]
pub(super) struct Noop(String);

/// Timeout of a whole run, far longer than the slowest machine needs.
const PATIENCE: Duration = Duration::from_secs(600);

/// Polling interval for the end of the last jobs, short compared to a run.
const LOOK: Duration = Duration::from_micros(500);

/// Number of ids whose statuses are read at once.
const AT_ONCE: usize = 1_000;

/// Returns a job with a payload of `bytes` bytes.
pub(super) fn request(bytes: usize) -> Result<JobRequest, BenchError> {
    let name: ScriptType = Noop::NAME.parse()?;
    Ok(JobRequest::new(name, "").payload(&payload(bytes))?)
}

fn job(number: usize, with: With, bytes: usize) -> Result<NewJob, BenchError> {
    let mut job = request(bytes)?.build().map_err(meshwork::Error::from)?;
    match with {
        With::Nothing | With::Limits => {}
        With::Unique => {
            job.unique = Some(Unique {
                name: format!("order-{number}"),
                until: Until::Done,
                policy: OnDuplicate::Keep,
            });
        }
        With::Priorities => {
            let all = [Priority::Low, Priority::Normal, Priority::High];
            job.route.priority = all[number % all.len()];
        }
    }
    Ok(job)
}

/// Configures the queue for the additional feature.
pub(super) async fn set(client: &Client, with: With) -> Result<(), BenchError> {
    if with != With::Limits {
        return Ok(());
    }
    let (broker, name) = (client.broker(), Noop::NAME.parse()?);
    let queue = Route::to(name).queue(broker.keys());
    let mut set = redis::cmd("HSET");
    set.arg(broker.keys().config())
        .arg(format!("queue:{queue}"));
    set.arg("concurrency=1000 rate=window:1000000:1000");
    Ok(set.query_async(&mut broker.conn().clone()).await?)
}

/// Submits jobs one after the other in each of `callers` tasks, with payloads of `bytes` bytes. A single one is a task
/// too, as the floor's: outside of the runtime's threads each call would have to wake another thread.
pub(super) async fn enqueue_one(
    client: &Client,
    jobs: usize,
    callers: usize,
    bytes: usize,
) -> Result<Duration, BenchError> {
    let left = Arc::new(AtomicUsize::new(jobs));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (client, left) = (client.clone(), Arc::clone(&left));
        tasks.spawn(async move {
            let take = |left: usize| left.checked_sub(1);
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .is_ok()
            {
                client.enqueue(request(bytes)?).await?;
            }
            Ok::<_, BenchError>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|why| BenchError::Odd(why.to_string()))??;
    }
    Ok(began.elapsed())
}

/// Submits jobs with `callers` concurrent callers, `batch` jobs in each call, and payloads of `bytes` bytes. Returns
/// the time that it took, and the ids.
pub(super) async fn enqueue(
    client: &Client,
    jobs: usize,
    (callers, batch): (usize, usize),
    with: With,
    bytes: usize,
) -> Result<(Duration, Vec<JobId>), BenchError> {
    let next = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (client, next) = (client.clone(), Arc::clone(&next));
        tasks.spawn(async move {
            let mut ids = Vec::new();
            loop {
                let from = next.fetch_add(batch, Ordering::Relaxed);
                if from >= jobs {
                    return Ok::<_, BenchError>(ids);
                }
                let some = from..jobs.min(from + batch);
                let some: Result<Vec<_>, _> = some.map(|number| job(number, with, bytes)).collect();
                let some = some?;
                client.enqueue_built(&some).await?;
                ids.extend(some.into_iter().map(|job| job.id));
            }
        });
    }
    let mut ids = Vec::with_capacity(jobs);
    while let Some(ended) = tasks.join_next().await {
        ids.extend(ended.map_err(|why| BenchError::Odd(why.to_string()))??);
    }
    Ok((began.elapsed(), ids))
}

/// State that the handlers of `jobs` jobs share with the measurement.
#[derive(Debug)]
pub(super) struct Progress {
    jobs: usize,
    first: OnceLock<Instant>,
    calls: AtomicUsize,
    last: Notify,
}

impl Progress {
    fn of(jobs: usize) -> Arc<Self> {
        Arc::new(Self {
            jobs,
            first: OnceLock::new(),
            calls: AtomicUsize::new(0),
            last: Notify::new(),
        })
    }

    /// Returns a handler that does nothing.
    pub(super) fn handler(
        self: &Arc<Self>,
    ) -> impl Fn(Noop) -> Ready<Result<String, String>> + Clone + Send + Sync + 'static {
        let tell = Arc::clone(self);
        move |_| {
            tell.first.get_or_init(Instant::now);
            if tell.calls.fetch_add(1, Ordering::Relaxed) + 1 == tell.jobs {
                tell.last.notify_one();
            }
            ready(Ok("ok".to_owned()))
        }
    }
}

/// Runs the waiting jobs `ids` with one worker. Returns the time from the first start of a handler until the record
/// of the last job says that it has finished.
pub(super) async fn work(
    client: &Client,
    ids: &[JobId],
    concurrency: usize,
) -> Result<Duration, BenchError> {
    let start = async |progress: &Arc<Progress>| one_worker(client, progress, concurrency).await;
    run_all(ids.len(), start, std::slice::from_ref(client)).await
}

/// Runs `jobs` waiting jobs, which are all jobs of these clients, with the workers that `start` makes. Returns the time
/// from the first start of a handler until the records of all jobs say that they have finished.
pub(super) async fn run_all(
    jobs: usize,
    start: impl AsyncFnOnce(&Arc<Progress>) -> Result<Vec<WorkerHandle>, BenchError>,
    clients: &[Client],
) -> Result<Duration, BenchError> {
    let all_settled = try_join_all(clients.iter().map(settled));
    let end = async { all_settled.await.map(drop) };
    let (took, runs) = run_jobs(jobs, start, end).await?;
    match runs == jobs {
        true => Ok(took),
        false => Err(BenchError::Odd(format!("{runs} runs for {jobs} jobs"))),
    }
}

/// Runs `jobs` of the waiting jobs with one worker. Returns the time from the first start of a handler until the start
/// of the last one. More jobs may wait.
pub(super) async fn work_some(
    client: &Client,
    jobs: usize,
    concurrency: usize,
) -> Result<Duration, BenchError> {
    let start = async |progress: &Arc<Progress>| one_worker(client, progress, concurrency).await;
    let (took, _) = run_jobs(jobs, start, async { Ok(()) }).await?;
    Ok(took)
}

async fn one_worker(
    client: &Client,
    progress: &Arc<Progress>,
    concurrency: usize,
) -> Result<Vec<WorkerHandle>, BenchError> {
    let worker = Worker::new(client).job(progress.handler());
    Ok(vec![worker.concurrency(concurrency).start().await?])
}

/// Runs at least `jobs` jobs. Returns the time from the first start of a handler until `end` after the last one, and the
/// number of all starts.
async fn run_jobs(
    jobs: usize,
    start: impl AsyncFnOnce(&Arc<Progress>) -> Result<Vec<WorkerHandle>, BenchError>,
    end: impl Future<Output = Result<(), BenchError>>,
) -> Result<(Duration, usize), BenchError> {
    let progress = Progress::of(jobs);
    let workers = start(&progress).await?;
    let took = in_time(async {
        progress.last.notified().await;
        end.await?;
        let first = progress.first.get().copied().unwrap_or_else(Instant::now);
        Ok(first.elapsed())
    });
    let took = took.await?;
    join_all(workers.into_iter().map(WorkerHandle::stop)).await;
    Ok((took, progress.calls.load(Ordering::Relaxed)))
}

/// Returns when no job has a lease: the script that writes the end of a record also ends its lease.
async fn settled(client: &Client) -> Result<(), BenchError> {
    counted(client, &client.broker().keys().lease(), 0).await
}

/// Returns when this many jobs have ended.
pub(super) async fn all_ended(client: &Client, jobs: usize) -> Result<(), BenchError> {
    let ended = client.broker().keys().ended();
    in_time(counted(client, &ended, jobs)).await
}

/// Waits for the end of a whole run, within its time limit.
async fn in_time<T>(run: impl Future<Output = Result<T, BenchError>>) -> Result<T, BenchError> {
    let ended = tokio::time::timeout(PATIENCE, run).await;
    ended.map_err(|_| BenchError::Odd(format!("no end of the work in {PATIENCE:?}")))?
}

/// Returns when the sorted set `key` has this many entries.
async fn counted(client: &Client, key: &str, entries: usize) -> Result<(), BenchError> {
    let mut conn = client.broker().conn().clone();
    let mut looks = tokio::time::interval(LOOK);
    loop {
        looks.tick().await;
        let mut count = redis::cmd("ZCARD");
        if count.arg(key).query_async::<usize>(&mut conn).await? == entries {
            return Ok(());
        }
    }
}

/// Fails unless all jobs finished. Call it after the cost has been read, because it is no part of the work.
pub(super) async fn finished(client: &Client, ids: &[JobId]) -> Result<(), BenchError> {
    for some in ids.chunks(AT_ONCE) {
        let statuses = client.broker().statuses(some).await?;
        let other = |(_, status): &(_, Option<Status>)| *status != Some(Status::Finished);
        if let Some((id, status)) = some.iter().zip(statuses).find(other) {
            return Err(BenchError::Odd(format!("job {id} is {status:?}")));
        }
    }
    Ok(())
}

/// Times one job at a time for an idle worker, and its result.
pub(super) async fn latency(
    client: &Client,
    of_worker: &Client,
    samples: usize,
) -> Result<Latencies, BenchError> {
    let (sender, mut starts) = mpsc::unbounded_channel();
    let handler = move |_: Noop| {
        // The receiver is dropped when all samples are taken.
        let _ = sender.send(Instant::now());
        async { Ok::<_, String>("ok".to_owned()) }
    };
    let worker = Worker::new(of_worker).job(handler);
    let worker = worker.start().await?;
    worker.registered().await;
    let (mut pace, mut taken) = (tokio::time::interval(PACE), Latencies::default());
    for sample in 0..samples + WARM_UP {
        pace.tick().await;
        let request = request(PAYLOAD)?.reply(true);
        let began = Instant::now();
        let id = client.enqueue(request).await?;
        client.result(&id, PATIENCE).await?;
        let known = began.elapsed();
        let start = starts.recv().await;
        let start = start.ok_or_else(|| BenchError::Odd("the worker ended".into()))?;
        if sample >= WARM_UP {
            taken.add(start.duration_since(began), known);
        }
    }
    worker.stop().await;
    Ok(taken)
}

/// Times one Python script at a time in a sandbox, from the call that submits it to its result. Returns the median and
/// the 99th percentile in µs.
pub(super) async fn scripts(
    client: &Client,
    of_worker: &Client,
    profile: Profile,
    samples: usize,
) -> Result<Vec<f64>, BenchError> {
    let python: ScriptType = "python".parse()?;
    let worker = Worker::new(of_worker).script_type(&python)?;
    let worker = worker.sandbox(SandboxPolicy::new(profile)).start().await?;
    worker.registered().await;
    let (mut pace, mut times) = (tokio::time::interval(PACE), Vec::new());
    for sample in 0..samples + WARM_UP {
        pace.tick().await;
        let request = JobRequest::new(python.clone(), "result = 1").reply(true);
        let began = Instant::now();
        let id = client.enqueue(request).await?;
        client.result(&id, PATIENCE).await?;
        if sample >= WARM_UP {
            times.push(began.elapsed());
        }
    }
    worker.stop().await;
    Ok(percentiles(times).to_vec())
}
