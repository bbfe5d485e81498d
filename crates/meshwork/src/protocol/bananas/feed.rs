//! Feeders: while a worker has free slots and its lists are empty, one connection per list waits for an id. It wakes
//! exactly one worker, whoever pushed the id, and the id is in a list at every moment.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Backoff, Error, Parking};

use super::state::State;

/// How long one that is told to end may take before the server is asked once more.
const UNPARK_AGAIN: Duration = Duration::from_millis(20);

/// Waits for ids of one list until the worker stops.
pub(super) async fn feed(state: Arc<State>, list: String) {
    let mut backoff = Backoff::new();
    let mut parking: Option<Parking> = None;
    while !state.stop.is_cancelled() {
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = state.may_wait(&list) => {}
        }
        let came = match once(&state, &mut parking, &list).await {
            Ok(came) => came,
            Err(error) => {
                state.setup.broker.outages().failed("wait", &error);
                state.setup.meter.failed("wait", &error);
                parking = None;
                tokio::select! {
                    () = state.stop.cancelled() => return,
                    () = backoff.wait() => continue,
                }
            }
        };
        backoff = Backoff::new();
        state.setup.broker.outages().succeeded("wait");
        if came {
            state.appetite.feed(&list).await;
        }
    }
}

/// One wait. When the worker stops, the server is asked to end it, and an id that came meanwhile is seen.
async fn once(state: &State, parking: &mut Option<Parking>, list: &str) -> Result<bool, Error> {
    let broker = &state.setup.broker;
    if parking.is_none() {
        *parking = Some(broker.parking().await?);
    }
    let Some(parking) = parking else {
        return Ok(false);
    };
    let worker = state.setup.identity.worker();
    let park = broker.park(parking, worker, list, state.park_for());
    tokio::pin!(park);
    tokio::select! {
        came = &mut park => return came,
        () = state.stop.cancelled() => {}
    }
    loop {
        if let Err(error) = broker.unpark(parking).await {
            tracing::debug!(%error, list, "the wait ends by itself");
        }
        // The wait may have reached the server only after the word to end it.
        if let Ok(came) = tokio::time::timeout(UNPARK_AGAIN, &mut park).await {
            return came;
        }
    }
}
