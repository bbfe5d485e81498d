//! One worker of the scenario, its jobs, and the list of their runs in the store.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use meshwork::context::{Node, read_key};
use meshwork::spread::{Spread, SpreadError};
use meshwork::{
    Client, Error, Job, JobContext, JobRequest, OnDuplicate, State, Until, Worker, shutdown_signal,
};
use serde::{Deserialize, Serialize};

use super::{END, LOOK, NAMESPACE};
use crate::chaos::ChaosError;
use crate::chaos::hostile::failed;

/// Duration of a lease without a renewal.
const LEASE: Duration = Duration::from_secs(3);
/// Number of jobs at a time in each worker.
const CONCURRENCY: usize = 8;
/// Retries of a job, for the time in which the server is down.
const RETRIES: u32 = 50;
/// Time for which a unique name holds: longer than the scenario.
const WINDOW_MS: u64 = 24 * 3600 * 1000;

/// A step of a key, or one without a key.
#[derive(Debug, Serialize, Deserialize)]
struct Step {
    key: Option<usize>,
    number: usize,
}

impl Job for Step {
    const NAME: &'static str = "step";
    type Input = ();
    type Output = ();

    fn defaults(&self, request: JobRequest) -> JobRequest {
        request.retries(RETRIES).backoff(Duration::from_millis(50))
    }
}

fn job(step: &Step) -> Result<JobRequest, Error> {
    let request = JobRequest::new(Step::NAME.parse()?, "").payload(step)?;
    Ok(step.defaults(request))
}

/// Returns the job of this number of a key. Enqueuing it twice stores one.
pub(super) fn request(key: usize, number: usize) -> Result<JobRequest, Error> {
    let request = job(&Step {
        key: Some(key),
        number,
    })?;
    let unique = format!("{key}-{number}");
    let request = request.key(key.to_string());
    Ok(request.unique(unique, Until::For(WINDOW_MS), OnDuplicate::Keep))
}

/// Returns a job without a key.
pub(super) fn plain() -> Result<JobRequest, Error> {
    job(&Step {
        key: None,
        number: 0,
    })
}

fn list(key: usize) -> String {
    format!("{NAMESPACE}:runs:{key}")
}

/// Notes the run. It waits while the server is down: a job that fails is retried later, behind others of its key.
async fn step(
    job: Step,
    _: JobContext,
    State(client): State<Client>,
) -> Result<(), redis::RedisError> {
    if let Some(key) = job.key {
        let mut push = redis::cmd("RPUSH");
        push.arg(list(key)).arg(job.number);
        let (until, mut again) = (Instant::now() + END, tokio::time::interval(LOOK));
        loop {
            again.tick().await;
            let mut conn = client.broker().conn().clone();
            let pushed: redis::RedisResult<u64> = push.query_async(&mut conn).await;
            match pushed {
                Ok(_) => break,
                Err(_) if Instant::now() < until => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Returns the runs of each key, in their order.
pub(super) async fn runs(
    client: &Client,
    keys: usize,
) -> Result<BTreeMap<usize, Vec<usize>>, ChaosError> {
    let mut pipe = redis::pipe();
    for key in 0..keys {
        pipe.cmd("LRANGE").arg(list(key)).arg(0).arg(-1);
    }
    let mut conn = client.broker().conn().clone();
    let runs: Vec<Vec<usize>> = pipe
        .query_async(&mut conn)
        .await
        .map_err(|error| failed(&error))?;
    Ok(runs.into_iter().enumerate().collect())
}

/// Works until SIGTERM, for the server of `REDIS_URL`, as the actor of `MESHWORK_ACTOR_KEY`.
///
/// # Errors
/// A variable is missing or wrong, or the server cannot be reached.
pub async fn be_worker() -> Result<(), String> {
    let variable = |name| std::env::var(name).map_err(|error| format!("{name}: {error}"));
    let (url, key) = (
        variable("REDIS_URL")?,
        PathBuf::from(variable("MESHWORK_ACTOR_KEY")?),
    );
    let (until, mut again) = (Instant::now() + END, tokio::time::interval(LOOK));
    let (client, spread) = loop {
        again.tick().await;
        match open(&url, &key).await {
            Ok(opened) => break opened,
            // The server may be down.
            Err(_) if Instant::now() < until => {}
            Err(error) => return Err(error.to_string()),
        }
    };
    let worker = |of_part: &Client| {
        Worker::new(of_part)
            .job(step)
            .state(client.clone())
            .lease(LEASE)
    };
    meshwork_test_servers::say("ready");
    // The server may be killed while the first workers start.
    loop {
        match spread
            .run_until(CONCURRENCY, worker, shutdown_signal())
            .await
        {
            Ok(()) => return Ok(()),
            Err(_) if Instant::now() < until => {
                again.tick().await;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

pub(super) async fn client(url: &str) -> Result<Client, Error> {
    let builder = Client::builder().url(url).namespace(NAMESPACE);
    builder.connect().await
}

async fn open(url: &str, key: &std::path::Path) -> Result<(Client, Spread), SpreadError> {
    let client = client(url).await?;
    let node = Node::of(client.broker());
    let me = node.identify(read_key(key)?).await?;
    let spread = Spread::open(&node, &me, Step::NAME.parse()?).await?;
    Ok((client, spread))
}
