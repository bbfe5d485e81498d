//! Jobs that a worker claims beyond its slots. Called by the tests of the worker.

use std::sync::Arc;

use meshwork::runtime::JobContext;
use meshwork::{Client, JobRequest, Prefetch, Worker, WorkerHandle};
use meshwork_model::job::NewJob;
use meshwork_model::name::JobId;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;
use tokio::sync::{Semaphore, watch};

use super::PATIENCE;
use crate::worker_support::raw;

const NAME: &str = "short";

/// Number of short jobs before a long one: enough for a measurement.
const SHORT_JOBS: usize = 300;

/// A handler of jobs that end at once, except `"long"` ones, which wait for a permit.
#[derive(Clone)]
struct Handler {
    begun: watch::Sender<bool>,
    permits: Arc<Semaphore>,
}

impl Handler {
    fn new() -> Self {
        Self {
            begun: watch::Sender::new(false),
            permits: Arc::new(Semaphore::new(0)),
        }
    }

    async fn start(&self, client: &Client, prefetch: Prefetch) -> WorkerHandle {
        let handler = self.clone();
        let run = move |text: String, _: JobContext| {
            let handler = handler.clone();
            async move {
                if text == "long" {
                    handler.begun.send_replace(true);
                    let permit = handler.permits.acquire().await;
                    permit.map_err(|closed| closed.to_string())?.forget();
                }
                Ok::<_, String>(())
            }
        };
        let worker = Worker::new(client).handle(NAME, run);
        let worker = worker.concurrency(1).prefetch(prefetch);
        worker.start().await.unwrap()
    }

    async fn wait_for_the_long_job(&self) {
        let mut begun = self.begun.subscribe();
        let begun = begun.wait_for(|begun| *begun);
        tokio::time::timeout(PATIENCE, begun)
            .await
            .unwrap()
            .unwrap();
    }
}

fn jobs(text: &str, count: usize) -> Vec<NewJob> {
    let request = || JobRequest::new(NAME.parse().unwrap(), format!("\"{text}\""));
    (0..count).map(|_| request().build().unwrap()).collect()
}

fn ids(jobs: &[NewJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id.clone()).collect()
}

/// All have run once, in their first attempts.
async fn ended_once(client: &Client, jobs: &[NewJob]) {
    for job in jobs {
        let job = client.result(&job.id, PATIENCE).await.unwrap();
        assert_eq!((job.attempt, job.lost), (1, 0));
    }
}

/// Returns when only the long job has a lease.
async fn only_one_is_leased(client: &Client) {
    eventually("the other jobs return", PATIENCE, async || {
        (client.broker().running().await.unwrap() == 1).then_some(())
    })
    .await;
}

/// Another worker runs the jobs behind a long one, in their order and without a counted attempt.
pub(crate) async fn prefetched_jobs_return_when_no_slot_becomes_free(client: Client) {
    let handler = Handler::new();
    let (long, behind) = (jobs("long", 1), jobs("x", 40));
    let all = [jobs("x", SHORT_JOBS), long.clone(), behind.clone()].concat();
    client.enqueue_built(&all).await.unwrap();
    let busy = handler.start(&client, Prefetch::Auto).await;
    handler.wait_for_the_long_job().await;
    only_one_is_leased(&client).await;
    let queue = client
        .broker()
        .keys()
        .work_queue_type(&NAME.parse().unwrap());
    let mut waiting: Vec<String> = raw(&client, &["LRANGE", &queue, "0", "-1"]).await;
    waiting.reverse();
    let expected: Vec<_> = ids(&behind).iter().map(ToString::to_string).collect();
    assert_eq!(waiting, expected);
    let idle = handler.start(&client, Prefetch::Auto).await;
    ended_once(&client, &behind).await;
    handler.permits.add_permits(1);
    ended_once(&client, &all).await;
    busy.stop().await;
    idle.stop().await;
}

/// A worker that stops returns its prefetched jobs at once, and finishes the running one.
pub(crate) async fn a_stopping_worker_returns_prefetched_jobs(client: Client) {
    let handler = Handler::new();
    let all = [jobs("x", SHORT_JOBS), jobs("long", 1), jobs("x", 40)].concat();
    client.enqueue_built(&all).await.unwrap();
    let busy = handler.start(&client, Prefetch::Auto).await;
    handler.wait_for_the_long_job().await;
    busy.quiet();
    only_one_is_leased(&client).await;
    handler.permits.add_permits(1);
    let stopped = tokio::time::timeout(PATIENCE, busy.stop()).await;
    assert_eq!(stopped.unwrap(), 0, "no running job was released");
    let next = handler.start(&client, Prefetch::AtMost(64)).await;
    ended_once(&client, &all).await;
    next.stop().await;
}

/// A job that is cancelled while it waits for a slot does not run.
pub(crate) async fn a_prefetched_job_can_be_cancelled(client: Client) {
    let handler = Handler::new();
    let (before, all) = (jobs("x", SHORT_JOBS), jobs("long", 2));
    client.enqueue_built(&before).await.unwrap();
    client.enqueue_built(&all).await.unwrap();
    let worker = handler.start(&client, Prefetch::Auto).await;
    handler.wait_for_the_long_job().await;
    client.cancel(&all[1].id).await.unwrap();
    let cancelled = client.result(&all[1].id, PATIENCE).await;
    assert!(cancelled.is_err(), "{cancelled:?}");
    handler.permits.add_permits(1);
    ended_once(&client, &all[..1]).await;
    worker.stop().await;
}

async fn calls(client: &Client) -> usize {
    let stats: String = raw(client, &["INFO", "commandstats"]).await;
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    let calls = line.and_then(|line| line.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

/// One slot runs many short jobs with each call; without prefetch, each needs a call.
#[tokio::test(flavor = "multi_thread")]
async fn short_jobs_share_calls() {
    let Some(server) = RealServer::redis().start() else {
        return; // reported as skipped
    };
    let client = Client::open(&server.url()).await.unwrap();
    for (prefetch, shared) in [(Prefetch::Auto, true), (Prefetch::Off, false)] {
        let handler = Handler::new();
        let all = jobs("x", SHORT_JOBS);
        client.enqueue_built(&all).await.unwrap();
        let before = calls(&client).await;
        let worker = handler.start(&client, prefetch).await;
        ended_once(&client, &all).await;
        worker.stop().await;
        let calls = calls(&client).await - before;
        println!("{prefetch:?}: {calls} calls for {SHORT_JOBS} jobs");
        assert_eq!(calls < SHORT_JOBS * 3 / 4, shared, "{prefetch:?}: {calls}");
    }
}
