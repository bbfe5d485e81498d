//! Keep: a thread with a runtime and a connection of its own, so that no handler, however busy, can starve it. It
//! renews, takes back what other workers of ours left, moves what has come due, and puts back strays.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::bananas::{Bananas, Reclaimed, Renewal};
use meshwork_broker::{Backoff, Error};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::client::new_id;
use super::state::State;
use crate::worker::dedicated_thread::{Never, Thread, in_turn, within};

/// Between two looks at what has come due: clients of Bananas wake nobody.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The shortest time between two looks.
const LOOK_SOON: Duration = Duration::from_millis(5);

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
                let Err(error) = tokio::select! {
                    failed = renew(&broker, state, &mut backoff) => failed,
                    failed = look(&broker, state) => failed,
                    failed = crons(&broker, state) => failed,
                    failed = strays(&broker, state) => failed,
                };
                broker.outages().failed("renew", &error);
                state.setup.meter.failed("renew", &error);
            }
            Err(error) => {
                state.setup.broker.outages().failed("renew", &error);
                state.setup.meter.failed("connect", &error);
            }
        }
        backoff.wait().await;
    }
}

async fn renew(broker: &Bananas, state: &State, backoff: &mut Backoff) -> Result<Never, Error> {
    let setup = &state.setup;
    let mut ticks = interval(state.renew_every());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut loaded = false;
    loop {
        ticks.tick().await;
        let held = state.held();
        let began = Instant::now();
        // A worker that has left keeps what it runs, and listens no more.
        let listening = state.listening.lock().await;
        let listens = *listening;
        let renewal = Renewal {
            held: &held,
            lease: setup.lease,
            worker: setup.identity.worker(),
            lists: if listens { &setup.lists } else { &[] },
            routes: if listens { setup.routes.keys() } else { &[] },
            alive: setup.lease,
        };
        let gone = within("renew", state.renew_every(), broker.renew(renewal)).await?;
        drop(listening);
        *backoff = Backoff::new();
        setup.meter.heard();
        broker.outages().succeeded("renew");
        setup.meter.lost(state.lose(&gone, &held));
        if listens {
            state.alive.send_replace(Some(began + setup.lease));
        }
        if !loaded {
            // Once per connection, since a server that was restarted has forgotten them.
            let load =
                in_turn(broker.outages(), "load", state.renew_every(), broker.load()).await?;
            loaded = load.is_some();
        }
        let taken = in_turn(
            broker.outages(),
            "reclaim",
            state.renew_every(),
            broker.reclaim(),
        )
        .await?;
        let taken = taken.unwrap_or_default();
        if taken != Reclaimed::default() {
            let (requeued, moved) = (taken.requeued.len(), taken.moved);
            tracing::warn!(
                requeued,
                moved,
                "took back what a worker that is gone left behind"
            );
        }
    }
}

/// Moves what has come due.
async fn look(broker: &Bananas, state: &State) -> Result<Never, Error> {
    if !state.setup.scheduler {
        std::future::pending::<()>().await;
    }
    loop {
        let due = in_turn(broker.outages(), "due", state.setup.lease, broker.due()).await?;
        let due = due.unwrap_or_default();
        if !due.is_empty() {
            let told = broker.promote(&due, state.setup.peer);
            let told = in_turn(broker.outages(), "promote", state.setup.lease, told).await?;
            let told = told.unwrap_or_default();
            if told.buried > 0 {
                let ids = told.buried;
                tracing::warn!(
                    ids,
                    "dead letters: they waited for a time, and have no record"
                );
            }
            // Whom nothing moves would be looked at without end.
            if told.moved > 0 {
                continue;
            }
        }
        let next = due.next.unwrap_or(LOOK_EVERY);
        tokio::time::sleep(next.clamp(LOOK_SOON, LOOK_EVERY)).await;
    }
}

/// Runs the slots of cron schedules that are due.
async fn crons(broker: &Bananas, state: &State) -> Result<Never, Error> {
    if !state.setup.scheduler {
        std::future::pending::<()>().await;
    }
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let crons = in_turn(broker.outages(), "crons", state.setup.lease, broker.crons()).await?;
        let crons = crons.unwrap_or_default();
        for kept in crons.due() {
            let fired = broker.fire(kept, crons.now, new_id(), state.setup.peer);
            if in_turn(broker.outages(), "fire", state.setup.lease, fired).await? == Some(true) {
                tracing::debug!(schedule = %kept.name, "its job waits");
            }
        }
    }
}

/// Puts back what workers of Bananas left.
async fn strays(broker: &Bananas, state: &State) -> Result<Never, Error> {
    let Some(age) = state.setup.strays else {
        return std::future::pending().await;
    };
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let strays = in_turn(
            broker.outages(),
            "strays",
            state.setup.lease,
            broker.strays(age),
        )
        .await?;
        for stray in strays.unwrap_or_default() {
            let adopted = broker.adopt(&stray, state.setup.peer);
            if in_turn(broker.outages(), "adopt", state.setup.lease, adopted).await? == Some(true) {
                let job = String::from_utf8_lossy(&stray.id).into_owned();
                tracing::warn!(job, "put back: a worker of Bananas left it behind");
            }
        }
    }
}
