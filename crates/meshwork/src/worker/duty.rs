//! Duties: what one worker at a time does for all: jobs whose delay is over go into their queues, slots of
//! schedules that are due get their jobs, jobs that wait for others learn how those ended, jobs that nobody
//! comes back to are looked after, and batches; old ones are forgotten; what dead workers of this host held is taken
//! back. Whose turn it is, `control` hears. What is
//! delayed comes on time whoever dies: a worker that hears of a job that is due before all others sees to it, so
//! does the one that has the turn, and each other one looks a little later.

use std::time::Duration;

use meshwork_broker::{Backoff, Broker};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::Setup;
use super::control::EVERY;
use super::presence::reclaim_dead;
use crate::worker::dedicated_thread::{Never, in_turn};

/// How much of a turn goes into the duties, so that renewals and requests to stop have the rest.
const BUDGET: Duration = Duration::from_millis(500);
/// How long a call may take: as between two looks of `control`.
const CALL: Duration = EVERY;
/// A job that is due later than this is seen by whoever has the turn then.
const NEAR: Duration = Duration::from_secs(2);
/// Past the next look of `control`, how long a worker goes on with what is due: by then another one has the
/// turn for sure.
const SLACK: Duration = Duration::from_millis(300);
/// After what is due, those look who have not the turn, each some time in this range of milliseconds: so soon
/// that a job is on time although the one who has it is dead, and not all at once.
const STAND_BY: std::ops::Range<u64> = 20..60;
/// How long one wait for word of what is due lasts; it begins again at once.
const LISTEN: Duration = Duration::from_secs(20);
/// The clock of the server counts in milliseconds: a job is due when this one is over.
const TICK: Duration = Duration::from_millis(1);

/// What `control` said of the duties.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turn {
    /// Whether it is this worker's turn.
    pub(super) mine: bool,
    /// When the next delayed job or schedule is due.
    pub(super) due: Option<Duration>,
}

/// When a job that failed here is due again: this worker sees to it, whoever has the turn.
#[derive(Debug)]
pub(super) struct Due(watch::Sender<Option<Instant>>);

impl Due {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// A job is due after `delay`.
    pub(super) fn note(&self, delay: Duration) {
        if delay > NEAR {
            return;
        }
        let at = Instant::now() + delay + TICK;
        self.0.send_if_modified(|first| {
            let sooner = first.is_none_or(|first| at < first);
            if sooner {
                *first = Some(at);
            }
            sooner
        });
    }

    fn take(&self) -> Option<Instant> {
        let mut taken = None;
        self.0.send_if_modified(|first| {
            taken = first.take();
            false
        });
        taken
    }
}

/// Does them for ever, until the connection breaks.
pub(super) async fn duties(
    broker: &Broker,
    setup: &Setup,
    mut turns: watch::Receiver<Turn>,
    word: &Notify,
) -> Result<Never, meshwork_broker::Error> {
    let mut noted = setup.due.0.subscribe();
    // What failed before this connection was made.
    noted.mark_changed();
    let mut duties = Duties {
        broker,
        setup,
        next: None,
        stand_by: None,
        until: Instant::now(),
        page: 0,
    };
    loop {
        let next = duties.next.into_iter().chain(duties.stand_by).min();
        tokio::select! {
            Ok(()) = turns.changed() => {
                let turn = *turns.borrow_and_update();
                if turn.mine {
                    duties.turn(turn).await?;
                } else {
                    duties.stand_by(turn);
                }
            }
            () = word.notified() => {
                duties.keep_on();
                duties.promote().await?;
            }
            Ok(()) = noted.changed() => {
                noted.mark_unchanged();
                if let Some(at) = setup.due.take() {
                    duties.see_to(at);
                }
            }
            () = at(next) => duties.promote().await?,
        }
    }
}

/// Waits for word of jobs that are due before all others, on a connection of its own that is made again when it breaks.
pub(super) async fn listen(broker: &Broker, word: &Notify) -> Never {
    let mut backoff = Backoff::new();
    loop {
        let Err(error) = hear(broker, word, &mut backoff).await;
        // Jobs that are due soon may be late.
        broker.outages().failed("listen", &error);
        if error.is_temporary() {
            backoff.wait().await;
        } else {
            tokio::time::sleep(LISTEN).await;
        }
    }
}

async fn hear(
    broker: &Broker,
    word: &Notify,
    backoff: &mut Backoff,
) -> Result<Never, meshwork_broker::Error> {
    let parking = broker.parking().await?;
    loop {
        if broker.await_due(&parking, LISTEN).await? {
            word.notify_one();
        }
        *backoff = Backoff::new();
        broker.outages().succeeded("listen");
    }
}

async fn at(next: Option<Instant>) {
    match next {
        Some(next) => tokio::time::sleep_until(next).await,
        None => std::future::pending().await,
    }
}

