//! Prefetch: while a worker has free slots and its queues are empty, one connection per queue blocks in a read. A pushed
//! id wakes exactly one worker, whichever client pushed it, and the id is in a list at every moment. Where the blocking
//! read of a protocol returns the job itself, the prefetcher starts the job.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use meshwork_broker::{Backoff, Error};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use super::pipelined_reads::PipelinedReads;
use super::protocol::{Protocol, Queues, Waited};
use super::spawner::Starter;
use meshwork_runtime::lease::Moment;

/// Greatest number of queues with a blocking read. Claims find ids in the others, once a second.
const MAX_WAITED: usize = 64;
/// Longest wait for blocking connections at shutdown.
const END_WAIT: Duration = Duration::from_secs(2);
/// Longest pause before the next blocking read after a job has started. A handler that returns at once is reported in
/// this time, and a read on the same connection would delay the report. Slower handlers must not keep other slots idle.
const PATIENCE: Duration = Duration::from_millis(10);

/// The prefetchers of one worker.
pub(super) struct Prefetchers {
    task: JoinHandle<bool>,
}

impl Prefetchers {
    /// Starts one prefetcher per queue, and adapts them to changes of the worker's queues. All end when the engine stops.
    pub(super) fn start<P: Protocol>(engine: &Arc<Engine<P>>, starter: &Arc<Starter<P>>) -> Self {
        let supervisor = Supervisor {
            engine: Arc::clone(engine),
            starter: Arc::clone(starter),
            prefetchers: HashMap::new(),
        };
        Self {
            task: tokio::spawn(supervisor.run()),
        }
    }

    /// Waits until all have ended. Returns false if a blocking read may still be open. The worker must not be deregistered
    /// then: an id that arrives would be in a list that nobody reads.
    pub(super) async fn ended(self) -> bool {
        self.task.await.unwrap_or_else(|error| {
            tracing::error!(%error, "prefetchers panicked");
            false
        })
    }
}

/// Returns the queues of the highest priority, at most [`MAX_WAITED`]. If blocking reads take jobs, no claim would find
/// the jobs of other queues, so all queues are returned.
fn bounded<P: Protocol>(mut queues: Vec<String>) -> Vec<String> {
    if !P::PUSH_DELIVERY {
        queues.truncate(MAX_WAITED);
    }
    queues
}

struct Prefetcher {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

impl Prefetcher {
    /// Stops the prefetcher. Returns true if it has ended in time.
    async fn ended(self) -> bool {
        self.stop.cancel();
        tokio::time::timeout(END_WAIT, self.task).await.is_ok()
    }
}

struct Supervisor<P: Protocol> {
    engine: Arc<Engine<P>>,
    starter: Arc<Starter<P>>,
    /// Prefetchers by queue.
    prefetchers: HashMap<String, Prefetcher>,
}

impl<P: Protocol> Supervisor<P> {
    async fn run(mut self) -> bool {
        let engine = Arc::clone(&self.engine);
        let mut queues = engine.protocol.queues().subscribe();
        while !engine.stop.is_cancelled() {
            let now = queues.borrow_and_update().waited();
            let now = match engine.protocol.polls() {
                true => Vec::new(),
                false => bounded::<P>(now),
            };
            let gone: Vec<_> = self
                .prefetchers
                .extract_if(|queue, _| !now.contains(queue))
                .collect();
            for (queue, prefetcher) in gone {
                self.leave(queue, prefetcher).await;
            }
            for queue in now {
                if !self.prefetchers.contains_key(&queue) {
                    let prefetcher = self.start(queue.clone());
                    self.prefetchers.insert(queue, prefetcher);
                }
            }
            tokio::select! {
                // The sender lives in the engine, so an error is impossible.
                _ = queues.changed() => {}
                () = engine.stop.cancelled() => {}
            }
        }
        let ended = self.prefetchers.into_values().map(Prefetcher::ended);
        join_all(ended).await.into_iter().all(|ended| ended)
    }

