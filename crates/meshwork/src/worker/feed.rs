//! Feeders: while a worker has free slots and its queues are empty, one connection per queue waits for an
//! id. It wakes exactly one worker, whoever pushed the id, and the id is in a list at every moment.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::Parking;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Setup;
use super::pull::Appetite;
use super::renew::Alive;
use crate::backoff::Backoff;

/// How long a stopping worker waits for its parked connections to come back.
const UNPARK: Duration = Duration::from_secs(2);
/// How long one of them may take before the server is asked once more.
const UNPARK_AGAIN: Duration = Duration::from_millis(20);

/// The feeders of one worker.
pub(super) struct Feeders {
    tasks: TaskTracker,
}

impl Feeders {
    /// Starts one per queue; they end when `stop` says so.
    pub(super) fn start(
        setup: &Arc<Setup>,
        appetite: &Arc<Appetite>,
        alive: &Alive,
        stop: &CancellationToken,
    ) -> Self {
        let tasks = TaskTracker::new();
        for queue in setup.queues.clone() {
            tasks.spawn(feed(
                Arc::clone(setup),
                queue,
                Arc::clone(appetite),
                alive.clone(),
                stop.clone(),
            ));
        }
        tasks.close();
        Self { tasks }
    }

    /// Waits until all have ended. False if one may still wait for an id: then nobody may take this worker
    /// off the list of listeners yet, or an id that comes would lie in a list that nobody looks after.
    pub(super) async fn ended(self) -> bool {
        tokio::time::timeout(UNPARK, self.tasks.wait())
            .await
            .is_ok()
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
            () = ready(&setup, &appetite, &mut alive) => {}
        }
        let parked = match &parking {
            Some(parking) => parking,
            None => match setup.broker.parking().await {
                Ok(made) => parking.insert(made),
                Err(error) => {
                    tracing::warn!(%error, queue, "no connection to wait on");
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
                if came {
                    appetite.feed().await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, queue, "the wait for jobs broke off");
                parking = None;
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = backoff.wait() => {}
                }
            }
        }
    }
}

/// Returns when a slot is free, the queues were found empty, and this worker is known to be alive for
/// longer than a wait lasts.
async fn ready(setup: &Setup, appetite: &Appetite, alive: &mut Alive) {
    loop {
        appetite.hungry().await;
        let until = *alive.borrow_and_update();
        if until.is_some_and(|until| until > Instant::now() + setup.park_for()) {
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
