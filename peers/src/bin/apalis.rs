//! apalis with its storage in Redis: `apalis JOBS…` (the verbs are in the library). Default settings: tasks have
//! leases, results are stored, and events are published.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use apalis::prelude::*;
use apalis_redis::{Config, ConnectionManager, RedisStorage};
use futures_util::StreamExt;
use meshwork_peers::{BULK, Failure, LOOK, Latencies, PACE, Peer, Starts, WARM_UP, payload};
use redis::AsyncCommands;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Name of the queue.
const QUEUE: &str = "bench";
/// Name of the worker.
const WORKER: &str = "bench-worker";
/// Number of tasks that a worker fetches at once: the library's default.
const FETCH: usize = 10;
/// Interval of a worker's polls. The library has no default: without it, a worker looks once per heartbeat, 30 s.
const POLL: Duration = Duration::from_millis(100);

struct Apalis {
    conn: ConnectionManager,
}

impl Peer for Apalis {
    const CRATE: &'static str = "apalis-redis";

    async fn connect(url: &str, _: usize) -> Result<Self, Failure> {
        let conn = apalis_redis::connect(url).await?;
        Ok(Self { conn })
    }

    async fn enqueue_one(self, jobs: usize) -> Result<Duration, Failure> {
        let mut storage = self.storage(FETCH);
        let began = Instant::now();
        for _ in 0..jobs {
            storage.push(payload()).await?;
        }
        Ok(began.elapsed())
    }

    async fn enqueue_bulk(self, jobs: usize) -> Result<Duration, Failure> {
        let (callers, batch) = BULK;
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for caller in 0..callers {
            let mut storage = self.storage(FETCH);
            tasks.spawn(async move {
                for from in (caller * batch..jobs).step_by(callers * batch) {
                    let some = vec![payload(); batch.min(jobs - from)];
                    storage.push_bulk(some).await?;
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Ok(began.elapsed())
    }

    async fn work(mut self, concurrency: usize, jobs: usize) -> Result<Duration, Failure> {
        let starts = Arc::new(Starts::default());
        let seen = Arc::clone(&starts);
        // A worker that runs more tasks at once fetches as many.
        let storage = self.storage(concurrency.max(FETCH));
        let worker = WorkerBuilder::new(WORKER)
            .backend(storage.poll_with_interval(POLL))
            .concurrency(concurrency)
            .build(move |_: String| {
                seen.add(jobs);
                async { Ok::<_, Infallible>("ok".to_owned()) }
            });
        let worker = tokio::spawn(async move { early(worker.run().await) });
        let ended = async {
            starts.all().await;
            let mut looks = tokio::time::interval(LOOK);
            // The script that stores a result adds the task to this set.
            while self.conn.scard::<_, usize>(format!("{QUEUE}:done")).await? < jobs {
                looks.tick().await;
            }
            starts.elapsed(jobs)
        };
        tokio::select! {
            ended = ended => ended,
            worker = worker => Err(worker?.into()),
        }
    }

    async fn latency(self, samples: usize) -> Result<Latencies, Failure> {
        let (sender, mut starts) = mpsc::unbounded_channel();
        let storage = self.storage(FETCH).poll_with_interval(POLL);
        let worker = WorkerBuilder::new(WORKER)
            .backend(storage)
            .concurrency(1)
            .build(move |_: String| {
                // The receiver is dropped when all samples are taken.
                let _ = sender.send(Instant::now());
                async { Ok::<_, Infallible>("ok".to_owned()) }
            });
        let worker = tokio::spawn(async move { early(worker.run().await) });
        let mut storage = self.storage(FETCH);
        let timed = async move {
            let (mut pace, mut taken) = (tokio::time::interval(PACE), Latencies::default());
            for sample in 0..samples + WARM_UP {
                pace.tick().await;
                let id = TaskId::from(sample as u64);
                let task = TaskBuilder::new(payload()).task_id(id.clone()).build();
                let began = Instant::now();
                storage.push_task(task).await?;
                let mut results = WaitForCompletion::<String>::wait_for_single(&mut storage, id);
                results.next().await.ok_or("no result")??;
                let known = began.elapsed();
                let start: Instant = starts.recv().await.ok_or("the worker has ended")?;
                if sample >= WARM_UP {
                    taken.add(start.duration_since(began), Some(known));
                }
            }
            Ok(taken)
        };
        tokio::select! {
            timed = timed => timed,
            worker = worker => Err(worker?.into()),
        }
    }
}

impl Apalis {
    fn storage(&self, fetch: usize) -> RedisStorage<String> {
        let config = Config::default().queue(QUEUE).batch_size(fetch);
        RedisStorage::new(self.conn.clone()).with_config(config)
    }
}

/// Returns the reason why a worker ended before its work.
fn early(worker: Result<(), impl std::fmt::Display>) -> String {
    match worker {
        Ok(()) => "the worker has ended".to_owned(),
        Err(error) => format!("the worker has ended: {error}"),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    meshwork_peers::main::<Apalis>().await
}
