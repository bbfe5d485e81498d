//! Jobs of Bananas: one file per verb. Each case uses [`Side`].

pub(super) mod claim;
pub(super) mod complete;
pub(super) mod configure;
pub(super) mod cron;
pub(super) mod dead;
pub(super) mod enqueue;
pub(super) mod export;
pub(super) mod fail;
pub(super) mod heavy;
pub(super) mod import;
pub(super) mod move_to_route;
pub(super) mod orphans;
mod over;
pub(super) mod promote;
pub(super) mod reclaim;
pub(super) mod release;
pub(super) mod renew;
pub(super) mod reroute;
pub(super) mod stats;

use std::time::Duration;

use meshwork_broker::bananas::{
    Bananas, Claim, Claimed, Completed, Completion, Promoted, Renewal, Taken,
};
use meshwork_model::bananas::{ClientVariant, NewJob};
use meshwork_model::keys::bananas::BananasKeys as Keys;
use meshwork_model::name::RoutingKey;
use meshwork_model::route::Priority;

use super::{Failure, Outcome, World, cases, check, same};
use crate::cases::harness::world::{ALIVE_MS, Got, LEASE, WORKER};

/// Age at which an entry of the running jobs is too old.
const AGE: Duration = Duration::from_secs(600);
/// Duration of the runs of cases.
const TOOK: Duration = Duration::from_millis(17);

/// The verbs for jobs of Bananas in a short form, and access to the data.
pub(super) struct Side<'a> {
    world: &'a World,
    verbs: Bananas,
}

impl<'a> Side<'a> {
    fn of(world: &'a World) -> Got<Self> {
        let verbs = world.bananas()?;
        Ok(Self { world, verbs })
    }

    fn keys(&self) -> &Keys {
        self.verbs.keys()
    }

    /// Returns the list of jobs without a route or priority.
    fn plain(&self) -> String {
        self.keys().plain(Priority::Normal)
    }

    fn job(&self, id: &str) -> Got<NewJob> {
        Ok(NewJob::new(id.parse()?, "count", "{\"n\":1}"))
    }

    /// Enqueues jobs as Go's client does.
    async fn put(&self, ids: &[&str]) -> Outcome {
        for id in ids {
            self.verbs
                .enqueue(&[self.job(id)?], ClientVariant::Go)
                .await?;
        }
        Ok(())
    }

    /// Writes a record and its id as any client does, on the list of jobs without a route or priority.
    async fn put_text(&self, id: &str, record: &str) -> Outcome {
        self.set(&self.keys().job(id), record).await?;
        self.push(&self.plain(), id).await
    }

    async fn set(&self, key: &str, value: &str) -> Outcome {
        self.world.raw(&["SET", key, value]).await
    }

    async fn push(&self, list: &str, id: &str) -> Outcome {
        self.world.raw(&["LPUSH", list, id]).await
    }

    async fn claim(&self, lists: &[String], want: usize) -> Got<Taken> {
        let claim = Claim {
            lists,
            want,
            lease: LEASE,
            worker: WORKER,
            token: &self.world.token(),
        };
        Ok(self.verbs.claim(claim).await?)
    }

    /// Claims from the list of jobs without a route or priority.
    async fn take(&self, want: usize) -> Got<Vec<Claimed>> {
        Ok(self.claim(&[self.plain()], want).await?.jobs)
    }

    async fn take_one(&self) -> Got<Claimed> {
        let mut jobs = self.take(1).await?;
        jobs.pop().ok_or_else(|| Failure::new("no job was claimed"))
    }

    /// Enqueues a job and claims it.
    async fn started(&self, id: &str) -> Got<Claimed> {
        self.put(&[id]).await?;
        self.take_one().await
    }

    async fn renew(&self, held: &[Claimed], routes: &[RoutingKey]) -> Got<Vec<Vec<u8>>> {
        let renewal = Renewal {
            in_flight: held,
            lease: LEASE,
            worker: WORKER,
            lists: &[self.plain()],
            routes,
            alive: Duration::from_millis(ALIVE_MS),
        };
        Ok(self.verbs.renew(renewal).await?)
    }

    /// Moves due jobs as the client in Go pushes.
    async fn promote(&self) -> Got<Promoted> {
        let due = self.verbs.due().await?;
        Ok(self.verbs.promote(&due, ClientVariant::Go).await?)
    }

    /// Requeues jobs that are too old, and returns their ids.
    async fn adopt(&self) -> Got<Vec<String>> {
        let mut adopted = Vec::new();
        for orphan in self.verbs.orphans(AGE).await? {
            if self.verbs.rescue(&orphan, ClientVariant::Go).await? {
                adopted.push(String::from_utf8_lossy(&orphan.id).into_owned());
            }
        }
        Ok(adopted)
    }

    /// Ends a job.
    async fn finish(&self, claimed: &Claimed, result: Option<&str>) -> Got<Completed> {
        let one = Completion {
            claimed,
            result,
            took: TOOK,
        };
        Ok(self.verbs.complete(&[one]).await?[0])
    }

    /// Returns a job's record.
    async fn record(&self, id: &str) -> Got<Option<String>> {
        self.world.raw(&["GET", &self.keys().job(id)]).await
    }

    /// Returns true if a job's record contains these words.
    async fn says(&self, id: &str, words: &str) -> Got<bool> {
        Ok(self.record(id).await?.unwrap_or_default().contains(words))
    }

    /// Returns a field of a job's result.
    async fn result(&self, id: &str, field: &str) -> Got<Option<String>> {
        let key = self.keys().result(id);
        self.world.raw(&["HGET", &key, field]).await
    }

    /// Returns the time to live of a key: see [`World::ttl`].
    async fn ttl(&self, key: &str) -> Got<i64> {
        self.world.ttl(key).await
    }

    /// Returns the ids of a list, the next one first.
    async fn list(&self, key: &str) -> Got<Vec<String>> {
        self.world.list(key).await
    }

    /// Checks that nothing is left of jobs that ran: no lease, no holder, no entry of the running jobs.
    async fn idle(&self) -> Outcome {
        let keys = self.keys();
        for key in [keys.lease(), keys.held(), keys.processing()] {
            let there: u8 = self.world.raw(&["EXISTS", &key]).await?;
            same!((key, there).1, 0);
        }
        Ok(())
    }
}

/// Returns the ids of claimed jobs, in order.
fn ids(jobs: &[Claimed]) -> Vec<String> {
    jobs.iter().map(Claimed::id).collect()
}
