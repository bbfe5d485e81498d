//! queues: lists queues with their waiting and running jobs and their workers. Changes nothing.

use meshwork_macros::boxed;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use meshwork_model::name::JobId;
use meshwork_model::queue::QueueSettings;
use redis::RedisResult;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::inspect::jobs::{SCAN_COUNT, glob_literal, texts};
use crate::verb::{MAX_ITEMS, Settings};

/// Number of prefetch registrations in a call.
const LISTENERS: usize = 10 * MAX_ITEMS;

/// Number of keys that are scanned for a list of queues: some 10 ms of the server's time.
const MAX_SCANNED: usize = 10_000;

/// Number of running jobs that are read for a list of queues.
const MAX_LISTED: usize = 10 * MAX_ITEMS;

/// A queue and its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueInfo {
    /// List of the queue.
    pub queue: String,
    /// Number of ids in it.
    pub waiting: usize,
    /// Number of workers that wait on it.
    pub listeners: usize,
    /// Number of running jobs from it.
    pub running: usize,
    /// Greatest number of ids in it; see [`Broker::set_max_length`].
    pub limit: Option<u64>,
    /// Number of its jobs in backlogs of concurrency keys.
    pub set_aside: usize,
    /// Settings of the queue, for all priorities together; `None` if nothing is set.
    pub settings: Option<QueueSettings>,
    /// True for a legacy list.
    pub legacy: bool,
}

impl QueueInfo {
    /// Returns false for a queue that had jobs once.
    fn is_in_use(&self) -> bool {
        self.waiting + self.listeners + self.running + self.set_aside > 0 || self.settings.is_some()
    }
}

/// Data of all queues.
struct Seen {
    running: HashMap<String, usize>,
    aside: BTreeMap<String, usize>,
    settings: Settings,
}

