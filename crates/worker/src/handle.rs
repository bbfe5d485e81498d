//! A running worker, and its shutdown.

use meshwork_macros::boxed;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_broker::{Backoff, Error as BrokerError};
use meshwork_model::name::JobId;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::dedicated_thread::{Host, Thread};
use super::engine::Engine;
use super::fetcher::{self, ShutdownTokens};
use super::health::Monitor;
use super::heartbeat;
use super::logfile::LogFolders;
use super::prefetch::Prefetchers;
use super::probing;
use super::protocol::{Protocol, Queues};
use super::release::{ENDED, ended_or_cut_off, release_all};
use super::spawner::Starter;
use crate::config::{Config, InvalidSetting};

/// Longest wait for a claim's answer at shutdown.
const QUIET: Duration = Duration::from_secs(5);
/// Time after which no further try to deregister begins at shutdown. A server or an owner of the engine that is replaced
/// at that moment is back by then.
const DEREGISTER: Duration = Duration::from_secs(1);

/// Longest release of jobs at shutdown. While the server is away, they return when their leases expire.
const RELEASE: Duration = Duration::from_secs(2);

/// Longest wait for the first checks of all runtimes before the first claim: they take tenths of a second, and one that
/// hangs must not keep the others from their jobs.
const FIRST_CHECK: Duration = Duration::from_secs(2);

/// A running worker of any protocol. If it is dropped without [`WorkerHandle::stop`], it claims no more jobs, and its
/// running jobs return when their leases expire.
///
/// ```
/// use meshwork::{Client, Worker};
///
/// #[meshwork::job(output = String)]
/// struct Greet { name: String }
///
/// async fn greet(job: Greet) -> Result<String, String> { Ok(format!("Hello, {}!", job.name)) }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), meshwork::Error> {
/// let client = Client::in_memory();
/// let worker = Worker::new(&client).job(greet).start().await?;
/// worker.registered().await;
/// assert_eq!(client.call(Greet { name: "Ada".into() }).await?, "Hello, Ada!");
/// // Waits for running jobs, 25 s by default, and returns the number of those that were released.
/// assert_eq!(worker.stop().await, 0);
/// # Ok(())
/// # }
/// ```
pub struct WorkerHandle {
    parts: Box<dyn Running>,
    monitor: Monitor,
    /// Guard of something that ends with the worker.
    beside: Option<DropGuard>,
}

/// A running worker of some protocol.
trait Running: Send + Sync {
    fn name(&self) -> &str;
    fn queues(&self) -> Vec<String>;
    fn running(&self) -> usize;
    fn registered(&self) -> BoxFuture<'_, ()>;
    fn cancel(&self, id: &str) -> bool;
    fn quiet(&self);
    fn stop_requested(&self) -> BoxFuture<'_, ()>;
    fn shutdown(self: Box<Self>, cut_off: Duration, abort: Abort) -> BoxFuture<'static, usize>;
}

/// Returns when a shutdown is to wait no longer for running jobs.
type Abort = BoxFuture<'static, ()>;

/// Parts of a running worker.
struct Parts<P: Protocol> {
    engine: Arc<Engine<P>>,
    fetcher: JoinHandle<()>,
    /// Task that ends when the worker claims no more jobs. Its result is false if a claim is still unanswered.
    quieted: JoinHandle<bool>,
    released: CancellationToken,
    running: TaskTracker,
    heartbeat: Thread,
    stop: DropGuard,
}

/// The reason why a worker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is outside of its limits.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// The system has no thread left.
    #[error("the system starts no thread for the worker: {0}")]
    Thread(#[from] std::io::Error),
}

/// Starts a worker for the jobs of `protocol` on the current runtime. It runs until [`WorkerHandle::stop`].
///
/// # Errors
/// A setting is outside of its limits, or the system has no thread left.
pub fn start<P: Protocol>(protocol: P, config: Config) -> Result<WorkerHandle, StartError> {
    config.validate()?;
    let engine = Engine::new(protocol, config, LogFolders::default());
    Ok(start_engine(engine)?)
}

