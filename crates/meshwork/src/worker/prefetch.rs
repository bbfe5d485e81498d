//! Prefetch: while a worker has free slots and its queues are empty, one connection per queue waits for an id. It wakes exactly
//! one worker, whichever client pushed the id, and the id is in a list at every moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use meshwork_broker::{Backoff, BlockingConn};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::engine::{Engine, Registered};
use super::protocol::{Protocol, Queues};

/// How long a stopping worker waits for its waiting connections.
const END_WAIT: Duration = Duration::from_secs(2);
/// How long one of them may take before the server is asked once more.
const END_WAIT_AGAIN: Duration = Duration::from_millis(20);

/// The prefetchers of one worker.
pub(super) struct Prefetchers {
    task: JoinHandle<bool>,
}

impl Prefetchers {
    /// Starts one per queue, and follows the queues that the worker takes from. All end when the engine stops.
    pub(super) fn start<P: Protocol>(engine: &Arc<Engine<P>>) -> Self {
        let supervisor = Supervisor {
            engine: Arc::clone(engine),
            prefetchers: HashMap::new(),
        };
        Self {
            task: tokio::spawn(supervisor.run()),
        }
    }

    /// Waits until all have ended. False if one may still wait for an id: the worker may not be deregistered yet, or an id
    /// that comes would be in a list that nobody reads.
    pub(super) async fn ended(self) -> bool {
        self.task.await.unwrap_or_else(|error| {
            tracing::error!(%error, "prefetchers panicked");
            false
        })
    }
}

struct Prefetcher {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

impl Prefetcher {
    /// Stops it. Whether it has ended.
    async fn ended(self) -> bool {
        self.stop.cancel();
        tokio::time::timeout(END_WAIT, self.task).await.is_ok()
    }
}

struct Supervisor<P: Protocol> {
    engine: Arc<Engine<P>>,
    /// By queue.
    prefetchers: HashMap<String, Prefetcher>,
}

impl<P: Protocol> Supervisor<P> {
    async fn run(mut self) -> bool {
        let engine = Arc::clone(&self.engine);
        let mut queues = engine.protocol.queues().subscribe();
        while !engine.stop.is_cancelled() {
            let now = queues.borrow_and_update().waited();
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
                // The sender is in the engine.
                _ = queues.changed() => {}
                () = engine.stop.cancelled() => {}
            }
        }
        let ended = self.prefetchers.into_values().map(Prefetcher::ended);
        join_all(ended).await.into_iter().all(|ended| ended)
    }

    fn start(&self, queue: String) -> Prefetcher {
        let stop = self.engine.stop.child_token();
        let task = prefetch(Arc::clone(&self.engine), queue, stop.clone());
        Prefetcher {
            task: tokio::spawn(task),
            stop,
        }
    }

    /// The worker takes from a queue no more: what was prefetched from it meanwhile goes back.
    async fn leave(&self, queue: String, prefetcher: Prefetcher) {
        if !prefetcher.ended().await {
            tracing::warn!(queue, "a wait goes on; what it brings goes back in time");
            return;
        }
        // Not while a renewal is on its way that may name the queue.
        let _listening = self.engine.listening.lock().await;
        let queues = std::slice::from_ref(&queue);
        if let Err(error) = self.engine.protocol.deregister(queues).await {
            tracing::warn!(%error, queue, "not deregistered; the registration will expire");
        }
    }
}

async fn prefetch<P: Protocol>(engine: Arc<Engine<P>>, queue: String, stop: CancellationToken) {
    let (protocol, demand) = (&engine.protocol, &engine.demand);
    let mut backoff = Backoff::new();
    let mut blocking: Option<BlockingConn> = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = ready(&engine, &queue) => {}
        }
        let conn = match &blocking {
            Some(conn) => conn,
            None => match protocol.blocking_conn().await {
                Ok(made) => blocking.insert(made),
                Err(error) => {
                    engine.failed(("connect", "wait"), &error);
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = backoff.wait() => continue,
                    }
                }
            },
        };
        match wait(&engine, conn, &queue, &stop).await {
            Ok(came) => {
                backoff = Backoff::new();
                protocol.outages().succeeded("wait");
                if came {
                    demand.notify_arrival(&queue).await;
                }
            }
            Err(error) => {
                engine.failed(("wait", "wait"), &error);
                blocking = None;
                // An id may have come that the server could not tell of.
                let again = async {
                    demand.notify_arrival(&queue).await;
                    backoff.wait().await;
                };
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = again => {}
                }
            }
        }
    }
}

/// Returns when a slot is free, the queues were found empty, nothing blocks this one, and the server knows for longer than a
/// wait lasts that this worker is alive and takes from it.
async fn ready<P: Protocol>(engine: &Engine<P>, queue: &str) {
    let mut registered = engine.registered.subscribe();
    let is_known = |known: &Registered<P::Queues>| {
        known.until > Instant::now() + engine.config.wait()
            && known.queues.names().iter().any(|name| name == queue)
    };
    loop {
        engine.demand.wait_for_demand(queue).await;
        engine.protocol.may_wait(queue).await;
        if engine.demand.is_demanded(queue) {
            let known = registered.borrow_and_update().clone();
            if known.is_some_and(|known| is_known(&known)) {
                return;
            }
            // The sender is in the engine.
            let _ = registered.changed().await;
        }
    }
}

/// One wait. When the worker stops, the server is asked to end it, and an id that came meanwhile is seen.
async fn wait<P: Protocol>(
    engine: &Engine<P>,
    conn: &BlockingConn,
    queue: &str,
    stop: &CancellationToken,
) -> Result<bool, meshwork_broker::Error> {
    let protocol = &engine.protocol;
    let wait = protocol.wait(conn, queue, engine.config.wait());
    tokio::pin!(wait);
    tokio::select! {
        came = &mut wait => return came,
        () = stop.cancelled() => {}
    }
    loop {
        if let Err(error) = protocol.end_wait(conn).await {
            tracing::debug!(%error, queue, "the wait ends by itself");
        }
        // The wait may have reached the server only after the call to end it.
        if let Ok(came) = tokio::time::timeout(END_WAIT_AGAIN, &mut wait).await {
            return came;
        }
    }
}
