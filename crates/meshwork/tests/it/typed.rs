//! Typed jobs: options, handles, duplicates, arguments of handlers, layers, and faults at the start.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use meshwork::handler::{BoxError, JobCall, JobOutput};
use meshwork::testing::{assert_enqueued, drain, perform, refute_enqueued};
use meshwork::{
    Attempt, CancellationToken, Client, Error, Inputs, Job, JobContext, JobError, Priority,
    Progress, State, Worker,
};
use meshwork_model::state::State as JobState;
use meshwork_test_servers::eventually;
use serde::{Deserialize, Serialize};
use tower::{Layer, Service, ServiceExt};

use crate::engines::on_each_engine;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Job)]
#[job(
    output = Paid,
    retries = 2,
    backoff = "250ms",
    timeout = "90s",
    start_timeout = "1h",
    priority = "high",
    key = "{customer}",
    unique = "pay-{order}"
)]
struct PayOrder {
    order: u64,
    customer: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Paid {
    order: u64,
    by: String,
}

#[meshwork::job(timeout = "5min")]
struct Plain;

fn order(order: u64) -> PayOrder {
    let customer = "ada".to_owned();
    PayOrder { order, customer }
}

async fn pay(job: PayOrder, State(bank): State<&'static str>) -> Result<Paid, JobError> {
    match job.order {
        0 => Err(JobError::permanent("there is no order 0")),
        order => Ok(Paid {
            order,
            by: bank.to_owned(),
        }),
    }
}

async fn plain(_: Plain) -> Result<(), String> {
    Ok(())
}

on_each_engine![
    a_job_has_the_options_of_its_type_and_of_its_call,
    an_earlier_job_is_the_answer,
    results_and_failures_come_back_typed,
    many_jobs_have_an_answer_each,
    jobs_wait_for_others,
    handlers_that_cannot_run_are_named_at_the_start,
    all_that_waits_runs,
];

async fn a_job_has_the_options_of_its_type_and_of_its_call(client: Client) {
    assert_eq!((PayOrder::NAME, Plain::NAME), ("pay_order", "plain"));
    let job = client
        .enqueue(order(7))
        .await
        .unwrap()
        .record()
        .await
        .unwrap();
    assert_eq!(job.script_type.as_deref(), Some("pay_order"));
    assert_eq!((job.retries, job.timeout), (2, 90));
    assert_eq!(job.priority.as_deref(), Some("high"));
    assert_eq!(job.key.as_deref(), Some("ada"));
    assert_eq!(
        serde_json::from_slice::<PayOrder>(&job.script).unwrap(),
        order(7)
    );
    let call = client
        .enqueue(order(8))
        .id("mine")
        .retries(5)
        .priority(Priority::Low);
    let later = call
        .delay(Duration::from_secs(60))
        .tag("web".parse().unwrap());
    let handle = later.await.unwrap();
    let job = handle.record().await.unwrap();
    assert_eq!((handle.id().as_str(), job.retries), ("mine", 5));
    assert_eq!(
        (job.priority.as_deref(), &job.tags[..]),
        (Some("low"), &["web".to_owned()][..])
    );
    assert_eq!(handle.status().await.unwrap(), Some(JobState::Delayed));
    handle.cancel().await.unwrap();
    assert_eq!(handle.status().await.unwrap(), Some(JobState::Cancelled));
    let refused = client.enqueue(order(9)).id("no id").await;
    assert!(matches!(refused, Err(Error::Name(_))), "{refused:?}");
}

async fn an_earlier_job_is_the_answer(client: Client) {
    let first = client.enqueue(order(7)).await.unwrap();
    let second = client.enqueue(order(7)).await.unwrap();
    assert_eq!((first.is_new(), second.is_new()), (true, false));
    assert_eq!(first.id(), second.id());
    let named = client.enqueue(Plain).id("one").await.unwrap();
    let again = client.enqueue(Plain).id("one").await.unwrap();
    assert_eq!((named.is_new(), again.is_new()), (true, false));
}

async fn results_and_failures_come_back_typed(client: Client) {
    let worker = Worker::new(&client).job(pay).job(plain).state("bank");
    let worker = worker.start().await.unwrap();
    let paid = client.call(order(7)).await.unwrap();
    let by = "bank".to_owned();
    assert_eq!(paid, Paid { order: 7, by });
    client.call(Plain).await.unwrap();
    let failed = client.call(order(0)).await;
    assert!(
        matches!(&failed, Err(Error::Failed { message, .. }) if message == "there is no order 0"),
        "{failed:?}"
    );
    let handle = client.job::<PayOrder>("none".parse().unwrap());
    assert!(matches!(
        handle.result().await,
        Err(Error::JobNotFound { .. })
    ));
    worker.stop().await;
}

async fn many_jobs_have_an_answer_each(client: Client) {
    client.enqueue(order(3)).await.unwrap();
    let handles = client.enqueue_all((0..1500).map(order)).await.unwrap();
    let handles: Vec<_> = handles.into_iter().map(Result::unwrap).collect();
    assert_eq!(handles.iter().filter(|job| !job.is_new()).count(), 1);
    assert!(!handles[3].is_new());
    let again = client.enqueue_all((0..1500).map(order)).await.unwrap();
    assert!(again.into_iter().flatten().all(|job| !job.is_new()));
}

async fn jobs_wait_for_others(client: Client) {
    let first = client.enqueue(Plain).await.unwrap();
    let second = client.enqueue(order(1)).after(&first).await.unwrap();
    assert_eq!(second.status().await.unwrap(), Some(JobState::Waiting));
    let worker = Worker::new(&client).job(pay).job(plain).state("bank");
    let done = drain(&client, worker).await.unwrap();
    assert_eq!((done.finished, done.waiting), (2, 0));
    assert_eq!(second.result().await.unwrap().order, 1);
}

async fn handlers_that_cannot_run_are_named_at_the_start(client: Client) {
    let missing = Worker::new(&client).job(pay).start().await.err().unwrap();
    let said = missing.to_string();
    assert!(
        said.contains("pay_order") && said.contains("&str") && said.contains(".state("),
        "{said}"
    );
    let two = Worker::new(&client)
        .job(plain)
        .job(plain)
        .start()
        .await
        .err()
        .unwrap();
    assert!(
        two.to_string().contains("two handlers") && two.to_string().contains("plain"),
        "{two}"
    );
}

async fn all_that_waits_runs(client: Client) {
    #[derive(Serialize, Deserialize, Job)]
    struct Count {
        down: u32,
    }
    async fn count(job: Count, State(client): State<Client>) -> Result<(), Error> {
        if job.down > 0 {
            client.enqueue(Count { down: job.down - 1 }).await?;
        }
        Ok(())
    }
    let worker = Worker::new(&client).job(count).state(client.clone());
    client.enqueue(Count { down: 3 }).await.unwrap();
    let later = client
        .enqueue(Count { down: 0 })
        .delay(Duration::from_secs(3600));
    let later = later.await.unwrap();
    client.enqueue(Plain).await.unwrap();
    let done = drain(&client, worker.clone()).await.unwrap();
    assert_eq!(
        (done.finished, done.failed, done.delayed, done.waiting),
        (4, 0, 1, 1)
    );
    assert_enqueued::<Count>(&client, |job| job.down == 0).await;
    refute_enqueued::<Count>(&client, |job| job.down == 1).await;
    client.run_now(later.id()).await.unwrap();
    assert_eq!(drain(&client, worker).await.unwrap().finished, 5);
}

#[tokio::test]
#[should_panic(expected = "none of 0 open jobs of the type plain matches")]
async fn a_job_that_is_missing_is_named() {
    assert_enqueued::<Plain>(&Client::in_memory(), |_| true).await;
}

#[tokio::test]
async fn handlers_run_without_a_store() {
    async fn all(
        job: PayOrder,
        context: JobContext,
        Attempt(attempt): Attempt,
        progress: Progress,
        stop: CancellationToken,
        inputs: Inputs,
        State(number): State<u32>,
    ) -> Result<Paid, Box<dyn std::error::Error + Send + Sync>> {
        progress.set(0.5, "half");
        let _ = inputs;
        match attempt {
            1 => Err(JobError::retry_after(Duration::from_secs(9), "too early").into()),
            2 => Err("an error of another type".into()),
            3 => panic!("a fault of the handler"),
            _ => Ok(Paid {
                order: job.order,
                by: format!("{} {number} {}", context.attempt, stop.is_cancelled()),
            }),
        }
    }
    let run = |attempt| perform(all, order(7)).state(5_u32).attempt(attempt);
    assert_eq!(run(4).await.unwrap().by, "4 5 false");
    let early = run(1).await.unwrap_err();
    assert_eq!(
        (early.message.as_str(), early.after),
        ("too early", Some(Duration::from_secs(9)))
    );
    assert_eq!(
        run(2).await.unwrap_err().message,
        "an error of another type"
    );
    assert!(
        run(3)
            .await
            .unwrap_err()
            .message
            .contains("a fault of the handler")
    );
    let missing = perform(all, order(7)).await.unwrap_err();
    assert!(missing.message.contains("u32"), "{missing}");
}

#[meshwork::job(output = String)]
struct Demand {
    end: End,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum End {
    Large,
    Permanent,
    Retry,
    Snooze,
    Discard,
    Other,
}

/// Longest wait for a run.
const PATIENCE: Duration = Duration::from_secs(60);
/// One byte more than a result may have, with its quotes.
const TOO_LARGE: usize = 16 * 1024 * 1024 - 1;

async fn demand(job: Demand) -> anyhow::Result<String> {
    let pause = Duration::from_secs(60);
    match job.end {
        End::Large => Ok("x".repeat(TOO_LARGE)),
        End::Permanent => Err(JobError::permanent("no card"))?,
        End::Retry => Err(JobError::retry_after(pause, "busy")).context("the bank")?,
        End::Snooze => anyhow::bail!(JobError::snooze(pause)),
        End::Discard => Err(anyhow::Error::from(JobError::discard("gone"))).context("the order")?,
        End::Other => anyhow::bail!("another error"),
    }
}

#[meshwork::job(timeout = "1s")]
struct Late;

async fn late(_: Late, stop: CancellationToken) -> Result<(), String> {
    stop.cancelled().await;
    Ok(())
}

#[tokio::test]
async fn the_timeout_of_a_job_holds_without_a_store() {
    let failure = perform(late, Late).await.unwrap_err();
    assert_eq!(failure.kind, meshwork::FailureKind::Timeout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_alone_fails_as_in_a_worker() {
    use meshwork::FailureKind as Kind;
    let client = Client::in_memory();
    let worker = Worker::new(&client).job(demand).start().await.unwrap();
    for (end, kind, message, state) in [
        (
            End::Large,
            Kind::Permanent,
            "the limit is 16777216",
            JobState::Failed,
        ),
        (End::Permanent, Kind::Permanent, "no card", JobState::Failed),
        (End::Retry, Kind::Script, "busy", JobState::Delayed),
        (
            End::Snooze,
            Kind::Snoozed,
            "snoozed for 1 min",
            JobState::Delayed,
        ),
        (End::Discard, Kind::Discarded, "gone", JobState::Failed),
        (End::Other, Kind::Script, "another error", JobState::Failed),
    ] {
        let failure = perform(demand, Demand { end }).await.unwrap_err();
        assert_eq!(failure.kind, kind, "{end:?}");
        assert!(failure.message.contains(message), "{end:?}: {failure}");
        let retries = u32::from(failure.after.is_some());
        let job = client
            .enqueue(Demand { end })
            .retries(retries)
            .await
            .unwrap();
        let seen = eventually("the run ends", PATIENCE, async || {
            let state = job.status().await.unwrap();
            state.filter(|state| !matches!(state, JobState::Queued | JobState::Running))
        });
        assert_eq!(seen.await, state, "{end:?}");
        let record = client.status(job.id()).await.unwrap();
        let dead = record.dead.is_some();
        assert_eq!(
            dead,
            state == JobState::Failed && kind != Kind::Discarded,
            "{end:?}"
        );
        if state == JobState::Failed {
            assert!(record.error.unwrap().contains(message), "{end:?}");
        }
    }
    worker.stop().await;
}

/// A layer that counts runs, and refuses those of one payload.
#[derive(Clone)]
struct Counted(Arc<AtomicUsize>);

impl<S: Service<JobCall, Response = JobOutput, Error = BoxError> + Clone + Send + Sync + 'static>
    Layer<S> for Counted
where
    S::Future: Send,
{
    type Service = meshwork::handler::JobService;

    fn layer(&self, inner: S) -> Self::Service {
        let count = Arc::clone(&self.0);
        let service = tower::service_fn(move |call: JobCall| {
            count.fetch_add(1, Ordering::SeqCst);
            let inner = inner.clone();
            async move {
                assert_eq!((call.name(), call.context().attempt), ("pay_order", 1));
                match call.payload() == br#"{"order":2,"customer":"ada"}"# {
                    true => Err(BoxError::from(JobError::permanent("not this one"))),
                    false => inner.oneshot(call).await,
                }
            }
        });
        meshwork::handler::JobService::new(service)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn layers_are_around_all_handlers() {
    let client = Client::in_memory();
    let counted = Counted(Arc::default());
    let worker = Worker::new(&client)
        .job(pay)
        .state("bank")
        .layer(counted.clone());
    let worker = worker.start().await.unwrap();
    assert_eq!(client.call(order(1)).await.unwrap().order, 1);
    let refused = client.call(order(2)).await.unwrap_err();
    assert!(refused.to_string().contains("not this one"), "{refused}");
    assert_eq!(counted.0.load(Ordering::SeqCst), 2);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_runs_until_it_is_stopped() {
    let client = Client::in_memory();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let worker = Worker::new(&client).job(plain);
    let worker = tokio::spawn(worker.run_until(async { stopped.await.unwrap() }));
    client.call(Plain).await.unwrap();
    stop.send(()).unwrap();
    worker.await.unwrap().unwrap();
}