/// Starts a worker whose settings are checked.
///
/// # Errors
/// The system has no thread left.
pub fn start_engine<P: Protocol>(engine: Engine<P>) -> std::io::Result<WorkerHandle> {
    let engine = Arc::new(engine);
    let (running, released) = (TaskTracker::new(), CancellationToken::new());
    let (sender, events) = mpsc::unbounded_channel();
    let starter = Starter::new(Arc::clone(&engine), running.clone(), sender);
    let starter = Arc::new(starter);
    let host = match &engine.host {
        Some(host) => Arc::clone(host),
        None => Host::start()?,
    };
    let heartbeat = heartbeat::start(host, &engine, Arc::clone(&starter) as _);
    let (tell, quiet) = oneshot::channel();
    let prefetchers = Prefetchers::start(&engine, &starter);
    let tokens = ShutdownTokens {
        released: released.clone(),
        quiet: tell,
    };
    let fetch = Box::pin(fetcher::fetch(Arc::clone(&engine), starter, events, tokens));
    let (tell_checked, checked) = oneshot::channel();
    tokio::spawn(probing::watch(Arc::clone(&engine), tell_checked));
    let fetcher = tokio::spawn(async move {
        // A host that lacks an interpreter takes no jobs for it.
        let _ = tokio::time::timeout(FIRST_CHECK, checked).await;
        fetch.await;
    });
    let monitor = Monitor::new(
        Arc::clone(&engine) as _,
        &engine.stop,
        std::slice::from_ref(&fetcher),
    );
    let parts = Parts {
        stop: engine.stop.clone().drop_guard(),
        quieted: tokio::spawn(quiet_down(Arc::clone(&engine), quiet, prefetchers)),
        engine,
        fetcher,
        released,
        running,
        heartbeat,
    };
    let parts = Box::new(parts);
    Ok(WorkerHandle {
        parts,
        monitor,
        beside: None,
    })
}

impl WorkerHandle {
    /// Adds a guard that is dropped when the worker has stopped, or with the handle.
    #[must_use]
    pub fn beside(mut self, guard: Option<DropGuard>) -> Self {
        self.beside = guard;
        self
    }

    /// Returns the worker's name with its incarnation.
    #[must_use]
    pub fn name(&self) -> &str {
        self.parts.name()
    }

    /// Returns the queues from which it claims now, in their usual order.
    #[must_use]
    pub fn queues(&self) -> Vec<String> {
        self.parts.queues()
    }

    /// Returns the number of running jobs.
    #[must_use]
    pub fn running(&self) -> usize {
        self.parts.running()
    }

    /// Returns its health and metrics, which stay readable after the worker has stopped.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// Waits until the worker is registered, so that clients see it.
    #[boxed]
    pub async fn registered(&self) {
        self.parts.registered().await;
    }

    /// Cancels the run of a job if this worker runs it. The run has the worker's cancel grace, and the job ends in
    /// error `stopped_by_request`. Returns false if the worker does not run the job.
    #[must_use]
    pub fn stop_job(&self, id: &JobId) -> bool {
        self.parts.cancel(id.as_str())
    }

    /// Makes the worker quiet, permanently: it claims no more jobs, completes running ones, and stays registered until
    /// it is stopped. Prefetched ids return to their queues at once.
    pub fn quiet(&self) {
        self.parts.quiet();
    }

    /// Waits until its shutdown is requested ([`Client::request_worker`](https://docs.rs/meshwork/latest/meshwork/struct.Client.html#method.request_worker)). The worker is
    /// quiet then; its owner has to call [`WorkerHandle::stop`].
    #[boxed]
    pub async fn stop_requested(&self) {
        self.parts.stop_requested().await;
    }

    /// Shuts the worker down: it claims no more jobs, waits for running ones up to its shutdown timeout, aborts the
    /// rest, and releases their jobs. Returns the number of released jobs.
    #[boxed]
    pub async fn stop(self) -> usize {
        self.stop_by(ENDED).await
    }

    /// Shuts the worker down as [`Self::stop`] does, with another time after which runs are aborted.
    #[doc(hidden)]
    #[boxed]
    pub async fn stop_by(self, cut_off: Duration) -> usize {
        self.parts.shutdown(cut_off, Box::pin(pending())).await
    }

    /// Shuts the worker down as [`Self::stop`] does. When `abort` returns, its running jobs are aborted and released at
    /// once, however long the shutdown timeout is.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), meshwork::Error> {
    /// # let client = meshwork::Client::in_memory();
    /// # let worker = meshwork::Worker::new(&client).script_type(&"osis".parse()?)?.start().await?;
    /// let second_signal = async { /* … */ };
    /// let released = worker.stop_or_abort(second_signal).await;
    /// # assert_eq!(released, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stop_or_abort(self, abort: impl Future<Output = ()> + Send + 'static) -> usize {
        self.parts.shutdown(ENDED, Box::pin(abort)).await
    }
}

