//! What the parts of a worker share: what it was started with, the jobs that it has in hand, and from which lists nothing
//! is taken for a while.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_broker::bananas::{Bananas, Claimed};
use meshwork_model::bananas::Peer;
use meshwork_model::route::routes::Routes;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Foreign;
use super::report::Reports;
use crate::protocol::handlers::Handlers;
use crate::runner::{StopReason, StopSignal};
use crate::worker::{Appetite, Identity, Meter, Watched};

/// So often a lease is renewed while it lasts.
const RENEWALS: u32 = 3;
/// Between two looks past jobs that are left where they stand, on lists without a route.
const PLAIN_RESTS: Duration = Duration::from_secs(1);

/// What a worker was started with.
pub(super) struct Setup {
    pub(super) broker: Bananas,
    pub(super) identity: Identity,
    pub(super) handlers: Handlers,
    pub(super) routes: Routes,
    pub(super) lists: Vec<String>,
    pub(super) concurrency: usize,
    pub(super) timeout: Duration,
    pub(super) max_retries: u32,
    pub(super) lease: Duration,
    pub(super) grace: Duration,
    pub(super) foreign: Foreign,
    pub(super) peer: Peer,
    pub(super) strays: Option<Duration>,
    pub(super) scheduler: bool,
    /// What it counts of itself.
    pub(super) meter: Meter,
}

/// A job in hand, and how its run is stopped.
#[derive(Clone)]
pub(super) struct InHand {
    pub(super) claimed: Claimed,
    pub(super) stop: StopSignal,
    hold: Hold,
}

/// Until when a job is in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// Until it is dealt with.
    Runs,
    /// Until it is handed back, however its run ends.
    GivenUp,
    /// The same, and its run has ended.
    Ended,
}

/// A worker that runs.
pub(super) struct State {
    pub(super) setup: Setup,
    in_hand: Mutex<HashMap<Vec<u8>, InHand>>,
    /// Where runs that ended well are told.
    pub(super) reports: Reports,
    /// What the loop that takes jobs and the connections that wait for them tell each other.
    pub(super) appetite: Appetite,
    /// Until when the server counts this worker as alive.
    pub(super) alive: watch::Sender<Option<Instant>>,
    /// When to look past the jobs that are left on lists without a route; nothing is taken from there while any is.
    rests: watch::Sender<Option<Instant>>,
    /// Whether it is on the list of listeners. Locked while a renewal is on its way: one that lands after the worker
    /// left would list it again.
    pub(super) listening: tokio::sync::Mutex<bool>,
    /// Takes no more jobs.
    pub(super) stop: CancellationToken,
}

impl State {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            setup,
            reports: Reports::default(),
            in_hand: Mutex::default(),
            appetite: Appetite::new(),
            alive: watch::Sender::new(None),
            rests: watch::Sender::new(None),
            listening: tokio::sync::Mutex::new(true),
            stop: CancellationToken::new(),
        }
    }

    pub(super) fn renew_every(&self) -> Duration {
        self.setup.lease / RENEWALS
    }

    /// How long one wait for an id lasts: shorter than the registration of whoever waits.
    pub(super) fn park_for(&self) -> Duration {
        self.setup.lease / RENEWALS
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<Vec<u8>, InHand>> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job is this worker's.
    pub(super) fn take(&self, claimed: Claimed) -> InHand {
        let stop = StopSignal::default();
        let taken = InHand {
            claimed,
            stop,
            hold: Hold::Runs,
        };
        self.jobs()
            .insert(taken.claimed.hold.clone(), taken.clone());
        taken
    }

    /// A job is dealt with. One of the same id that came later stays, and so does one that is to be handed back.
    pub(super) fn done(&self, claimed: &Claimed) {
        let mut jobs = self.jobs();
        match jobs.get_mut(&claimed.hold) {
            Some(job) if job.claimed.token != claimed.token => {}
            Some(job) if job.hold != Hold::Runs => job.hold = Hold::Ended,
            _ => drop(jobs.remove(&claimed.hold)),
        }
    }

    /// The jobs in hand.
    pub(super) fn held(&self) -> Vec<Claimed> {
        let jobs = self.jobs();
        jobs.values().map(|job| job.claimed.clone()).collect()
    }

    /// Ends the runs of jobs that are this worker's no more. Gives how many.
    pub(super) fn lose(&self, holds: &[Vec<u8>], asked: &[Claimed]) -> usize {
        let jobs = self.jobs();
        let mut lost = 0;
        for hold in holds {
            let token = asked.iter().find(|job| job.hold == *hold);
            let token = token.map(|job| job.token.as_str());
            if let Some(job) = jobs
                .get(hold)
                .filter(|job| Some(job.claimed.token.as_str()) == token)
            {
                job.stop.stop(StopReason::Lost);
                lost += usize::from(job.hold != Hold::Ended);
            }
        }
        lost
    }

    /// Ends all runs, whose jobs are to be handed back, and gives them; they stay in hand, so that their leases last
    /// until then.
    pub(super) fn give_up(&self) -> Vec<Claimed> {
        let mut jobs = self.jobs();
        let give_up = |job: &mut InHand| {
            job.hold = Hold::GivenUp;
            job.stop.stop(StopReason::Lost);
            job.claimed.clone()
        };
        jobs.values_mut().map(give_up).collect()
    }

    /// A job is left where it stands, on a list without a route: nothing is taken from such lists.
    pub(super) fn let_plain_rest(&self) {
        self.rests.send_replace(Some(Instant::now() + PLAIN_RESTS));
    }

    /// None is left any more.
    pub(super) fn end_plain_rest(&self) {
        self.rests.send_replace(None);
    }

    /// Whether it is time to look past the jobs that are left.
    pub(super) fn looks_at_left(&self) -> bool {
        self.rests.borrow().is_some_and(|at| at <= Instant::now())
    }

    fn rests(&self, list: &str) -> bool {
        self.rests.borrow().is_some() && self.setup.broker.keys().is_plain(list)
    }

    /// Those of its lists that have no route.
    pub(super) fn plain_lists(&self) -> Vec<String> {
        let keys = self.setup.broker.keys();
        let lists = self.setup.lists.iter();
        lists.filter(|list| keys.is_plain(list)).cloned().collect()
    }

    /// The lists to take from now, when so many claims have brought jobs before.
    pub(super) fn lists(&self, claims: usize) -> Vec<String> {
        let routes = self.setup.routes.in_turn(claims);
        let mut lists = self.setup.broker.keys().lists(&routes);
        lists.retain(|list| !self.rests(list));
        lists
    }

    /// Returns when ids of a list are wanted and the server knows that this worker lives for longer than a wait
    /// lasts.
    pub(super) async fn may_wait(&self, list: &str) {
        let mut alive = self.alive.subscribe();
        loop {
            self.appetite.hungry_for(list).await;
            if self.rests(list) {
                // The sender lives as long as `self`.
                let _ = self.rests.subscribe().wait_for(Option::is_none).await;
                continue;
            }
            let until = *alive.borrow_and_update();
            if until.is_some_and(|until| until > Instant::now() + self.park_for()) {
                return;
            }
            // The sender lives as long as `self`.
            let _ = alive.changed().await;
        }
    }
}

impl Watched for State {
    fn name(&self) -> &str {
        self.setup.identity.worker()
    }

    fn busy(&self) -> usize {
        self.jobs().len()
    }

    fn alive_until(&self) -> Option<Instant> {
        *self.alive.borrow()
    }

    fn meter(&self) -> &Meter {
        &self.setup.meter
    }
}
