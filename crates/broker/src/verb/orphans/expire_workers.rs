//! expire_workers: expires the leases of a dead worker at once.

use meshwork_macros::boxed;
use std::collections::BTreeSet;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most, text};

/// Greatest number of workers in a call.
const MOST_WORKERS: usize = 100;
/// Greatest number of pages of [`MAX_ITEMS`] of a set that are read. Entries beyond them expire by themselves.
const MOST_PAGES: usize = 100;

impl Broker {
    /// Expires the prefetch registrations and the leases of workers, named with their incarnations, so that
    /// [`Broker::reclaim`] requeues their jobs. Returns the number of expired leases. The workers must certainly be
    /// dead: a job of a live one would run twice.
    ///
    /// # Errors
    /// There are more than 100 workers, or the server refuses a call; repeat it then.
    #[boxed]
    pub async fn expire_workers(&self, workers: &BTreeSet<String>) -> Result<usize, Error> {
        at_most("expire_workers", MOST_WORKERS, workers.len())?;
        if workers.is_empty() {
            return Ok(0);
        }
        let of_dead = |entry: &String| {
            entry
                .split_once(' ')
                .is_some_and(|(worker, _)| workers.contains(worker))
        };
        let entries = self.members(&self.keys.prefetch_registry()).await?;
        let entries: Vec<_> = entries.into_iter().filter(of_dead).collect();
        for entries in entries.chunks(MAX_ITEMS) {
            self.end(workers, entries, &[]).await?;
        }
        let mut ended = 0;
        for ids in self.members(&self.keys.lease()).await?.chunks(MAX_ITEMS) {
            ended += self.end(workers, &[], ids).await?;
        }
        Ok(ended)
    }

    async fn end(
        &self,
        workers: &BTreeSet<String>,
        entries: &[String],
        ids: &[String],
    ) -> Result<usize, Error> {
        let mut call = self
            .scripts
            .call(Verb::ExpireWorkers)
            .arg(self.clock.argument());
        for list in [workers.iter().collect(), entries.iter().collect::<Vec<_>>()] {
            call.push_arg(list.len());
            list.into_iter().for_each(|item| call.push_arg(item));
        }
        ids.iter().for_each(|id| call.push_arg(id));
        call.run(&self.conn).await
    }

    /// Returns the members of a sorted set, with at least those that exist throughout.
    async fn members(&self, key: &str) -> Result<Vec<String>, Error> {
        let (mut members, mut from) = (Vec::new(), 0_u64);
        for _ in 0..MOST_PAGES {
            let mut scan = redis::cmd("ZSCAN");
            scan.arg(key).arg(from).arg("COUNT").arg(MAX_ITEMS);
            let (next, found): (u64, Vec<(Vec<u8>, f64)>) =
                self.ask("expire_workers", &scan).await?;
            members.extend(found.into_iter().map(|(member, _)| text(member)));
            from = next;
            if from == 0 {
                break;
            }
        }
        Ok(members)
    }
}