impl std::fmt::Debug for WorkerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerHandle")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl<P: Protocol> Running for Parts<P> {
    fn name(&self) -> &str {
        self.engine.protocol.worker()
    }

    fn queues(&self) -> Vec<String> {
        self.engine.protocol.queues().borrow().names().to_vec()
    }

    fn running(&self) -> usize {
        self.running.len()
    }

    fn registered(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // The sender is in the engine.
            let mut registered = self.engine.registered.subscribe();
            let _ = registered.wait_for(Option::is_some).await;
        })
    }

    fn cancel(&self, id: &str) -> bool {
        self.engine.in_flight.cancel(|job| P::id(job) == id)
    }

    fn quiet(&self) {
        self.engine.stop.cancel();
    }

    fn stop_requested(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.engine.stop_requested.cancelled())
    }

    fn shutdown(self: Box<Self>, cut_off: Duration, abort: Abort) -> BoxFuture<'static, usize> {
        Box::pin(shutdown(*self, cut_off, abort))
    }
}

async fn shutdown<P: Protocol>(parts: Parts<P>, cut_off: Duration, abort: Abort) -> usize {
    let Parts {
        engine,
        fetcher,
        quieted,
        released,
        running,
        heartbeat,
        stop,
    } = parts;
    let (protocol, config) = (&engine.protocol, &engine.config);
    // The end of the claims counts, so that a server that is away does not make the shutdown longer.
    let until = Instant::now() + config.shutdown_timeout;
    drop(stop);
    let quiet = quieted.await.unwrap_or_else(|error| {
        tracing::error!(%error, "shutdown of the fetcher panicked");
        false
    });
    running.close();
    tokio::select! {
        biased;
        () = running.wait() => {}
        () = tokio::time::sleep_until(until) => {}
        () = abort => {}
    }
    let left = engine.in_flight.release_all();
    released.cancel();
    // The heartbeat renews until the last run has ended or was aborted, so no job starts elsewhere before.
    let ended = ended_or_cut_off(running.wait(), cut_off).await;
    let release = |job: Arc<P::Job>| async move { protocol.release(&job).await };
    let jobs_released = release_all(left, config.lease.min(RELEASE), release).await;
    if !ended {
        // The fetcher would wait for the run, whose result is not needed any more.
        fetcher.abort();
    }
    if !quiet {
        // The fetcher ends when the claim is answered, and releases the claimed jobs.
        tracing::warn!("claim still unanswered: its jobs are released when the answer arrives");
    } else if let Err(error) = fetcher.await
        && !error.is_cancelled()
    {
        tracing::error!(%error, "fetcher panicked");
    }
    protocol.runs_ended().await;
    heartbeat.end().await;
    jobs_released
}

/// Waits until the worker should claim no more jobs, and deregisters it after the last claim. Returns false if a claim
/// stays unanswered for [`QUIET`].
async fn quiet_down<P: Protocol>(
    engine: Arc<Engine<P>>,
    quiet: oneshot::Receiver<()>,
    prefetchers: Prefetchers,
) -> bool {
    engine.stop.cancelled().await;
    // An error means that the fetcher has ended, so no job comes; the shutdown reports the reason.
    let quiet = tokio::time::timeout(QUIET, quiet);
    let (deregisters, quiet) = tokio::join!(prefetchers.ended(), quiet);
    if deregisters && quiet.is_ok() {
        deregister(&engine).await;
    }
    quiet.is_ok()
}

async fn deregister<P: Protocol>(engine: &Engine<P>) {
    let mut listening = engine.listening.lock().await;
    *listening = false;
    let queues = Arc::clone(&engine.protocol.queues().borrow());
    let deregister = || engine.protocol.deregister(queues.names());
    if let Err(error) = retried(DEREGISTER, deregister).await {
        tracing::warn!(%error, "worker not deregistered: the registration will expire");
    }
}

/// Repeats a call that fails. Begins no try after `limit`, and returns the last error then.
async fn retried<F>(limit: Duration, call: impl Fn() -> F) -> Result<(), BrokerError>
where
    F: Future<Output = Result<(), BrokerError>>,
{
    let (until, mut backoff) = (Instant::now() + limit, Backoff::new());
    loop {
        match call().await {
            Err(_) if Instant::now() < until => backoff.wait().await,
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn a_call_that_fails_is_repeated_until_the_limit() {
        let (long, short) = (Duration::from_secs(60), Duration::from_millis(40));
        for (failures, limit, succeeds) in [(0, long, true), (2, long, true), (9, short, false)] {
            let calls = Cell::new(0);
            let call = || {
                calls.set(calls.get() + 1);
                let done = match calls.get() > failures {
                    true => Ok(()),
                    false => Err(BrokerError::timed_out("deregister")),
                };
                std::future::ready(done)
            };
            assert_eq!(retried(limit, call).await.is_ok(), succeeds);
            let all = calls.get() == failures + 1;
            assert!(all || !succeeds && calls.get() > 1, "{}", calls.get());
        }
    }
}
