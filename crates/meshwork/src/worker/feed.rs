//! Feeders: while a worker has free slots and its queues are empty, one connection per queue waits for an
//! id. It wakes exactly one worker, whoever pushed the id, and the id is in a list at every moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use meshwork_broker::{Backoff, Listener, Parking};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Setup;
use super::appetite::Appetite;
use super::renew::Alive;

/// How long a stopping worker waits for its parked connections to come back.
const UNPARK: Duration = Duration::from_secs(2);
/// How long one of them may take before the server is asked once more.
const UNPARK_AGAIN: Duration = Duration::from_millis(20);

/// The feeders of one worker.
pub(super) struct Feeders {
    task: JoinHandle<bool>,
}

impl Feeders {
    /// Starts one per list, and goes along with what the worker takes from; all end when `stop` says so.
    pub(super) fn start(
        setup: &Arc<Setup>,
        appetite: &Arc<Appetite>,
        alive: &Alive,
        stop: &CancellationToken,
    ) -> Self {
        let herd = Herd {
            setup: Arc::clone(setup),
            appetite: Arc::clone(appetite),
            alive: alive.clone(),
            stop: stop.clone(),
            feeders: HashMap::new(),
        };
        Self {
            task: tokio::spawn(herd.keep()),
        }
    }

    /// Waits until all have ended. False if one may still wait for an id: then nobody may take this worker
    /// off the list of listeners yet, or an id that comes would lie in a list that nobody looks after.
    pub(super) async fn ended(self) -> bool {
        self.task.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the feeders did not end well");
            false
        })
    }
}

/// One feeder, and how it is ended.
struct Feeder {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

impl Feeder {
    /// Whether it has ended, after it was told to.
    async fn ended(self) -> bool {
        self.stop.cancel();
        tokio::time::timeout(UNPARK, self.task).await.is_ok()
    }
}

struct Herd {
    setup: Arc<Setup>,
    appetite: Arc<Appetite>,
    alive: Alive,
    stop: CancellationToken,
    /// By list.
    feeders: HashMap<String, Feeder>,
}

impl Herd {
    async fn keep(mut self) -> bool {
        let mut lists = self.setup.lists.subscribe();
        while !self.stop.is_cancelled() {
            let now = Arc::clone(&lists.borrow_and_update());
            let gone: Vec<_> = self
                .feeders
                .extract_if(|list, _| now.parked().all(|parked| parked != list))
                .collect();
            for (list, feeder) in gone {
                self.leave(list, feeder).await;
            }
            for list in now.parked() {
                if !self.feeders.contains_key(list) {
                    let feeder = self.start(list.clone());
                    self.feeders.insert(list.clone(), feeder);
                }
            }
            tokio::select! {
                // The sender is in `setup`.
                _ = lists.changed() => {}
                () = self.stop.cancelled() => {}
            }
        }
        let ended = self.feeders.into_values().map(Feeder::ended);
        join_all(ended).await.into_iter().all(|ended| ended)
    }

    fn start(&self, list: String) -> Feeder {
        let stop = self.stop.child_token();
        let task = feed(
            Arc::clone(&self.setup),
            list,
            Arc::clone(&self.appetite),
            self.alive.clone(),
            stop.clone(),
        );
        Feeder {
            task: tokio::spawn(task),
            stop,
        }
    }

    /// A list that is taken from no more: what came from it meanwhile goes back.
    async fn leave(&self, list: String, feeder: Feeder) {
        if !feeder.ended().await {
            tracing::warn!(list, "a wait goes on; what comes of it goes back in time");
            return;
        }
        // Not while a renewal is on its way that may name the list.
        let _listening = self.setup.listening.lock().await;
        let listener = Listener {
            worker: self.setup.identity.worker(),
            queues: std::slice::from_ref(&list),
        };
        if let Err(error) = self.setup.broker.leave(listener).await {
            tracing::warn!(%error, list, "not taken off the list of listeners; that ends by itself");
        }
    }
}

async fn feed(
    setup: Arc<Setup>,
    queue: String,
    appetite: Arc<Appetite>,
    mut alive: Alive,
    stop: CancellationToken,
) {
    let mut backoff = Backoff::new();
    let mut parking: Option<Parking> = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = ready(&setup, &queue, &appetite, &mut alive) => {}
        }
        let parked = match &parking {
            Some(parking) => parking,
            None => match setup.broker.parking().await {
                Ok(made) => parking.insert(made),
                Err(error) => {
                    setup.meter.failed("connect", &error);
                    setup.broker.outages().failed("wait", &error);
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = backoff.wait() => continue,
                    }
                }
            },
        };
        match wait(&setup, parked, &queue, &stop).await {
            Ok(came) => {
                backoff = Backoff::new();
                setup.broker.outages().succeeded("wait");
                if came {
                    appetite.feed(&queue).await;
                }
            }
            Err(error) => {
                setup.meter.failed("wait", &error);
                setup.broker.outages().failed("wait", &error);
                parking = None;
                // An id may have come that the server could not tell of.
                let again = async {
                    appetite.feed(&queue).await;
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

/// Returns when a slot is free, the queues were found empty, nothing holds this list back, and this worker is
/// known to be alive for longer than a wait lasts, and to listen to this list.
async fn ready(setup: &Setup, list: &String, appetite: &Appetite, alive: &mut Alive) {
    loop {
        appetite.hungry_for(list).await;
        let listed = alive.borrow_and_update().clone();
        if listed.is_some_and(|listed| {
            listed.until > Instant::now() + setup.park_for() && listed.lists.names().contains(list)
        }) {
            return;
        }
        if alive.changed().await.is_err() {
            // The keeper is gone, so the worker is about to be.
            std::future::pending::<()>().await;
        }
    }
}

/// One wait. When the worker stops, the server is asked to end it, and an id that came meanwhile is seen.
async fn wait(
    setup: &Setup,
    parking: &Parking,
    queue: &str,
    stop: &CancellationToken,
) -> Result<bool, meshwork_broker::Error> {
    let park = setup
        .broker
        .park(parking, setup.identity.worker(), queue, setup.park_for());
    tokio::pin!(park);
    tokio::select! {
        came = &mut park => return came,
        () = stop.cancelled() => {}
    }
    loop {
        if let Err(error) = setup.broker.unpark(parking).await {
            tracing::debug!(%error, queue, "the wait ends by itself");
        }
        // The wait may have reached the server only after the word to end it.
        if let Ok(came) = tokio::time::timeout(UNPARK_AGAIN, &mut park).await {
            return came;
        }
    }
}
