//! Renewal: a thread with a runtime and a connection of its own, so that no handler, however busy, can
//! starve it. It also takes back what other workers left behind. [`control`] and [`duties`] run beside it.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Backoff, Broker, Listener, Renewal};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Setup;
use super::control::control;
use super::duty::{Turn, duties, listen};
use super::held::Held;
use super::lists::Lists;

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
    end: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread.
    pub(super) fn start(setup: Arc<Setup>, held: Arc<Held>) -> std::io::Result<Self> {
        let (report, alive) = watch::channel(None);
        let end = CancellationToken::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let ended = end.clone();
        let thread = std::thread::Builder::new()
            .name("meshwork-renew".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = keep(&setup, &held, &report) => {}
                        () = ended.cancelled() => {}
                    }
                    depart(&setup).await;
                });
            })?;
        Ok(Self {
            alive,
            end,
            thread: Some(thread),
        })
    }

    /// Ends it; returns when the thread is gone.
    pub(super) async fn end(mut self) {
        self.end.cancel();
        if let Some(thread) = self.thread.take() {
            // It is somewhere between two steps that take milliseconds, or at a call that is dropped.
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the renewal thread panicked");
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// Renews for ever, over a connection that is made again whenever it breaks.
async fn keep(setup: &Setup, held: &Held, report: &watch::Sender<Option<Listed>>) {
    let mut backoff = Backoff::new();
    let (turns, word) = (watch::Sender::new(Turn::default()), Notify::new());
    loop {
        match setup.broker.dedicated().await {
            Ok(broker) => {
                let Err(error) = tokio::select! {
                    failed = keep_over(&broker, setup, held, report) => failed,
                    failed = control(&broker, setup, held, &turns) => failed,
                    failed = duties(&broker, setup, turns.subscribe(), &word) => failed,
                    failed = listen(&broker, &word) => failed,
                    failed = setup.present.keep(&broker, held) => failed,
                };
                setup.meter.failed("renew", &error);
                tracing::warn!(%error, "renewal failed; connecting again");
            }
            Err(error) => {
                setup.meter.failed("connect", &error);
                tracing::warn!(%error, "no connection for renewals");
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

/// What never comes.
pub(super) enum Never {}

async fn keep_over(
    broker: &Broker,
    setup: &Setup,
    held: &Held,
    report: &watch::Sender<Option<Listed>>,
) -> Result<Never, meshwork_broker::Error> {
    let mut loaded = false;
    let mut ticks = tokio::time::interval(setup.renew_every());
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let asked = held.all();
        let began = Instant::now();
        let (told, lists) = renew(broker, setup, &asked).await?;
        setup.meter.heard();
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
            within("load", setup.lease, broker.load()).await?;
            loaded = true;
        }
        let taken = within("reclaim", setup.renew_every(), broker.reclaim()).await?;
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

/// A call that may not take longer than `most`.
pub(super) async fn within<T>(
    verb: &'static str,
    most: Duration,
    call: impl Future<Output = Result<T, meshwork_broker::Error>>,
) -> Result<T, meshwork_broker::Error> {
    tokio::time::timeout(most, call)
        .await
        .unwrap_or_else(|_| Err(meshwork_broker::Error::timed_out(verb)))
}