    fn start(&self, queue: String) -> Prefetcher {
        let stop = self.engine.stop.child_token();
        let (engine, starter) = (Arc::clone(&self.engine), Arc::clone(&self.starter));
        let task = prefetch(engine, starter, queue, stop.clone());
        Prefetcher {
            task: tokio::spawn(task),
            stop,
        }
    }

    /// Stops the prefetcher of a queue that the worker no longer claims from, and releases its prefetched ids.
    async fn leave(&self, queue: String, prefetcher: Prefetcher) {
        if !prefetcher.ended().await {
            tracing::warn!(
                queue,
                "blocking read still open: its ids return when the registration expires"
            );
            return;
        }
        // A renewal that is under way may name the queue, and would register it again.
        let _listening = self.engine.listening.lock().await;
        let queues = std::slice::from_ref(&queue);
        if let Err(error) = self.engine.protocol.deregister(queues).await {
            tracing::warn!(%error, queue, "queue not deregistered: the registration will expire");
        }
    }
}

/// The blocking reads of one queue.
struct Prefetch<P: Protocol> {
    engine: Arc<Engine<P>>,
    starter: Arc<Starter<P>>,
    queue: String,
    waits: Option<PipelinedReads<P::WaitConn, Came<P::Job>>>,
    /// First step of the only running job. Until it is over, no blocking read is sent, which would delay the job's report
    /// on the same connection.
    begun: Option<Arc<Notify>>,
    /// Deadline of `begun`. Reset only when it has expired, not for each job: a timer costs as much as a call saves, and
    /// an early deadline does no harm.
    patience: Pin<Box<Sleep>>,
}

/// The result of a blocking read, and the end of this worker's registration when the read was sent. A job that arrives
/// later may belong to another worker.
type Came<J> = (Waited<J>, Moment);

async fn prefetch<P: Protocol>(
    engine: Arc<Engine<P>>,
    starter: Arc<Starter<P>>,
    queue: String,
    stop: CancellationToken,
) {
    let mut backoff = Backoff::new();
    let mut prefetch = Prefetch {
        engine,
        starter,
        queue,
        waits: None,
        begun: None,
        patience: Box::pin(sleep(PATIENCE)),
    };
    while !stop.is_cancelled() {
        match prefetch.once(&stop).await {
            Ok(true) => backoff = Backoff::new(),
            Ok(false) => {}
            Err((operation, error)) => {
                prefetch.engine.failed((operation, "wait"), &error);
                (prefetch.waits, prefetch.begun) = (None, None);
                // An id may have been moved although the answer was lost.
                let again = async {
                    if operation == "wait" {
                        prefetch.engine.demand.notify_arrival(&prefetch.queue).await;
                    }
                    backoff.wait().await;
                };
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = again => {}
                }
            }
        }
    }
    prefetch.end().await;
}

impl<P: Protocol> Prefetch<P> {
    fn under_way(&self) -> usize {
        self.waits.as_ref().map_or(0, PipelinedReads::len)
    }

    /// Sends blocking reads once a slot is free, and handles the first result. Returns true if a read succeeded.
    async fn once(&mut self, stop: &CancellationToken) -> Result<bool, (&'static str, Error)> {
        if self.begun.is_none() {
            if self.under_way() == 0 {
                tokio::select! {
                    () = stop.cancelled() => return Ok(false),
                    () = ready(&self.engine, &self.queue) => {}
                }
            }
            // Connecting may take until its timeout; shutdown does not wait for it.
            tokio::select! {
                () = stop.cancelled() => return Ok(false),
                sent = self.send() => sent.map_err(|error| ("connect", error))?,
            }
            if self.under_way() == 0 {
                // The free slot was taken meanwhile.
                return Ok(false);
            }
        }
        let came = self.came(stop).await.map_err(|error| ("wait", error))?;
        let Some(came) = came else { return Ok(false) };
        self.engine.protocol.outages().succeeded("wait");
        if let Some(arrived) = self.arrived(came) {
            arrived.await;
        }
        Ok(true)
    }

