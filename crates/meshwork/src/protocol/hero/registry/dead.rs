//! Dead workers: workers of this host whose process has certainly ended. Their jobs return at once, before their leases
//! expire. Workers of other hosts or pid namespaces, and suspended ones, are not affected.

use meshwork_macros::boxed;
use std::collections::BTreeSet;

use meshwork_broker::{Broker, Reclaimed, Registration};

use super::process::Process;
use super::record::{WorkerInfo, mark};
use crate::{Client, Error};

/// Greatest number of registrations to check, the earliest expiry first, which bounds the cost when many workers
/// reconnect. Others are found later, and leases expire in any case.
const MOST: usize = 100;
/// Greatest number of calls that release jobs. The heartbeat of a worker continues with the rest.
const MOST_RECLAIMS: usize = 10;

impl Client {
    /// Releases jobs and prefetched ids of dead workers of this host, and returns the number of these workers. A worker
    /// is dead if the process that registered it has ended, which the kernel shows by pid and start time. Leases of
    /// workers on other hosts or in other pid namespaces must expire.
    ///
    /// # Errors
    /// A call to the server fails; repeat it then.
    #[boxed]
    pub async fn reclaim_dead(&self) -> Result<usize, Error> {
        Ok(reclaim_dead(self.broker()).await?)
    }
}

/// Releases jobs of dead workers, over the connection of a worker.
pub(in crate::protocol::hero) async fn reclaim_dead(
    broker: &Broker,
) -> Result<usize, meshwork_broker::Error> {
    let own = Process::own();
    let workers = broker.stalest_workers(MOST).await?;
    let dead = workers.into_iter().filter_map(|(name, value)| {
        let info = WorkerInfo::read(&name, &value);
        let worker = info.dead(&own)?.to_owned();
        Some((name, worker))
    });
    let dead: Vec<_> = dead.collect();
    let workers: BTreeSet<_> = dead.iter().map(|(_, worker)| worker.clone()).collect();
    if workers.is_empty() {
        return Ok(0);
    }
    let leases = broker.expire_workers(&workers).await?;
    for _ in 0..MOST_RECLAIMS {
        if broker.reclaim().await? == Reclaimed::default() {
            break;
        }
    }
    // Last, so that an interrupted call can be repeated.
    for (name, worker) in &dead {
        let key = format!("{}{name}", broker.keys().presence_prefix());
        let presence = Registration {
            key: &key,
            value: "",
            mark: &mark(worker),
            over: None,
        };
        broker.deregister(presence).await?;
    }
    if leases > 0 {
        tracing::warn!(?workers, leases, "jobs of dead workers reclaimed");
    } else {
        tracing::info!(?workers, "dead workers removed");
    }
    Ok(workers.len())
}
