//! Tests of the runs of a worker that stops.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use meshwork::runtime::{Run, Runtime};
use meshwork::{Client, JobRequest, Worker};
use meshwork_model::name::JobId;
use meshwork_model::outcome::Report;
use meshwork_test_servers::eventually;
use tokio::sync::watch;

use super::{PATIENCE, worker};
use crate::worker_support::{Scripted, osis, raw};

/// Runs until it is cancelled. The run of `slow` ends only when the test allows it.
struct Stoppable {
    begun: watch::Sender<usize>,
    signalled: watch::Sender<bool>,
    may_end: watch::Sender<bool>,
    ended: watch::Sender<bool>,
}

impl Stoppable {
    async fn slowly(&self) {
        self.signalled.send_replace(true);
        let _ = self.may_end.subscribe().wait_for(|may| *may).await;
        self.ended.send_replace(true);
    }
}

impl Runtime for Stoppable {
    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        self.begun.send_modify(|begun| *begun += 1);
        async move {
            run.stop.lost().await;
            if run.job.script == b"slow" {
                self.slowly().await;
            }
            Report::done("dropped")
        }
        .boxed()
    }
}

async fn waits<T>(on: &watch::Sender<T>, until: impl FnMut(&T) -> bool) {
    let mut on = on.subscribe();
    let came = tokio::time::timeout(PATIENCE, on.wait_for(until)).await;
    came.expect("it comes").unwrap();
}

/// Returns when the lease of a job was extended three times.
async fn is_renewed(client: &Client, id: &JobId) {
    for _ in 0..3 {
        let deadline =
            async || raw::<Option<f64>>(client, &["ZSCORE", "hero:q:lease", id.as_str()]).await;
        let last = deadline().await;
        assert!(last.is_some(), "{id} is held by nobody");
        eventually("the lease is extended", PATIENCE, async || {
            (deadline().await != last).then_some(())
        })
        .await;
    }
}

/// Lease of jobs that end slowly: also a busy host renews it in time.
const LEASE: Duration = Duration::from_secs(1);

/// Another worker begins it only when it has ended here, and until then it is this one's.
pub(crate) async fn what_is_handed_back_has_ended_here(client: Client) {
    let stoppable = Arc::new(Stoppable {
        begun: watch::Sender::new(0),
        signalled: watch::Sender::new(false),
        may_end: watch::Sender::new(false),
        ended: watch::Sender::new(false),
    });
    let first = Worker::new(&client).runtime(osis(), Arc::clone(&stoppable) as _);
    let first = first.lease(LEASE).shutdown_timeout(Duration::ZERO);
    let first = first.start().await.unwrap();
    let jobs = ["slow", "quick"].map(|script| JobRequest::new(osis(), script).build().unwrap());
    client.enqueue_built(&jobs).await.unwrap();
    waits(&stoppable.begun, |begun| *begun == 2).await;
    let stopping = tokio::spawn(first.stop());
    waits(&stoppable.signalled, |signalled| *signalled).await;
    let order = Arc::clone(&stoppable);
    let runner = Scripted::new(move |_| match *order.ended.borrow() {
        true => Report::done("after"),
        false => Report::done("beside"),
    });
    let second = worker(&client, &runner).start().await.unwrap();
    for job in &jobs {
        is_renewed(&client, &job.id).await;
    }
    stoppable.may_end.send_replace(true);
    assert_eq!(stopping.await.unwrap(), 2);
    for job in &jobs {
        let job = client.result(&job.id, PATIENCE).await.unwrap();
        assert_eq!(job.output.as_deref(), Some(b"after".as_slice()));
        assert_eq!((job.attempt, job.lost), (1, 0));
    }
    second.stop().await;
}

/// Holds its thread until a test lets it go.
struct Holding {
    begun: watch::Sender<usize>,
    go: Mutex<mpsc::Receiver<()>>,
}

impl Runtime for Holding {
    fn run(&self, _: Run) -> BoxFuture<'_, Report> {
        async move {
            self.begun.send_modify(|begun| *begun += 1);
            let _ = tokio::task::block_in_place(|| self.go.lock().unwrap().recv());
            Report::done("late")
        }
        .boxed()
    }
}

/// It cannot be cut off. Its job is released, and whoever stops the worker goes on.
pub(crate) async fn a_run_that_holds_its_thread_holds_up_no_stop(client: Client) {
    let (go, held) = mpsc::channel();
    let holding = Arc::new(Holding {
        begun: watch::Sender::new(0),
        go: Mutex::new(held),
    });
    let holds = Worker::new(&client).runtime(osis(), Arc::clone(&holding) as _);
    let holds = holds
        .shutdown_timeout(Duration::ZERO)
        .start()
        .await
        .unwrap();
    let job = JobRequest::new(osis(), "once").build().unwrap();
    client
        .enqueue_built(std::slice::from_ref(&job))
        .await
        .unwrap();
    waits(&holding.begun, |begun| *begun == 1).await;
    let stopped = tokio::time::timeout(PATIENCE, holds.stop()).await;
    let runner = Scripted::new(|_| Report::done("again"));
    let next = worker(&client, &runner).start().await.unwrap();
    let ended = client.result(&job.id, PATIENCE).await;
    drop(go);
    assert_eq!(stopped.ok(), Some(1));
    let ended = ended.unwrap();
    assert_eq!(ended.output.as_deref(), Some(b"again".as_slice()));
    assert_eq!((ended.attempt, ended.lost), (1, 0));
    next.stop().await;
}
