//! Control poll: once per second the worker reads which of its jobs to cancel, whether it is the leader, and the
//! migration phases of its types. Runs on the heartbeat thread.

use std::sync::Arc;

use meshwork_broker::{Broker, Claimed, Control, Controlled};
use tokio::sync::watch;

use super::maintenance::{LEADS_FOR, Leadership, POLL_EVERY, move_away};
use super::pool::Member;
use super::state::HeroProtocol;
use meshwork_worker::InFlight;
use meshwork_worker::Queues;
use meshwork_worker::dedicated_thread::{Never, best_effort};

/// Polls until the connection breaks. A cancel request waits for the next poll. In a pool, a context is polled only
/// while jobs run, after a look that found work, and every few minutes.
pub(super) async fn poll_control(
    broker: &Broker,
    hero: &HeroProtocol,
    in_flight: &InFlight<Claimed>,
    polls: &watch::Sender<Leadership>,
) -> Result<Never, meshwork_broker::Error> {
    let queues = hero.places.control_queues(broker.keys());
    let types = hero.places.types();
    let mut ticks = tokio::time::interval(POLL_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut steps, mut wrong_types) = (None, broker.outages().wrong_types());
    loop {
        ticks.tick().await;
        if wrong_types != broker.outages().wrong_types() {
            let move_away = move_away(broker, true);
            best_effort(broker.outages(), "move_away", POLL_EVERY, move_away).await?;
            wrong_types = broker.outages().wrong_types();
        }
        let idle = |member: &Member| !member.is_poll_due(in_flight.count());
        if hero.member().is_some_and(idle) {
            continue;
        }
        let mut ids = Vec::new();
        in_flight.each(|claimed| ids.push(claimed.job.id.clone()));
        let request = Controlled {
            worker: hero.identity.worker(),
            queues: &queues,
            types: &types,
            held: &ids,
            turn: LEADS_FOR,
        };
        // Renewals also report what a failed poll missed.
        if let Some(control) = best_effort(
            broker.outages(),
            "control",
            POLL_EVERY,
            broker.control(request),
        )
        .await?
        {
            if steps.is_some_and(|before| control.steps_back > before) {
                tracing::warn!(
                    steps = control.steps_back,
                    "the server's clock went back: job times continue from the latest time"
                );
            }
            steps = Some(control.steps_back);
            apply(hero, in_flight, polls, control);
        }
    }
}

fn apply(
    hero: &HeroProtocol,
    in_flight: &InFlight<Claimed>,
    polls: &watch::Sender<Leadership>,
    control: Control,
) {
    for id in &control.stop {
        let _ = in_flight.cancel(|claimed| claimed.job.id == *id);
    }
    let lists = hero.places.lists(hero.broker.keys(), &control.migrations);
    hero.lists.send_if_modified(|now| {
        let changed = **now != lists;
        if changed {
            tracing::info!(lists = ?lists.names(), "queues changed by a migration");
            *now = Arc::new(lists);
        }
        changed
    });
    polls.send_replace(Leadership {
        leads: control.turn,
        due: control.due,
        tasks: control.tasks,
    });
}
