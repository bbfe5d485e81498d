//! Several jobs in one call of a handler: which come together, and that each is a job of its own all the same.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::engines::embedded;
use meshwork::runtime::{BatchOptions, JobContext};
use meshwork::{Cancelled, Client, Error, JobRequest, Worker, WorkerHandle};
use meshwork_model::job::NewJob;
use meshwork_model::name::ScriptType;
use meshwork_model::retry::RetryBackoff;
use meshwork_model::state::Status;
use tokio::sync::watch;

/// Timeout: long enough for a busy machine, short enough to detect a hang.
const PATIENCE: Duration = Duration::from_secs(30);
/// A group that waits so long is not handed over before it is full.
const LONG: Duration = Duration::from_secs(60);

fn name() -> ScriptType {
    "sum".parse().unwrap()
}

fn job(number: u64) -> NewJob {
    let request = JobRequest::new(name(), "").payload(&number).unwrap();
    request.build().unwrap()
}

async fn submit(client: &Client, numbers: std::ops::Range<u64>) -> Vec<NewJob> {
    let jobs: Vec<_> = numbers.map(job).collect();
    client.enqueue_built(&jobs).await.unwrap();
    jobs
}

async fn output(client: &Client, job: &NewJob) -> u64 {
    let done = client.result(&job.id, PATIENCE).await.unwrap();
    serde_json::from_slice(done.output.as_deref().unwrap()).unwrap()
}

/// The sizes of the groups, in the order of their calls.
type Sizes = Arc<Mutex<Vec<usize>>>;

