//! Group handlers: one call of a handler runs several jobs of one type. Each job has its own lease, timeout, retries
//! and result.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use meshwork_model::outcome::{Failure, FailureKind, Report};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

use super::function::{HandlerIo, JobContext, encoded, payload_of, until_over};
use meshwork_runtime::lease::Lease;
use meshwork_runtime::{Announced, Run, Runtime, failure_of, panic_text};

/// Longest wait of a group for jobs of the same claim that are still being prepared.
const SOON: Duration = Duration::from_millis(20);

/// Limits of a group: number of jobs, and wait of the first job for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    max: usize,
    linger: Duration,
    by_key: bool,
}

impl BatchOptions {
    /// Allows up to `max` jobs, at least 1. A group is never larger than the worker's concurrency.
    #[must_use]
    pub const fn up_to(max: usize) -> Self {
        Self {
            max: if max == 0 { 1 } else { max },
            linger: Duration::ZERO,
            by_key: false,
        }
    }

    /// Sets the longest wait of the first job for others. Default: 0, which groups only jobs of the same claim. The
    /// wait counts toward the run, so choose less than the timeout of the jobs.
    #[must_use]
    pub const fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Groups only jobs of the same concurrency key; jobs without a key form a group too.
    #[must_use]
    pub const fn by_key(mut self) -> Self {
        self.by_key = true;
        self
    }
}

/// A function that runs several jobs in one call: `Fn(Vec<(In, Context)>) -> impl Future<Output = Vec<Result<Out,
/// E>>>`, with one result per job, in order. The compiler infers `Signature`.
pub trait GroupHandler<Signature>: Send + Sync + 'static {
    /// Type of a payload.
    type In: DeserializeOwned + Send + 'static;

    /// Calls the function, and encodes its results.
    fn call(&self, jobs: Vec<(Self::In, JobContext)>) -> Calls;
}

/// A running call. It returns the results as JSON.
pub type Calls = BoxFuture<'static, Vec<Result<Vec<u8>, Failure>>>;

impl<F, Fut, In, Out, E> GroupHandler<(In, Out, E)> for F
where
    F: Fn(Vec<(In, JobContext)>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Vec<Result<Out, E>>> + Send + 'static,
    In: DeserializeOwned + Send + 'static,
    Out: Serialize,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type In = In;

    fn call(&self, jobs: Vec<(In, JobContext)>) -> Calls {
        let run = self(jobs);
        Box::pin(async move {
            let encode = |result: Result<Out, E>| match result {
                Ok(output) => encoded(&output),
                Err(error) => Err(failure_of(&*error.into())),
            };
            run.await.into_iter().map(encode).collect()
        })
    }
}

/// Creates a runtime from a function that takes several jobs.
///
/// Each job has its own result, and its own failure and retries. A panic of the function, or a wrong number of results,
/// fails all jobs of the call. A job whose payload does not fit fails alone, permanently. A job that is cancelled while
/// it waits for others is not passed to the function. A job that is cancelled later cancels [`JobContext::stop`]; the call
/// is aborted when all its jobs have ended.
pub fn group_handler<H: GroupHandler<S>, S: 'static>(
    many: BatchOptions,
    handler: H,
) -> Arc<dyn Runtime> {
    Arc::new(Group::<H, S>(Arc::new(Inner {
        handler,
        many,
        open: Mutex::default(),
        coming: watch::Sender::new(0),
        signature: PhantomData,
    })))
}

struct Group<H: GroupHandler<S>, S>(Arc<Inner<H, S>>);

struct Inner<H: GroupHandler<S>, S> {
    handler: H,
    many: BatchOptions,
    /// Groups that wait for further jobs, by key.
    open: Mutex<HashMap<Option<String>, Open<H::In>>>,
    coming: watch::Sender<usize>,
    signature: PhantomData<fn(S)>,
}

struct Open<In> {
    members: Vec<Member<In>>,
    /// Task that calls the function when the wait is over.
    waits: AbortHandle,
}

struct Member<In> {
    payload: In,
    context: JobContext,
    lease: Lease,
    answer: oneshot::Sender<Result<Vec<u8>, Failure>>,
}

