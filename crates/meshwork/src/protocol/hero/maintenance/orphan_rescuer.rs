//! Orphan rescuer: finds jobs and ids of dead processes on this host, watched jobs whose worker is gone, prefetch lists
//! of workers that are gone, and foreign jobs on no list.

use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_broker::{Broker, Error, LeaderTask};

use super::task::{Outcome, Task};
use crate::protocol::hero::registry::reclaim_dead;

/// Pause between two scans for orphaned prefetch lists, and greatest pause between two checks whether the next scan for
/// foreign orphans is due. It is long, so that an idle worker makes few calls. A new migration waits as long for its first scan.
const BETWEEN_WALKS: Duration = Duration::from_secs(10);

/// Moves keys of another type away, so that they block nothing: those that are one of a kind, or, with `all`, the others too.
pub(crate) async fn move_away(broker: &Broker, all: bool) -> Result<(), Error> {
    let keys = broker.move_away(all).await?;
    if !keys.is_empty() {
        tracing::warn!(?keys, "moved keys of another type away");
    }
    Ok(())
}

/// Releases jobs and ids of dead workers of this host.
pub(super) struct DeadProcesses(Broker);

impl DeadProcesses {
    pub(super) fn new(broker: &Broker) -> Self {
        Self(broker.clone())
    }
}

impl Task for DeadProcesses {
    fn name(&self) -> &'static str {
        LeaderTask::ReclaimDead.as_str()
    }

    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            reclaim_dead(&self.0).await?;
            Ok(Outcome::more(false))
        })
    }
}

/// Checks watched jobs that are due.
pub(super) struct Watchdog(Broker);

impl Watchdog {
    pub(super) fn new(broker: &Broker) -> Self {
        Self(broker.clone())
    }
}

impl Task for Watchdog {
    fn name(&self) -> &'static str {
        LeaderTask::CheckOrphans.as_str()
    }

    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let watched = self.0.check_orphans().await?;
            if !watched.pushed.is_empty() {
                tracing::warn!(ids = ?watched.pushed, "requeued orphaned jobs");
            }
            Ok(Outcome::more(watched.more))
        })
    }
}

/// Scans all keys, page by page, for prefetch lists whose worker is not registered.
pub(super) struct OrphanedPrefetch {
    broker: Broker,
    /// Position of the scan.
    page: u64,
}

impl OrphanedPrefetch {
    pub(super) fn new(broker: &Broker) -> Self {
        let broker = broker.clone();
        Self { broker, page: 0 }
    }
}

impl Task for OrphanedPrefetch {
    fn name(&self) -> &'static str {
        "scan_prefetch"
    }

    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let found = self.broker.scan_prefetch(self.page).await?;
            if found.lists > 0 {
                tracing::warn!(lists = found.lists, "prefetched ids of dead workers found");
            }
            self.page = found.next;
            Ok(Outcome {
                worked: found.lists > 0,
                next: (found.next == 0).then_some(BETWEEN_WALKS),
            })
        })
    }
}

/// Continues the scan of all keys for orphaned jobs, which all workers share.
pub(super) struct ForeignScan(Broker);

impl ForeignScan {
    pub(super) fn new(broker: &Broker) -> Self {
        Self(broker.clone())
    }
}

impl Task for ForeignScan {
    fn name(&self) -> &'static str {
        "scan_orphans"
    }

    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let swept = self.0.scan_orphans().await?;
            if swept.next == 0 && swept.rests.is_none() {
                move_away(&self.0, false).await?;
            }
            if swept.unroutable > 0 {
                tracing::warn!(
                    jobs = swept.unroutable,
                    "foreign jobs not requeued: their records have no type"
                );
            }
            if swept.restored > 0 {
                tracing::warn!(
                    schedules = swept.restored,
                    "restored schedules that the set of all schedules lacked"
                );
            }
            Ok(Outcome {
                worked: swept.adopted > 0,
                next: swept.rests.map(|left| left.min(BETWEEN_WALKS)),
            })
        })
    }
}
