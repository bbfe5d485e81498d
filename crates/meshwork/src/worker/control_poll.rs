//! Control poll: once a second the worker learns which of its jobs are to stop, whether it leads maintenance, and how the
//! migrations of its types stand. It runs on the keeper's thread.

use std::sync::Arc;

use meshwork_broker::{Broker, Control, Controlled};
use tokio::sync::watch;

use super::Setup;
use super::held::Held;
use super::maintenance::{LEADS_FOR, Leadership, POLL_EVERY};
use crate::worker::dedicated_thread::{Never, in_turn};

/// Polls until the connection breaks. A request to stop waits for the next poll at most.
pub(super) async fn poll_control(
    broker: &Broker,
    setup: &Setup,
    held: &Held,
    polls: &watch::Sender<Leadership>,
) -> Result<Never, meshwork_broker::Error> {
    let queues = setup.places.control_queues(broker.keys());
    let types = setup.places.types();
    let mut ticks = tokio::time::interval(POLL_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let ids = held.ids();
        let asked = Controlled {
            worker: setup.identity.worker(),
            queues: &queues,
            types: &types,
            held: &ids,
            turn: LEADS_FOR,
        };
        // What a poll that failed should have learned, the renewals tell.
        if let Some(told) = in_turn(
            broker.outages(),
            "control",
            POLL_EVERY,
            broker.control(asked),
        )
        .await?
        {
            heed(setup, held, polls, told);
        }
    }
}

fn heed(setup: &Setup, held: &Held, polls: &watch::Sender<Leadership>, told: Control) {
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
    polls.send_replace(Leadership {
        leads: told.turn,
        due: told.due,
    });
}
