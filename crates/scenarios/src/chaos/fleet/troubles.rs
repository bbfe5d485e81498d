//! The troubles of a fleet, at random moments.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use rustix::process::Signal;

use super::ledger::{Trouble, What};
use super::store::Store;
use super::troop::{LEASE, Member, Quarters, peace};
use crate::chaos::ChaosError;

/// Longest time between two troubles.
const CALM: Duration = Duration::from_millis(1500);
/// Duration of a pause: the leases of the worker expire, and other workers get its jobs.
const PAUSE: Duration = LEASE.saturating_add(Duration::from_millis(1500));
/// Time for which a server is down.
const AWAY: Duration = Duration::from_millis(700);
/// Time for which the server's memory is full.
const FULL: Duration = Duration::from_millis(1500);

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    KillWorker,
    PauseWorker,
    KillServer,
    RestartServer,
    FullMemory,
    Failover,
}

/// Troubles on a single server, each of which happens twice as often as it is listed.
const SERVER: [Kind; 6] = [
    Kind::KillWorker,
    Kind::KillWorker,
    Kind::PauseWorker,
    Kind::KillServer,
    Kind::RestartServer,
    Kind::FullMemory,
];
/// Troubles with a replica that takes over.
const FAILOVER: [Kind; 4] = [
    Kind::Failover,
    Kind::KillWorker,
    Kind::Failover,
    Kind::PauseWorker,
];

/// Random choices, and the troubles so far.
pub(super) struct Troubles {
    random: StdRng,
    /// Troubles so far, for the judge.
    pub(super) happened: Vec<Trouble>,
    drawn: usize,
}

/// Returns the time on the monotonic clock, which all processes share.
pub(in crate::chaos) fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}

impl Troubles {
    pub(super) fn new(random: StdRng) -> Self {
        Self {
            random,
            happened: Vec::new(),
            drawn: 0,
        }
    }

    /// Waits a little, and causes the next trouble: the kinds in order, with random victims.
    pub(super) async fn make(
        &mut self,
        store: &mut Store,
        troop: &mut [Member],
        quarters: &Quarters<'_>,
    ) -> Result<(), ChaosError> {
        peace(troop, CALM.mul_f64(self.random.random())).await?;
        let kinds: &[Kind] = if store.has_replica() {
            &FAILOVER
        } else {
            &SERVER
        };
        let kind = kinds[self.drawn % kinds.len()];
        self.drawn += 1;
        let victim = self.random.random_range(0..troop.len());
        let from = now();
        let what = match kind {
            Kind::KillWorker => {
                let victim = &mut troop[victim];
                let pid = victim.pid()?;
                victim.replace(quarters).await?;
                // It cannot start while the next trouble stops the server.
                victim.listens().await?;
                Some(What::Killed(pid))
            }
            Kind::PauseWorker => {
                troop[victim].signal(Signal::STOP)?;
                peace(troop, PAUSE).await?;
                troop[victim].signal(Signal::CONT)?;
                Some(What::Paused(troop[victim].pid()?))
            }
            Kind::KillServer => {
                store.kill();
                peace(troop, AWAY).await?;
                store.start_again();
                Some(What::ServerAway)
            }
            Kind::RestartServer => {
                store.restart();
                Some(What::ServerAway)
            }
            Kind::FullMemory => {
                store.fill(true)?;
                peace(troop, FULL).await?;
                store.fill(false)?;
                None
            }
            Kind::Failover => {
                store.fail_over().await?;
                Some(What::ServerAway)
            }
        };
        let trouble = |what| Trouble {
            what,
            from,
            to: now(),
        };
        self.happened.extend(what.map(trouble));
        Ok(())
    }
}
