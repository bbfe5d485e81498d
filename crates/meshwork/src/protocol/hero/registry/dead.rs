//! Dead workers: those of this host whose process is known to be gone. What they held goes back at once, without
//! waiting for their leases. Workers of other hosts, of other pid namespaces, and stopped ones are left alone.

use std::collections::BTreeSet;

use meshwork_broker::{Broker, Presence, Reclaimed};

use super::process::Process;
use super::said::{WorkerInfo, mark};
use crate::{Client, Error};

/// The most registrations looked at, those first that end first: a fleet that connects again at once costs the
/// server little. Who is not found now comes to stand there within a heartbeat, and its leases end in any case.
const MOST: usize = 100;
/// The most calls that take back what was found; a worker's keeper goes on with the rest.
const MOST_RECLAIMS: usize = 10;

impl Client {
    /// Takes back what dead workers of this host held: jobs that they ran, and ids that came to them. Returns the
    /// number of those workers. A worker is dead if the process that registered it is gone, which the kernel tells by
    /// pid and start; of other hosts and pid namespaces nothing is known, and their leases end by themselves.
    ///
    /// # Errors
    /// If the server does not take a call; repeat it then.
    pub async fn reclaim_dead(&self) -> Result<usize, Error> {
        Ok(reclaim_dead(self.broker()).await?)
    }
}

/// The same over a worker's own connection.
pub(in crate::protocol::hero) async fn reclaim_dead(
    broker: &Broker,
) -> Result<usize, meshwork_broker::Error> {
    let own = Process::own();
    let actors = broker.stalest_actors(MOST).await?;
    let dead = actors.into_iter().filter_map(|(name, value)| {
        let info = WorkerInfo::read(&name, &value);
        let worker = info.dead(&own)?.to_owned();
        Some((name, worker))
    });
    let dead: Vec<_> = dead.collect();
    let workers: BTreeSet<_> = dead.iter().map(|(_, worker)| worker.clone()).collect();
    if workers.is_empty() {
        return Ok(0);
    }
    let leases = broker.orphan(&workers).await?;
    for _ in 0..MOST_RECLAIMS {
        if broker.reclaim().await? == Reclaimed::default() {
            break;
        }
    }
    // Last: who is killed before leaves them to be found.
    for (name, worker) in &dead {
        let key = format!("{}{name}", broker.keys().presence_prefix());
        let presence = Presence {
            key: &key,
            value: "",
            mark: &mark(worker),
            over: None,
        };
        broker.depart(presence).await?;
    }
    if leases > 0 {
        tracing::warn!(?workers, leases, "jobs of dead workers reclaimed");
    } else {
        tracing::info!(?workers, "dead workers removed");
    }
    Ok(workers.len())
}