impl<H: GroupHandler<S>, S: 'static> Inner<H, S> {
    fn open(&self) -> MutexGuard<'_, HashMap<Option<String>, Open<H::In>>> {
        // No code of users runs under the lock.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(self: &Arc<Self>, key: Option<String>, member: Member<H::In>) {
        let mut open = self.open();
        let group = open.entry(key.clone()).or_insert_with(|| Open {
            members: Vec::new(),
            waits: tokio::spawn(Arc::clone(self).wait(key.clone())).abort_handle(),
        });
        group.members.push(member);
        if group.members.len() >= self.many.max
            && let Some(full) = open.remove(&key)
        {
            full.waits.abort();
            tokio::spawn(Arc::clone(self).call(full.members));
        }
    }

    /// Waits for further jobs of a group, then calls the function.
    async fn wait(self: Arc<Self>, key: Option<String>) {
        if !self.many.linger.is_zero() {
            tokio::time::sleep(self.many.linger).await;
        }
        let mut coming = self.coming.subscribe();
        // The sender is in `self`.
        let _ = tokio::time::timeout(SOON, coming.wait_for(|coming| *coming == 0)).await;
        let group = self.open().remove(&key);
        if let Some(group) = group {
            self.call(group.members).await;
        }
    }

    async fn call(self: Arc<Self>, members: Vec<Member<H::In>>) {
        let (mut jobs, mut answers) = (Vec::new(), Vec::new());
        for member in members {
            // A cancelled job reports by itself.
            let waits = !member.context.stop.is_cancelled() && !member.answer.is_closed();
            // The wait for other jobs may have outlasted the lease.
            if waits && member.lease.allows_start() {
                jobs.push((member.payload, member.context));
                answers.push(member.answer);
            }
        }
        if jobs.is_empty() {
            return;
        }
        let ended = {
            let call = AssertUnwindSafe(async { self.handler.call(jobs).await }).catch_unwind();
            let left = join_all(answers.iter_mut().map(oneshot::Sender::closed));
            tokio::select! {
                ended = call => ended,
                _ = left => return,
            }
        };
        let jobs = answers.len();
        let all = |failure: Failure| vec![Err(failure); jobs];
        let results = match ended {
            Ok(results) if results.len() == jobs => results,
            Ok(results) => all(Failure::new(
                FailureKind::Permanent,
                format!("the handler gave {} results for {jobs} jobs", results.len()),
            )),
            Err(panic) => all(Failure::new(
                FailureKind::Script,
                format!("the handler panicked: {}", panic_text(&*panic)),
            )),
        };
        for (answer, result) in answers.into_iter().zip(results) {
            // The receiver is gone if the job has ended meanwhile.
            let _ = answer.send(result);
        }
    }
}

impl<H: GroupHandler<S>, S: 'static> Runtime for Group<H, S> {
    fn announce(&self) -> Option<Announced> {
        Some(Announced::new(&self.0.coming))
    }

    fn run(&self, mut run: Run) -> BoxFuture<'_, Report> {
        Box::pin(async move {
            let payload = match payload_of(&run.job) {
                Ok(payload) => payload,
                Err(failure) => return Report::failed(failure),
            };
            let (talk, cancelled) = HandlerIo::new(&run);
            let (answer, answered) = oneshot::channel();
            let key = run.job.key.clone().filter(|_| self.0.many.by_key);
            let member = Member {
                payload,
                context: talk.context(&run, &cancelled),
                lease: run.lease.clone(),
                answer,
            };
            self.0.join(key, member);
            drop(run.announced.take());
            let ended = async {
                match answered.await {
                    Ok(Ok(output)) => Report::done(output),
                    Ok(Err(failure)) => Report::failed(failure),
                    Err(_) => {
                        Report::failed(Failure::new(FailureKind::Script, "the handler was cut off"))
                    }
                }
            };
            let report = until_over(ended, &run, cancelled.drop_guard()).await;
            talk.end(report)
        })
    }
}

impl<H: GroupHandler<S>, S> fmt::Debug for Group<H, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.0.many).finish()
    }
}