struct Duties<'a> {
    broker: &'a Broker,
    setup: &'a Setup,
    /// When to promote.
    next: Option<Instant>,
    /// When to promote what whoever has the turn should have promoted before.
    stand_by: Option<Instant>,
    /// Until when it sees to what becomes due.
    until: Instant,
    /// Where the search for stranded ids goes on.
    page: u64,
}

impl Duties<'_> {
    /// All duties once; those that have more to do again, while there is time.
    async fn turn(&mut self, turn: Turn) -> Result<(), meshwork_broker::Error> {
        let began = Instant::now();
        self.keep_on();
        if let Some(due) = turn.due {
            self.see_to(began + due);
        }
        in_turn(
            self.broker.outages(),
            "reclaim_dead",
            CALL,
            reclaim_dead(self.broker),
        )
        .await?;
        let (mut settle, mut watch, mut prune, mut tend) = (true, true, true, true);
        while (settle || watch || prune || tend) && began.elapsed() < BUDGET {
            if self.next.is_some_and(|next| next <= Instant::now()) {
                self.promote().await?;
            }
            if settle {
                let settled =
                    in_turn(self.broker.outages(), "settle", CALL, self.broker.settle()).await?;
                settle = settled.unwrap_or(false);
            }
            if watch {
                let watched =
                    in_turn(self.broker.outages(), "watch", CALL, self.broker.watch()).await?;
                let watched = watched.unwrap_or_default();
                if !watched.pushed.is_empty() {
                    tracing::warn!(ids = ?watched.pushed, "pushed again what nobody had");
                }
                watch = watched.more;
            }
            if prune {
                let pruned = self.broker.prune(self.setup.retention);
                let pruned = in_turn(self.broker.outages(), "prune", CALL, pruned).await?;
                prune = pruned.is_some_and(|(_, more)| more);
            }
            if tend {
                let tended = self.broker.tend_batches(self.setup.retention);
                let tended = in_turn(self.broker.outages(), "tend_batches", CALL, tended).await?;
                tend = tended.is_some_and(|(_, more)| more);
            }
        }
        self.search().await?;
        self.sweep().await
    }

    /// A part of the walk for jobs that nobody may have.
    async fn sweep(&self) -> Result<(), meshwork_broker::Error> {
        let swept = in_turn(self.broker.outages(), "sweep", CALL, self.broker.sweep()).await?;
        let unroutable = swept.map_or(0, |swept| swept.unroutable);
        if unroutable > 0 {
            tracing::warn!(
                jobs = unroutable,
                "jobs of others do not tell their type; nobody can push them again"
            );
        }
        Ok(())
    }

    /// One page of the search for ids that stand in the feed lists of no listener.
    async fn search(&mut self) -> Result<(), meshwork_broker::Error> {
        let found = self.broker.stranded(self.page);
        if let Some(found) = in_turn(self.broker.outages(), "stranded", CALL, found).await? {
            if found.lists > 0 {
                tracing::warn!(lists = found.lists, "found ids of listeners that are gone");
            }
            self.page = found.next;
        }
        Ok(())
    }

    /// It sees to what is due until another one has the turn for sure.
    fn keep_on(&mut self) {
        self.until = self.until.max(Instant::now() + EVERY + SLACK);
    }

    /// Looks after what another one should have done.
    fn stand_by(&mut self, turn: Turn) {
        let due = turn.due.filter(|due| *due <= EVERY + SLACK);
        self.stand_by = due.map(|due| {
            let late = Duration::from_millis(rand::random_range(STAND_BY));
            Instant::now() + due + late
        });
    }

    fn see_to(&mut self, at: Instant) {
        self.until = self.until.max(at);
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    /// Slots of schedules that are due. Whether it was done: when memory is full, jobs wait to be stored, and what
    /// runs goes on.
    async fn tick(&mut self) -> Result<bool, meshwork_broker::Error> {
        let ticked = in_turn(self.broker.outages(), "tick", CALL, self.broker.tick()).await?;
        let ok = ticked.is_some();
        for (schedule, why) in ticked.unwrap_or_default().troubles {
            tracing::warn!(%schedule, why, "a slot is not decided yet");
        }
        Ok(ok)
    }

    /// What is due: slots of schedules, and jobs whose delay is over.
    async fn promote(&mut self) -> Result<(), meshwork_broker::Error> {
        (self.next, self.stand_by) = (None, None);
        let decided = self.tick().await?;
        // It tells when the next schedule is due, too.
        let Some(promoted) = in_turn(
            self.broker.outages(),
            "promote",
            CALL,
            self.broker.promote(),
        )
        .await?
        else {
            return Ok(());
        };
        if promoted.due > 0 {
            self.keep_on();
        }
        let pause = if decided { Duration::ZERO } else { EVERY };
        let next = promoted.next.map(|next| next.max(pause));
        let next = next.map(|next| Instant::now() + next + TICK);
        self.next = next.filter(|next| *next <= self.until);
        Ok(())
    }
}