/// A worker that adds the size of its group to each number; odd numbers fail the first time.
async fn adds(client: &Client, many: BatchOptions, sizes: &Sizes) -> WorkerHandle {
    let noted = Arc::clone(sizes);
    let handler = move |jobs: Vec<(u64, JobContext)>| {
        noted.lock().unwrap().push(jobs.len());
        let size = jobs.len() as u64;
        let result = move |(number, context): (u64, JobContext)| match (number % 2, context.attempt)
        {
            (1, 1) => Err(format!("{number} is odd")),
            _ => Ok(number + size),
        };
        async move { jobs.into_iter().map(result).collect() }
    };
    let soon = Duration::from_millis(1);
    let worker = Worker::new(client).backoff(RetryBackoff {
        first: soon,
        cap: soon,
    });
    let worker = worker.concurrency(8).handle_batch("sum", many, handler);
    worker.start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_group_is_one_call_and_each_has_its_own_result() {
    let (client, sizes) = (embedded(), Sizes::default());
    let jobs = submit(&client, 0..8).await;
    let worker = adds(&client, BatchOptions::up_to(4).linger(LONG), &sizes).await;
    for (number, job) in jobs
        .iter()
        .enumerate()
        .filter(|(number, _)| number % 2 == 0)
    {
        assert_eq!(output(&client, job).await, number as u64 + 4);
    }
    for job in jobs.iter().skip(1).step_by(2) {
        let failed = client.result(&job.id, PATIENCE).await.unwrap_err();
        assert!(matches!(failed, Error::Failed { message, .. } if message.ends_with("is odd")));
    }
    assert_eq!(*sizes.lock().unwrap(), [4, 4]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_fail_are_run_again_without_the_others() {
    let (client, sizes) = (embedded(), Sizes::default());
    let mut jobs: Vec<_> = (0..4).map(job).collect();
    for job in &mut jobs {
        job.retries = 1;
    }
    client.enqueue_built(&jobs).await.unwrap();
    let worker = adds(&client, BatchOptions::up_to(4), &sizes).await;
    for job in &jobs {
        let done = client.result(&job.id, PATIENCE).await.unwrap();
        let number: u64 = serde_json::from_slice(&done.script).unwrap();
        assert_eq!(u64::from(done.attempt), 1 + number % 2);
    }
    let runs: usize = sizes.lock().unwrap().iter().sum();
    assert_eq!(runs, 6);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_waits_for_the_others_as_long_as_it_is_told() {
    let (client, sizes) = (embedded(), Sizes::default());
    let worker = adds(&client, BatchOptions::up_to(3).linger(LONG), &sizes).await;
    let mut jobs = Vec::new();
    for number in [0, 2, 4] {
        jobs.extend(submit(&client, number..number + 1).await);
    }
    for (job, number) in jobs.iter().zip([0, 2, 4]) {
        assert_eq!(output(&client, job).await, number + 3);
    }
    worker.stop().await;
    // Without a word, a job that is alone does not wait.
    let worker = adds(&client, BatchOptions::up_to(3), &sizes).await;
    let alone = submit(&client, 6..7).await;
    assert_eq!(output(&client, &alone[0]).await, 7);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_jobs_of_one_key_come_together_if_asked() {
    let (client, sizes) = (embedded(), Sizes::default());
    let mut jobs: Vec<_> = (0..8).map(|number| job(2 * number)).collect();
    for (number, job) in jobs.iter_mut().enumerate() {
        job.key = Some(format!("key {}", number % 4));
    }
    client.enqueue_built(&jobs).await.unwrap();
    let worker = adds(
        &client,
        BatchOptions::up_to(2).linger(LONG).by_key(),
        &sizes,
    )
    .await;
    for (number, job) in jobs.iter().enumerate() {
        assert_eq!(output(&client, job).await, 2 * number as u64 + 2);
    }
    assert_eq!(*sizes.lock().unwrap(), [2, 2, 2, 2]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_as_a_whole_fails_each_job() {
    let handler = |jobs: Vec<(u64, JobContext)>| {
        assert!(jobs[0].0 < 10, "on request");
        async { vec![Ok::<_, String>(1)] }
    };
    for (from, message) in [
        (10, "the handler panicked: on request"),
        (0, "the handler gave 1 results for 3 jobs"),
    ] {
        let client = embedded();
        let jobs = submit(&client, from..from + 3).await;
        let worker =
            Worker::new(&client).handle_batch("sum", BatchOptions::up_to(3).linger(LONG), handler);
        let worker = worker.start().await.unwrap();
        for job in &jobs {
            let failed = client.result(&job.id, PATIENCE).await.unwrap_err();
            let Error::Failed { message: said, .. } = failed else {
                panic!("{failed}");
            };
            assert_eq!(said, message);
        }
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_group_can_be_stopped_and_the_others_go_on() {
    let (client, begun, open) = (embedded(), watch::Sender::new(0), watch::Sender::new(false));
    let (tell, gate) = (begun.clone(), open.clone());
    let handler = move |jobs: Vec<(u64, JobContext)>| {
        tell.send_modify(|begun| *begun += jobs.len());
        let gate = gate.clone();
        async move {
            let mut open = gate.subscribe();
            open.wait_for(|open| *open).await.unwrap();
            let result = |(number, _)| Ok::<u64, String>(number);
            jobs.into_iter().map(result).collect()
        }
    };
    let worker = Worker::new(&client).cancel_grace(Duration::ZERO);
    let worker = worker.handle_batch("sum", BatchOptions::up_to(2).linger(LONG), handler);
    let worker = worker.start().await.unwrap();
    let jobs = submit(&client, 0..2).await;
    let mut begun = begun.subscribe();
    let all = begun.wait_for(|begun| *begun == 2);
    tokio::time::timeout(PATIENCE, all).await.unwrap().unwrap();
    let waiting = submit(&client, 2..3).await;
    for job in [&jobs[0], &waiting[0]] {
        // One runs; the other waits for a worker, or there for a second one.
        let stopped = client.cancel(&job.id).await.unwrap();
        assert!(matches!(
            stopped,
            Cancelled::Stopping | Cancelled::Cancelled
        ));
        let failed = client.result(&job.id, PATIENCE).await.unwrap_err();
        assert!(matches!(failed, Error::Failed { message, .. } if message == "stopped_by_request"));
    }
    open.send_replace(true);
    assert_eq!(output(&client, &jobs[1]).await, 1);
    let job = client.status(&jobs[1].id).await.unwrap();
    assert_eq!((job.status(), job.attempt), (Some(Status::Finished), 1));
    worker.stop().await;
}
