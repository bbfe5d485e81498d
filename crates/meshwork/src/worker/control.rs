//! Control: once a second the worker hears which of its jobs are to stop, whether the duties of all are its
//! turn, and how the migrations of its types stand. It runs on the keeper's thread.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Broker, Control, Controlled};
use tokio::sync::watch;

use super::Setup;
use super::duty::Turn;
use super::held::Held;
use crate::worker::dedicated_thread::{Never, in_turn};

/// Between two looks: so long, at most, a request to stop waits to be heard.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// How long a turn lasts: a little less, so that a worker that is alone has every turn.
const TURN: Duration = Duration::from_millis(900);

/// Asks for ever, until the connection breaks.
pub(super) async fn control(
    broker: &Broker,
    setup: &Setup,
    held: &Held,
    turns: &watch::Sender<Turn>,
) -> Result<Never, meshwork_broker::Error> {
    let queues = setup.places.control_queues(broker.keys());
    let types = setup.places.types();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let ids = held.ids();
        let asked = Controlled {
            worker: setup.identity.worker(),
            queues: &queues,
            types: &types,
            held: &ids,
            turn: TURN,
        };
        // What a turn that is left out should have heard of, the renewals tell.
        if let Some(told) =
            in_turn(broker.outages(), "control", EVERY, broker.control(asked)).await?
        {
            heed(setup, held, turns, told);
        }
    }
}

fn heed(setup: &Setup, held: &Held, turns: &watch::Sender<Turn>, told: Control) {
    for id in &told.stop {
        held.request_stop(id);
    }
    let lists = setup.places.lists(setup.broker.keys(), &told.migrations);
    setup.lists.send_if_modified(|now| {
        let changed = **now != lists;
        if changed {
            tracing::info!(lists = ?lists.names(), "a migration changed what is listened to");
            *now = Arc::new(lists);
        }
        changed
    });
    turns.send_replace(Turn {
        mine: told.turn,
        due: told.due,
    });
}
