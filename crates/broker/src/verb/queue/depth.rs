//! depth: counts the unfinished jobs of a queue, for all its priorities together. It changes nothing.

use meshwork_macros::boxed;
use std::collections::BTreeMap;

use meshwork_model::job::field;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;
use meshwork_model::route::Priority;
use redis::RedisResult;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::MAX_ITEMS;
use crate::verb::inspect::jobs::texts;

/// Greatest number of delayed jobs, and of running ones, that one walk over all queues reads: some ten milliseconds of the
/// server's time.
const MAX_WALKED: usize = 2 * MAX_ITEMS;

/// Unfinished jobs of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// Number of ids in its lists.
    pub waiting: usize,
    /// Number of jobs in backlogs of concurrency keys.
    pub set_aside: usize,
    /// Number of jobs that run.
    pub running: usize,
    /// Number of jobs that wait for a retry.
    pub retrying: usize,
    /// Number of delayed jobs that have never run.
    pub delayed: usize,
}

impl QueueDepth {
    /// Returns whether the queue has no unfinished jobs other than delayed ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting + self.set_aside + self.running + self.retrying == 0
    }
}

impl Broker {
    /// Counts the unfinished jobs of a queue. Scans all running and all delayed jobs of all queues, 1,000 in a call.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn depth(&self, queue: &str) -> Result<QueueDepth, Error> {
        let queue = JobKeys::without_priority(queue);
        let mut depth = QueueDepth {
            waiting: self.waiting(queue).await?,
            ..QueueDepth::default()
        };
        let aside = self.aside(Some(queue)).await?;
        depth.set_aside = aside.values().sum();
        self.walk(&self.keys.delayed(), usize::MAX, |of, ran| {
            depth.retrying += usize::from(ran && of == queue);
            depth.delayed += usize::from(!ran && of == queue);
        })
        .await?;
        // Leases come last, so that jobs that were claimed or released meanwhile are counted.
        self.walk(&self.keys.lease(), usize::MAX, |of, _| {
            depth.running += usize::from(of == queue);
        })
        .await?;
        Ok(depth)
    }

    /// Counts the unfinished jobs of all queues but those in lists, in one walk: at most 2,000 delayed ones, the next
    /// due first, and as many running ones. Returns also whether there are more.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn depths_beside_lists(&self) -> Result<(BTreeMap<String, QueueDepth>, bool), Error> {
        let mut depths: BTreeMap<String, QueueDepth> = BTreeMap::new();
        for (list, count) in self.aside(None).await? {
            let queue = JobKeys::without_priority(&list).to_owned();
            depths.entry(queue).or_default().set_aside += count;
        }
        let (delayed, leases) = (self.keys.delayed(), self.keys.lease());
        let more_delayed = self.walk(&delayed, MAX_WALKED, |of, ran| {
            let depth = depths.entry(of.to_owned()).or_default();
            depth.retrying += usize::from(ran);
            depth.delayed += usize::from(!ran);
        });
        let more_delayed = more_delayed.await?;
        let more_running = self.walk(&leases, MAX_WALKED, |of, _| {
            depths.entry(of.to_owned()).or_default().running += 1;
        });
        let more_running = more_running.await?;
        Ok((depths, more_delayed || more_running))
    }

    /// Returns the number of ids in the lists of a queue, in one round trip.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn waiting(&self, queue: &str) -> Result<usize, Error> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors().cmd("LLEN").arg(queue);
        for priority in [Priority::High, Priority::Normal, Priority::Low] {
            let list = JobKeys::work_queue_priority(queue, priority);
            pipe.cmd("LLEN").arg(list);
        }
        let lengths: Vec<RedisResult<usize>> = self.ask_all("inspect", &pipe).await?;
        Ok(lengths.into_iter().flatten().sum())
    }

    /// Returns the number of jobs in backlogs, by list; of one queue's lists, or of all.
    pub(crate) async fn aside(
        &self,
        queue: Option<&str>,
    ) -> Result<BTreeMap<String, usize>, Error> {
        let wanted =
            |list: &str| queue.is_none_or(|queue| JobKeys::without_priority(list) == queue);
        let (mut aside, mut from) = (BTreeMap::new(), 0);
        loop {
            let (counts, last) = self.aside_page(from, wanted).await?;
            for (list, count) in counts {
                *aside.entry(list).or_insert(0) += count;
            }
            if last {
                return Ok(aside);
            }
            from += MAX_ITEMS;
        }
    }

    /// Returns a page of [`MAX_ITEMS`] keys from index `from` on: the size of each key's backlog with its list, if
    /// the list is wanted. Also returns whether it is the last page. A backlog of another type counts as empty.
    pub(crate) async fn aside_page(
        &self,
        from: usize,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(Vec<(String, usize)>, bool), Error> {
        let mut range = redis::cmd("ZRANGE");
        range
            .arg(self.keys.backlog_index())
            .arg(from)
            .arg(from + MAX_ITEMS - 1);
        let found: Vec<Vec<u8>> = self.ask("depth", &range).await?;
        let last = found.len() < MAX_ITEMS;
        let (mut lists, mut pipe) = (Vec::new(), redis::pipe());
        for name in texts(found) {
            if let Some((list, _)) = name.split_once(' ')
                && wanted(list)
            {
                pipe.cmd("ZCARD").arg(self.keys.backlog(&name));
                lists.push(list.to_owned());
            }
        }
        if lists.is_empty() {
            return Ok((Vec::new(), last));
        }
        let counts = self.seen_all("inspect", &mut pipe).await?;
        Ok((lists.into_iter().zip(counts).collect(), last))
    }

    /// Calls `found` for each job in a sorted set of ids, at most `most`, with its queue and whether it has run. Returns
    /// whether there may be more.
    async fn walk(
        &self,
        set: &str,
        most: usize,
        mut found: impl FnMut(&str, bool),
    ) -> Result<bool, Error> {
        let mut from = 0;
        loop {
            if from >= most {
                return Ok(true);
            }
            let mut range = redis::cmd("ZRANGE");
            range.arg(set).arg(from).arg(from + MAX_ITEMS - 1);
            let ids: Vec<Vec<u8>> = self.ask("depth", &range).await?;
            if ids.is_empty() {
                return Ok(false);
            }
            from += ids.len();
            let mut pipe = redis::pipe();
            pipe.ignore_errors();
            for id in texts(ids) {
                let key = self.keys.job_hash_key(&JobId::foreign(id));
                pipe.cmd("HMGET")
                    .arg(key)
                    .arg(field::QUEUE)
                    .arg(field::ATTEMPT);
            }
            type Row = (Option<String>, Option<u64>);
            let rows: Vec<RedisResult<Row>> = self.ask_all("inspect", &pipe).await?;
            for (of, attempt) in rows.into_iter().flatten() {
                if let Some(of) = of {
                    let ran = attempt.is_some_and(|n| n > 0);
                    found(JobKeys::without_priority(&of), ran);
                }
            }
        }
    }
}
