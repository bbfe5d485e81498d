//! Keep: a thread with a runtime and a connection of its own, so that no handler, however busy, can starve it. It
//! says that the service is there, and renews what it has in hand.

use std::sync::Arc;

use meshwork_broker::nooble::Nooble;
use meshwork_broker::{Backoff, Error, MAX_ITEMS};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::state::{Queue, State};
use crate::worker::dedicated_thread::{Thread, in_turn, within};

/// Starts it.
pub(super) fn start(state: Arc<State>) -> std::io::Result<Thread> {
    Thread::start(async move { keep(&state).await })
}

/// Keeps for ever, over a connection that is made again whenever it breaks.
async fn keep(state: &State) {
    let mut backoff = Backoff::new();
    loop {
        match state.setup.broker.dedicated().await {
            Ok(broker) => {
                if let Err(error) = renew(&broker, state, &mut backoff).await {
                    state.failed("renew", "renew", &error);
                }
            }
            Err(error) => state.failed("connect", "renew", &error),
        }
        backoff.wait().await;
    }
}

async fn renew(broker: &Nooble, state: &State, backoff: &mut Backoff) -> Result<(), Error> {
    let setup = &state.setup;
    let mut ticks = interval(state.beat());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut loaded = false;
    loop {
        ticks.tick().await;
        let mut kept = true;
        for queue in &setup.queues {
            match renew_queue(broker, state, queue).await {
                Err(error) if !error.is_temporary() => {
                    // The others are kept all the same; of this one no more is taken.
                    state.failed("renew", "keep", &error);
                    kept = false;
                }
                renewed => renewed?,
            }
        }
        *backoff = Backoff::new();
        broker.outages().succeeded("renew");
        if kept {
            broker.outages().succeeded("keep");
        }
        if !loaded {
            // Once per connection, since a server that was restarted has forgotten them.
            let load = in_turn(broker.outages(), "load", setup.config.lease, broker.load());
            loaded = load.await?.is_some();
        }
    }
}

async fn renew_queue(broker: &Nooble, state: &State, queue: &Queue) -> Result<(), Error> {
    let (setup, began) = (&state.setup, Instant::now());
    let held = state.held(&queue.source);
    // One that has nothing in hand says that it is there.
    let parts = held
        .chunks(MAX_ITEMS)
        .chain(held.is_empty().then_some(&[][..]));
    for part in parts {
        let renewed = broker.renew(&setup.worker, &queue.source, part, setup.config.lease);
        let gone = within("renew", state.beat(), renewed).await?;
        state.meter.heard();
        state.meter.lost(state.lose(&queue.source, &gone));
    }
    queue.is_kept(began + setup.config.lease);
    Ok(())
}