    /// Sends a blocking read for each free slot. A read reserves no slot, because a job of another queue may need it.
    async fn send(&mut self) -> Result<(), Error> {
        let engine = &self.engine;
        let waits = match &mut self.waits {
            Some(waits) => waits,
            none => none.insert(PipelinedReads::over(engine.protocol.wait_conn().await?)),
        };
        let most = engine.slots.available_permits().clamp(1, P::MAX_READS);
        let wait = engine.config.wait() / P::MAX_READS as u32;
        while waits.len() < most && engine.may_wait(&self.queue) {
            let Some(until) = engine.registration().map(|known| known.until) else {
                break;
            };
            let before = wait * waits.len() as u32;
            let (engine, queue) = (Arc::clone(engine), self.queue.clone());
            waits.push(|conn| async move {
                let came = engine
                    .protocol
                    .wait(&engine.config, &conn, &queue, wait, before)
                    .await?;
                Ok((came, until))
            });
        }
        Ok(())
    }

    /// Returns the result of the first blocking read; `None` if it is time to send the next one, or to stop.
    async fn came(&mut self, stop: &CancellationToken) -> Result<Option<Came<P::Job>>, Error> {
        let came = async {
            match &mut self.waits {
                Some(waits) => waits.next().await,
                None => std::future::pending().await,
            }
        };
        let begun = async {
            match &self.begun {
                Some(begun) => begun.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            came = came => return came.map(Some),
            () = begun => {}
            () = &mut self.patience, if self.begun.is_some() => {}
            () = stop.cancelled() => return Ok(None),
        }
        self.begun = None;
        Ok(None)
    }

    /// Handles the result of a blocking read: starts a job, or reports an arrived id to the fetcher. The caller awaits the
    /// returned future.
    fn arrived(&mut self, (came, until): Came<P::Job>) -> Option<BoxFuture<'_, ()>> {
        match came {
            Waited::Nothing => None,
            Waited::Hint => Some(self.engine.demand.notify_arrival(&self.queue).boxed()),
            Waited::Claimed(fetched) => {
                let engine = &self.engine;
                let delivers = || self.starter.arrived(&self.queue, fetched);
                Some(engine.demand.handled(delivers).boxed())
            }
            Waited::Job(job) => {
                if until <= self.engine.config.clock.now() {
                    // This process was suspended, or the answer was late: another worker may have reclaimed the job.
                    tracing::warn!(
                        "job released: it arrived after the registration of this worker had expired"
                    );
                    self.starter.release(job, self.starter.running.token());
                    return None;
                }
                let begun = Arc::new(Notify::new());
                self.starter.take_in(job, until, Some(Arc::clone(&begun)));
                if self.starter.running.len() <= 1 {
                    self.begun = Some(begun);
                    let now = Instant::now();
                    if self.patience.deadline() <= now {
                        self.patience.as_mut().reset(now + PATIENCE);
                    }
                } else {
                    // The queue may have more jobs.
                    self.engine.demand.note_arrival(&self.queue);
                }
                None
            }
        }
    }

    /// Ends the blocking reads when the worker stops or no longer claims from the queue. Handles results that arrived
    /// meanwhile.
    async fn end(&mut self) {
        let Some(mut waits) = self.waits.take() else {
            return;
        };
        let mut came = Vec::new();
        let engine = &self.engine;
        let end = async |conn: P::WaitConn| engine.protocol.end_wait(&conn).await;
        if let Err(error) = waits.end(end, |one| came.push(one)).await {
            engine.failed(("wait", "wait"), &error);
        }
        for one in came {
            if let Some(arrived) = self.arrived(one) {
                arrived.await;
            }
        }
    }
}

/// Waits until a blocking read may be sent.
async fn ready<P: Protocol>(engine: &Engine<P>, queue: &str) {
    let mut registered = engine.registered.subscribe();
    loop {
        engine.demand.wait_for_demand(queue).await;
        engine.protocol.may_wait(queue).await;
        registered.mark_unchanged();
        if engine.may_wait(queue) {
            return;
        }
        if engine.demand.is_demanded(queue) {
            // The sender lives in the engine, so an error is impossible.
            let _ = registered.changed().await;
        }
    }
}