impl Broker {
    /// Returns all queues, with legacy lists, that have ids or workers, or are paused, drained or limited, by name.
    ///
    /// In a database with more than 10,000 keys, a queue to which only foreign clients push, and which no worker of
    /// Meshwork serves, is missing until the next scan for orphans: a worker begins one each minute. A legacy list is
    /// missing there if no worker serves it.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn queues(&self) -> Result<Vec<QueueInfo>, Error> {
        let mut queues = BTreeMap::new();
        for queue in self.or_nothing(self.listened().await)? {
            *queues.entry(queue).or_insert(0) += 1;
        }
        for queue in self.used_lists().await? {
            queues.entry(queue).or_insert(0);
        }
        let seen = Seen {
            running: self.or_nothing(self.origins().await)?,
            aside: self.or_nothing(self.aside(None).await)?,
            settings: self.or_nothing(self.settings().await)?,
        };
        for queue in seen.aside.keys().chain(seen.settings.queues.keys()) {
            queues.entry(queue.clone()).or_insert(0);
        }
        if queues.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for queue in queues.keys() {
            pipe.cmd("LLEN").arg(queue);
        }
        let lengths: Vec<RedisResult<usize>> = self.ask_all("inspect", &pipe).await?;
        let info = |((queue, listeners), waiting): ((String, usize), RedisResult<usize>)| {
            self.info(queue, listeners, waiting.unwrap_or(0), &seen)
        };
        let all = queues.into_iter().zip(lengths).map(info);
        Ok(all.filter(QueueInfo::is_in_use).collect())
    }

    fn info(&self, queue: String, listeners: usize, waiting: usize, seen: &Seen) -> QueueInfo {
        let legacy = !queue.starts_with(&self.keys.work_prefix());
        QueueInfo {
            running: seen.running.get(&queue).copied().unwrap_or(0),
            set_aside: seen.aside.get(&queue).copied().unwrap_or(0),
            settings: seen.settings.of(&queue).cloned(),
            limit: seen.settings.limits.of(&queue).filter(|_| !legacy),
            queue,
            waiting,
            listeners,
            legacy,
        }
    }

    /// Returns whether a worker waits on `queue`.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn is_listened(&self, queue: &str) -> Result<bool, Error> {
        Ok(self
            .listened()
            .await?
            .iter()
            .any(|listened| listened == queue))
    }

    /// Returns all lists to which ids of jobs are pushed.
    pub(crate) async fn lists(&self) -> Result<Vec<String>, Error> {
        Ok(self.scan_lists(usize::MAX).await?.0)
    }

    /// Returns the lists among the first [`MAX_SCANNED`] keys, with those that pushes and earlier scans have noted if there
    /// are more keys.
    async fn used_lists(&self) -> Result<BTreeSet<String>, Error> {
        let (lists, is_whole) = self.scan_lists(MAX_SCANNED).await?;
        let mut lists = BTreeSet::from_iter(lists);
        if is_whole {
            return Ok(lists);
        }
        let mut from = 0;
        loop {
            let some = self.noted_queues("queues", from, LISTENERS).await?;
            let is_last = some.len() < LISTENERS;
            lists.extend(some);
            from += LISTENERS;
            if is_last {
                return Ok(lists);
            }
        }
    }

    /// Returns the lists among the first keys, about `most`, and whether there are no more keys.
    async fn scan_lists(&self, most: usize) -> Result<(Vec<String>, bool), Error> {
        // Legacy lists have the same prefix as hashes of jobs; only their type differs.
        let of_work = [
            self.keys.work_prefix(),
            self.keys.legacy_work_prefix(),
            self.keys.job_prefix(),
        ];
        let all = format!("{}*", glob_literal(&self.keys.prefix()));
        let (mut lists, mut from, mut scanned) = (Vec::new(), 0_u64, 0);
        while scanned < most {
            let mut scan = redis::cmd("SCAN");
            scan.arg(from).arg("MATCH").arg(&all);
            scan.arg("COUNT").arg(SCAN_COUNT).arg("TYPE").arg("list");
            let (next, found): (u64, Vec<Vec<u8>>) = self.ask("queues", &scan).await?;
            let is_of_work = |list: &String| of_work.iter().any(|prefix| list.starts_with(prefix));
            lists.extend(texts(found).filter(is_of_work));
            from = next;
            if from == 0 {
                return Ok((lists, true));
            }
            scanned += SCAN_COUNT;
        }
        Ok((lists, false))
    }

    /// Returns the number of running jobs by queue, of the first [`MAX_LISTED`].
    async fn origins(&self) -> Result<HashMap<String, usize>, Error> {
        let mut range = redis::cmd("ZRANGE");
        range.arg(self.keys.lease()).arg(0).arg(MAX_LISTED - 1);
        let ids: Vec<Vec<u8>> = self.ask("queues", &range).await?;
        let ids: Vec<_> = texts(ids).map(JobId::foreign).collect();
        let mut origins = HashMap::new();
        for chunk in ids.chunks(MAX_ITEMS) {
            let jobs = self.summaries(chunk).await?;
            for queue in jobs.into_iter().filter_map(|job| job?.queue) {
                *origins.entry(queue).or_insert(0) += 1;
            }
        }
        Ok(origins)
    }

    /// Returns the queue of each prefetch registration of a live worker.
    pub(crate) async fn listened(&self) -> Result<Vec<String>, Error> {
        let now = self.now().await?;
        let mut queues = Vec::new();
        loop {
            let mut range = redis::cmd("ZRANGEBYSCORE");
            range
                .arg(self.keys.prefetch_registry())
                .arg(format!("({now}"))
                .arg("+inf");
            range.arg("LIMIT").arg(queues.len()).arg(LISTENERS);
            let members: Vec<String> = self.ask("queues", &range).await?;
            let last = members.len() < LISTENERS;
            let queue = |member: String| match member.split_once(' ') {
                Some((_, queue)) => queue.to_owned(),
                None => member,
            };
            queues.extend(members.into_iter().map(queue));
            if last {
                return Ok(queues);
            }
        }
    }
}
