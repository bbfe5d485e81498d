//! Renewal: a thread with a runtime and a connection of its own, so that no handler, however busy, can
//! starve it. It also takes back what other workers left behind. [`poll_control`] and [`maintain`] run beside it.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Backoff, Broker, Listener, Renewal};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::Setup;
use super::control_poll::poll_control;
use super::held::Held;
use super::lists::Lists;
use super::maintenance::{Leadership, maintain, wait_for_wakeups};
use super::presence::reclaim_dead;
use crate::worker::dedicated_thread::{Never, Thread, in_turn, within};

/// How long it may take to say that the worker is gone; it is known a little later in any case.
const DEPART: Duration = Duration::from_millis(500);

/// What the keeper has the server's word for: until when this worker counts as alive, and where.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) until: Instant,
    pub(super) lists: Arc<Lists>,
}

/// The keeper's report.
pub(super) type Alive = watch::Receiver<Option<Listed>>;

/// A running keeper.
#[derive(Debug)]
pub(super) struct Keeper {
    pub(super) alive: Alive,
    thread: Thread,
}

impl Keeper {
    /// Starts the thread.
    pub(super) fn start(setup: Arc<Setup>, held: Arc<Held>) -> std::io::Result<Self> {
        let (report, alive) = watch::channel(None);
        let departs = Arc::clone(&setup);
        let keep = async move { keep(&setup, &held, &report).await };
        let depart = async move { depart(&departs).await };
        let thread = Thread::start_with_last(keep, depart)?;
        Ok(Self { alive, thread })
    }

    /// Ends it; returns when the thread is gone.
    pub(super) async fn end(self) {
        self.thread.end().await;
    }
}

/// Renews for ever, over a connection that is made again whenever it breaks.
async fn keep(setup: &Setup, held: &Held, report: &watch::Sender<Option<Listed>>) {
    let mut backoff = Backoff::new();
    let (polls, wakeup) = (watch::Sender::new(Leadership::default()), Notify::new());
    loop {
        match setup.broker.dedicated().await {
            Ok(broker) => {
                let maintenance = maintain(
                    &broker,
                    setup.retention,
                    polls.subscribe(),
                    &setup.next_due,
                    &wakeup,
                );
                let Err(error) = tokio::select! {
                    failed = keep_over(&broker, setup, held, report, &mut backoff) => failed,
                    failed = poll_control(&broker, setup, held, &polls) => failed,
                    failed = maintenance => failed,
                    never = wait_for_wakeups(&broker, &wakeup) => match never {},
                    failed = setup.present.keep(&broker, held) => failed,
                };
                setup.meter.failed("renew", &error);
                broker.outages().failed("renew", &error);
            }
            Err(error) => {
                setup.meter.failed("connect", &error);
                setup.broker.outages().failed("renew", &error);
            }
        }
        backoff.wait().await;
    }
}

/// The last thing that is done, however the worker ends: its name is free again.
async fn depart(setup: &Setup) {
    // The other connections may be served by a runtime that waits for this thread.
    if let Ok(Ok(broker)) = tokio::time::timeout(DEPART, setup.broker.dedicated()).await {
        let _ = tokio::time::timeout(DEPART, setup.present.depart(&broker)).await;
    }
}

async fn keep_over(
    broker: &Broker,
    setup: &Setup,
    held: &Held,
    report: &watch::Sender<Option<Listed>>,
    backoff: &mut Backoff,
) -> Result<Never, meshwork_broker::Error> {
    let mut loaded = false;
    let mut ticks = tokio::time::interval(setup.renew_every());
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let asked = held.all();
        let began = Instant::now();
        let (told, lists) = renew(broker, setup, &asked).await?;
        *backoff = Backoff::new();
        setup.meter.heard();
        broker.outages().succeeded("renew");
        setup.meter.lost(held.lose(&asked, &told.gone));
        for id in &told.stop {
            held.request_stop(id);
        }
        report.send_replace(Some(Listed {
            until: began + setup.lease,
            lists,
        }));
        if !loaded {
            // Once per connection, since a server that was restarted has forgotten them.
            let load =
                in_turn(broker.outages(), "load", setup.renew_every(), broker.load()).await?;
            loaded = load.is_some();
            in_turn(
                broker.outages(),
                "reclaim_dead",
                setup.renew_every(),
                reclaim_dead(broker),
            )
            .await?;
        }
        let taken = in_turn(
            broker.outages(),
            "reclaim",
            setup.renew_every(),
            broker.reclaim(),
        )
        .await?;
        let taken = taken.unwrap_or_default();
        if taken != meshwork_broker::Reclaimed::default() {
            tracing::warn!(
                requeued = ?taken.requeued, ended = ?taken.ended, moved = taken.moved,
                "took back what a worker that is gone left behind"
            );
        }
    }
}

async fn renew(
    broker: &Broker,
    setup: &Setup,
    held: &[meshwork_broker::Claimed],
) -> Result<(meshwork_broker::Renewed, Arc<Lists>), meshwork_broker::Error> {
    // Held until the answer is there: a renewal that lands after the worker left would list it again.
    let listening = setup.listening.lock().await;
    let lists = setup.lists();
    let queues = if *listening { lists.names() } else { &[] };
    let listener = Listener {
        worker: setup.identity.worker(),
        queues,
    };
    let renewal = Renewal {
        held,
        lease: setup.lease,
        listener,
        alive: setup.lease,
    };
    let told = within("renew", setup.renew_every(), broker.renew(renewal)).await?;
    Ok((told, lists))
}
