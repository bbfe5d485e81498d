//! BullMQ, by its port to Rust: `bullmq JOBS…` (the verbs are in the library). Jobs have locks, which a worker renews.
//! Completed jobs stay with their return values.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bullmq::options::RedisConnectionOptions;
use bullmq::worker::{CancellationToken, WorkerEvent};
use bullmq::{
    BulkJob, Job, Queue, QueueEvent, QueueEvents, QueueEventsOptions, QueueOptions, Worker,
    WorkerOptions,
};
use meshwork_peers::{BULK, Failure, Latencies, PACE, Peer, Starts, WARM_UP, payload};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Name of the queue.
const QUEUE: &str = "bench";
/// Name of the jobs.
const JOB: &str = "noop";

struct BullMq {
    connection: RedisConnectionOptions,
    queue: Queue,
}

impl Peer for BullMq {
    const CRATE: &'static str = "bullmq-official";

    async fn connect(url: &str, _: usize) -> Result<Self, Failure> {
        let connection = RedisConnectionOptions::new().url(url);
        let options = QueueOptions::new().connection(connection.clone());
        let queue = Queue::with_options(QUEUE, options).await?;
        Ok(Self { connection, queue })
    }

    async fn enqueue_one(self, jobs: usize) -> Result<Duration, Failure> {
        let began = Instant::now();
        for _ in 0..jobs {
            self.queue.add(JOB, payload()).await?;
        }
        Ok(began.elapsed())
    }

    async fn enqueue_bulk(self, jobs: usize) -> Result<Duration, Failure> {
        let (callers, batch) = BULK;
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for caller in 0..callers {
            let queue = self.queue.clone();
            tasks.spawn(async move {
                for from in (caller * batch..jobs).step_by(callers * batch) {
                    let some = from..jobs.min(from + batch);
                    let some = some.map(|_| BulkJob::new(JOB, payload())).collect();
                    queue.add_bulk(some).await?;
                }
                Ok::<_, bullmq::Error>(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Ok(began.elapsed())
    }

    async fn work(self, concurrency: usize, jobs: usize) -> Result<Duration, Failure> {
        let starts = Arc::new(Starts::default());
        let seen = Arc::clone(&starts);
        let handler = move |_: Job, _: CancellationToken| {
            seen.add(jobs);
            async { Ok(json!("ok")) }
        };
        let worker = self.worker(handler, concurrency).await?;
        let mut completed = 0;
        // The event follows the script that stores the result.
        while completed < jobs {
            match worker.next_event().await.ok_or("the worker has ended")? {
                WorkerEvent::Completed { .. } => completed += 1,
                WorkerEvent::Failed { error, .. } | WorkerEvent::Error(error) => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        let took = starts.elapsed(jobs)?;
        match self.queue.get_completed_count().await? {
            stored if stored == jobs as u64 => Ok(took),
            stored => Err(format!("{stored} of {jobs} jobs are completed").into()),
        }
    }

    async fn latency(self, samples: usize) -> Result<Latencies, Failure> {
        // The library has no call that waits for a result; a client reads the stream of events, from its begin.
        let events = QueueEventsOptions {
            connection: self.connection.clone(),
            last_event_id: Some("0".to_owned()),
            ..QueueEventsOptions::default()
        };
        let events = QueueEvents::with_options(QUEUE, events).await?;
        let (sender, mut starts) = mpsc::unbounded_channel();
        let handler = move |_: Job, _: CancellationToken| {
            // The receiver is dropped when all samples are taken.
            let _ = sender.send(Instant::now());
            async { Ok(json!("ok")) }
        };
        let worker = self.worker(handler, 1).await?;
        tokio::spawn(async move { while worker.next_event().await.is_some() {} });
        let (mut pace, mut taken) = (tokio::time::interval(PACE), Latencies::default());
        for sample in 0..samples + WARM_UP {
            pace.tick().await;
            let began = Instant::now();
            let job = self.queue.add(JOB, payload()).await?;
            loop {
                let next = events.next_event().await;
                match next.ok_or("the stream of events has ended")?.event {
                    QueueEvent::Completed { job_id, .. } if job_id == job.id() => break,
                    QueueEvent::Failed { job_id, .. } => {
                        return Err(format!("job {job_id} failed").into());
                    }
                    _ => {}
                }
            }
            let known = began.elapsed();
            let start = starts.recv().await.ok_or("the worker has ended")?;
            if sample >= WARM_UP {
                taken.add(start.duration_since(began), Some(known));
            }
        }
        Ok(taken)
    }
}

impl BullMq {
    async fn worker<F, R>(&self, handler: F, concurrency: usize) -> Result<Worker, Failure>
    where
        F: Fn(Job, CancellationToken) -> R + Send + Sync + 'static,
        R: Future<Output = bullmq::Result<serde_json::Value>> + Send + 'static,
    {
        let options = WorkerOptions::new().connection(self.connection.clone());
        Ok(Worker::with_options(QUEUE, handler, options.concurrency(concurrency)).await?)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    meshwork_peers::main::<BullMq>().await
}
