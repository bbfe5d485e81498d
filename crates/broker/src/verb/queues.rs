//! queues: what waits where, what runs from there, and who listens. It changes nothing.

use std::collections::{BTreeMap, HashMap};

use meshwork_model::name::JobId;
use meshwork_model::queue::QueueSettings;
use redis::RedisResult;

use super::inspect::{SCAN_COUNT, failed, glob_literal, texts};
use super::{MAX_ITEMS, Settings};
use crate::{Broker, Error};

/// Listeners looked at in one call.
const LISTENERS: usize = 10 * MAX_ITEMS;

/// Running jobs looked at for a list of queues: beyond, nobody reads the numbers one by one.
const MAX_LISTED: usize = 10 * MAX_ITEMS;

/// A queue and how much waits in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueInfo {
    /// The list.
    pub queue: String,
    /// Ids in it.
    pub waiting: usize,
    /// Workers that listen to it.
    pub listeners: usize,
    /// Jobs from it that run now.
    pub running: usize,
    /// How many it may hold before it takes no more; see [`Broker::limit_queue`].
    pub limit: Option<u64>,
    /// Jobs of it that are set aside until it is the turn of their key.
    pub set_aside: usize,
    /// How its queue is set, for all priorities together; nothing where nothing is.
    pub settings: Option<QueueSettings>,
    /// Whether it is one of the lists that Hero's protocol replaces.
    pub legacy: bool,
}

/// What there is of all queues.
struct Seen {
    running: HashMap<String, usize>,
    aside: BTreeMap<String, usize>,
    settings: Settings,
}

impl Broker {
    /// All work queues that hold something, are listened to, or are paused, drained or limited, by name; those
    /// of old clients, too.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn queues(&self) -> Result<Vec<QueueInfo>, Error> {
        let mut queues = BTreeMap::new();
        for queue in self.listened().await? {
            *queues.entry(queue).or_insert(0) += 1;
        }
        for queue in self.lists().await? {
            queues.entry(queue).or_insert(0);
        }
        let seen = Seen {
            running: self.origins().await?,
            aside: self.aside(None).await?,
            settings: self.settings().await?,
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
        let lengths: Vec<RedisResult<usize>> = pipe
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed)?;
        let info = |((queue, listeners), waiting): ((String, usize), RedisResult<usize>)| {
            self.info(queue, listeners, waiting.unwrap_or(0), &seen)
        };
        Ok(queues.into_iter().zip(lengths).map(info).collect())
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

    /// Whether a worker listens to `queue` now.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn is_listened(&self, queue: &str) -> Result<bool, Error> {
        Ok(self
            .listened()
            .await?
            .iter()
            .any(|listened| listened == queue))
    }

    /// All lists that ids of jobs are pushed to.
    pub(super) async fn lists(&self) -> Result<Vec<String>, Error> {
        // Old lists stand among the job hashes, which only their kind tells apart.
        let of_work = [
            self.keys.work_prefix(),
            self.keys.legacy_work_prefix(),
            self.keys.job_prefix(),
        ];
        let all = format!("{}*", glob_literal(&self.keys.prefix()));
        let (mut lists, mut from) = (Vec::new(), 0_u64);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(from).arg("MATCH").arg(&all);
            scan.arg("COUNT").arg(SCAN_COUNT).arg("TYPE").arg("list");
            let (next, found): (u64, Vec<Vec<u8>>) = self.ask("queues", &scan).await?;
            let is_of_work = |list: &String| of_work.iter().any(|prefix| list.starts_with(prefix));
            lists.extend(texts(found).filter(is_of_work));
            from = next;
            if from == 0 {
                return Ok(lists);
            }
        }
    }

    /// How many of the running jobs, the first [`MAX_LISTED`], were claimed from which queue.
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

    /// The queue of every listener that is alive, once per listener.
    pub(super) async fn listened(&self) -> Result<Vec<String>, Error> {
        let now = self.now().await?;
        let mut queues = Vec::new();
        loop {
            let mut range = redis::cmd("ZRANGEBYSCORE");
            range
                .arg(self.keys.feeds())
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
