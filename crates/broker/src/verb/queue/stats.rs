//! stats: metrics of all queues, for dashboards. Changes nothing, and the cost of a call is bounded: unknown queues
//! are searched for in slices.

use meshwork_macros::boxed;
use std::collections::{BTreeMap, BTreeSet};

use meshwork_model::job::field;
use meshwork_model::name::JobId;
use meshwork_model::stored;
use redis::RedisResult;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::count_stale;
use crate::verb::inspect::jobs::{failed, glob_literal, texts};
use crate::verb::queue::server_stats::ServerStats;
use crate::verb::worker::workers::RegisteredWorker;
use crate::verb::{Fields, MAX_ITEMS, text};

/// Greatest number of queues in the metrics.
pub const MAX_QUEUES: usize = 10 * MAX_ITEMS;
/// Number of keys in each step of the search.
const STEP: usize = 1000;
/// Steps in a slice of the search: some ten milliseconds of a server's time.
const SLICE: usize = 20;
/// Steps of a whole search, for people who wait for it: ten million keys.
const WHOLE: usize = 10_000;
/// Greatest number of error kinds, and of outcomes of slots, for one queue; the scripts have fewer.
const MAX_KINDS: usize = 32;
/// Kind of the error of cancelled jobs, which the scripts count as `stopped`.
const CANCELLED: &str = "cancelled";

/// The known queues, and the position of the search for others. Keep it between calls.
#[derive(Debug, Clone, Default)]
pub struct KnownQueues {
    queues: BTreeSet<String>,
    /// Cursor of the next slice.
    next: u64,
    /// True if the search has covered all keys.
    whole: bool,
}

/// Metrics of one queue, with one list for each priority. Scripts maintain the counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// List of the queue.
    pub queue: String,
    /// Number of ids in it.
    pub waiting: u64,
    /// Number of jobs in backlogs of concurrency keys, of the first 10,000 keys.
    pub set_aside: u64,
    /// Time for which the oldest of them has been ready to run, in milliseconds.
    pub oldest_ms: Option<u64>,
    /// Number of workers that wait on it.
    pub listeners: u64,
    /// Number of jobs stored for it, by all clients.
    pub created: u64,
    /// Number of those that foreign clients stored. Each counts when a script first takes charge of it.
    pub created_foreign: u64,
    /// Number of started runs.
    pub started: u64,
    /// Number of jobs that finished.
    pub finished: u64,
    /// Number of jobs that failed.
    pub failed: u64,
    /// Number of failed runs with a retry.
    pub retried: u64,
    /// Number of jobs that became dead letters.
    pub dead: u64,
    /// Number of leases that expired.
    pub lost: u64,
    /// Number of released jobs.
    pub released: u64,
    /// Number of ended jobs that were queued again by hand.
    pub requeued: u64,
    /// Total duration of all runs, in milliseconds.
    pub run_ms: u64,
    /// Time of the last claim of a job from it, in milliseconds since 1970.
    pub claimed_at: Option<u64>,
    /// Number of failed jobs, by kind of error.
    pub errors: BTreeMap<String, u64>,
    /// Number of schedules' slots whose jobs belong here, by outcome: `ran`, `skipped` because the previous job had
    /// not ended, or `refused`.
    pub slots: BTreeMap<String, u64>,
    /// Total lateness of those that ran, in milliseconds.
    pub slots_late_ms: u64,
}

/// Metrics of a namespace.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Time of the server, in milliseconds since 1970.
    pub now_ms: u64,
    /// Metrics of queues, by name.
    pub queues: Vec<QueueStats>,
    /// Number of running jobs.
    pub running: u64,
    /// Number of delayed jobs.
    pub delayed: u64,
    /// Time for which the first of them has been due, in milliseconds; `None` if none is due.
    pub overdue_ms: Option<u64>,
    /// Number of schedules.
    pub schedules: u64,
    /// Next slot of any schedule, in milliseconds since 1970, if there is one.
    pub next_slot_ms: Option<u64>,
    /// Number of dead letters.
    pub dead: u64,
    /// Number of ended jobs that are kept.
    pub ended: u64,
    /// Number of suspected orphans ([`Broker::list_stale`]).
    pub stale: u64,
    /// Registrations of Meshwork's workers, up to 10,000.
    pub workers: Vec<RegisteredWorker>,
    /// True if queues may be missing: the search continues with the next call, or there are too many.
    pub partial: bool,
    /// Metrics of the server itself.
    pub server: ServerStats,
}

/// Stored data of one queue.
type Row = (
    RedisResult<Fields>,
    RedisResult<u64>,
    RedisResult<Vec<Vec<u8>>>,
);

impl Broker {
    /// Returns the metrics of all known queues, after one slice of the search for others: about 20 steps of a
    /// thousand keys. With `whole` the search first covers all keys.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn stats(&self, known: &mut KnownQueues, whole: bool) -> Result<Stats, Error> {
        self.search(known, if whole { WHOLE } else { SLICE })
            .await?;
        self.stats_of_known(known).await
    }

    /// Returns the metrics of all known queues, without a search for others. Queues that workers listen to become known.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn stats_of_known(&self, known: &mut KnownQueues) -> Result<Stats, Error> {
        let mut listeners = BTreeMap::new();
        for queue in self.or_nothing(self.listened().await)? {
            *listeners.entry(queue).or_insert(0) += 1;
        }
        let too_many = known.add(listeners.keys().cloned());
        let now_ms = self.now().await?;
        let mut stats = Stats {
            now_ms,
            partial: too_many || !known.whole,
            workers: self.or_nothing(self.live_workers(now_ms, "").await)?,
            server: self.server_stats().await?,
            ..Stats::default()
        };
        self.totals(&mut stats).await?;
        let aside = self.or_nothing(self.set_aside().await)?;
        known.add(aside.keys().cloned());
        let names: Vec<_> = known.queues.iter().cloned().collect();
        for chunk in names.chunks(MAX_ITEMS) {
            for mut figures in self.figures(chunk, now_ms).await? {
                let queue = &figures.queue;
                figures.listeners = listeners.get(queue).copied().unwrap_or(0);
                figures.set_aside = aside.get(queue).copied().unwrap_or(0);
                if figures.is_used() || figures.listeners > 0 {
                    stats.queues.push(figures);
                } else {
                    known.queues.remove(queue);
                }
            }
        }
        Ok(stats)
    }

    /// Continues the search for metrics, and for queues without workers, by a few steps.
    async fn search(&self, known: &mut KnownQueues, steps: usize) -> Result<(), Error> {
        // Matches `hero:q:work:type:…` and `hero:meta:queue:stats:…`, but no job.
        let namespace = glob_literal(&self.keys.prefix());
        let (work, figures) = (self.keys.work_prefix(), self.keys.queue_stats_prefix());
        for _ in 0..steps {
            let mut scan = redis::cmd("SCAN");
            scan.arg(known.next)
                .arg("MATCH")
                .arg(format!("{namespace}[mq]*e:*"));
            scan.arg("COUNT").arg(STEP);
            let (next, found): (u64, Vec<Vec<u8>>) = self.ask("stats", &scan).await?;
            let queue = |key: String| match key.starts_with(&figures) {
                true => self.keys.queue_of_stats(&key),
                false => Some(key).filter(|key| key.starts_with(&work)),
            };
            known.add(texts(found).filter_map(queue));
            known.next = next;
            if next == 0 {
                known.whole = true;
                break;
            }
        }
        Ok(())
    }

    /// Continues the search by a slice. Returns true if it has covered all keys.
    pub(super) async fn search_some(&self, known: &mut KnownQueues) -> Result<bool, Error> {
        self.search(known, SLICE).await?;
        Ok(known.whole)
    }

    /// Returns the metrics of up to a thousand queues, in order.
    async fn figures(&self, queues: &[String], now_ms: u64) -> Result<Vec<QueueStats>, Error> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for queue in queues {
            pipe.cmd("HGETALL").arg(self.keys.queue_stats_key(queue));
            pipe.cmd("LLEN").arg(queue);
            // Ids are claimed from the end.
            pipe.cmd("LRANGE").arg(queue).arg(-1).arg(-1);
        }
        let conn = &mut self.conn.clone();
        let rows: Vec<Row> = pipe.query_async(conn).await.map_err(failed)?;
        let mut all = Vec::with_capacity(queues.len());
        let mut oldest = Vec::new();
        for (queue, (fields, waiting, last)) in queues.iter().zip(rows) {
            let mut figures = QueueStats::read(queue, fields.unwrap_or_default());
            figures.waiting = waiting.unwrap_or_default();
            if let Some(id) = last.ok().and_then(|mut ids| ids.pop()) {
                oldest.push((all.len(), JobId::foreign(text(id))));
            }
            all.push(figures);
        }
        for ((at, _), ready) in oldest.iter().zip(self.ready(&oldest).await?) {
            all[*at].oldest_ms = ready.map(|ready| now_ms.saturating_sub(ready));
        }
        Ok(all)
    }

    /// Returns the sizes of backlogs, by queue, of the first [`MAX_QUEUES`] keys.
    async fn set_aside(&self) -> Result<BTreeMap<String, u64>, Error> {
        let mut aside = BTreeMap::new();
        for from in (0..MAX_QUEUES).step_by(MAX_ITEMS) {
            let (counts, last) = self.aside_page(from, |_| true).await?;
            for (queue, count) in counts {
                *aside.entry(queue).or_default() += count as u64;
            }
            if last {
                break;
            }
        }
        Ok(aside)
    }

    /// Returns the times from which jobs were ready to run, in milliseconds since 1970, if their records have them.
    async fn ready(&self, jobs: &[(usize, JobId)]) -> Result<Vec<Option<u64>>, Error> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for (_, id) in jobs {
            pipe.cmd("HMGET").arg(self.keys.job_hash_key(id));
            pipe.arg(field::UPDATED_AT).arg(field::UPDATED_MS);
            pipe.arg(field::CREATED_AT).arg(field::CREATED_MS);
        }
        let conn = &mut self.conn.clone();
        let rows: Vec<RedisResult<Vec<Option<Vec<u8>>>>> =
            pipe.query_async(conn).await.map_err(failed)?;
        let ready = |row: RedisResult<Vec<Option<Vec<u8>>>>| {
            let texts: Vec<_> = row
                .unwrap_or_default()
                .into_iter()
                .map(|of| of.map(text))
                .collect();
            let time = |pair: &[Option<String>]| {
                let [at, ms] = pair else { return None };
                stored::time(&self.keys, at.as_deref()?, ms.as_deref())
            };
            texts.chunks(2).find_map(time)
        };
        Ok(rows.into_iter().map(ready).collect())
    }

    /// Adds the numbers of the whole namespace.
    async fn totals(&self, stats: &mut Stats) -> Result<(), Error> {
        let keys = &self.keys;
        let (delayed, schedules) = (keys.delayed(), keys.schedules());
        let mut counts = redis::pipe();
        for set in [
            &keys.lease(),
            &delayed,
            &keys.dead(),
            &keys.ended(),
            &schedules,
        ] {
            counts.cmd("ZCARD").arg(set);
        }
        let counts = self.seen_all("inspect", &mut counts).await?;
        for (number, count) in [
            &mut stats.running,
            &mut stats.delayed,
            &mut stats.dead,
            &mut stats.ended,
            &mut stats.schedules,
        ]
        .into_iter()
        .zip(counts)
        {
            *number = count;
        }
        let stale = count_stale(&self.conn, keys, stats.now_ms).await;
        let of_stale = |source| Error::of_keys("inspect", &[keys.stale()], source);
        stats.stale = self.or_nothing(stale.map_err(of_stale))?;
        let mut first = redis::pipe();
        for set in [&delayed, &schedules] {
            let range = first.cmd("ZRANGE").arg(set).arg(0).arg(0);
            range.arg("WITHSCORES");
        }
        let first: Vec<Vec<(Vec<u8>, f64)>> = self.seen_all("inspect", &mut first).await?;
        // Infinity means never.
        let mut first = first.iter().map(|first| {
            let due = first.first().map(|(_, due)| *due);
            due.filter(|due| due.is_finite()).map(|due| due as u64)
        });
        let due = first.next().flatten();
        stats.overdue_ms = due.and_then(|due| stats.now_ms.checked_sub(due));
        stats.next_slot_ms = first.next().flatten();
        Ok(())
    }
}

impl KnownQueues {
    /// Adds queues that are known from elsewhere, up to [`MAX_QUEUES`] in all.
    pub fn extend(&mut self, queues: impl IntoIterator<Item = String>) {
        self.add(queues);
    }

    /// Returns all of them.
    pub(super) fn names(&self) -> Vec<String> {
        self.queues.iter().cloned().collect()
    }

    /// Adds queues. Returns whether there are too many.
    fn add(&mut self, queues: impl IntoIterator<Item = String>) -> bool {
        for queue in queues {
            if self.queues.len() >= MAX_QUEUES && !self.queues.contains(&queue) {
                return true;
            }
            self.queues.insert(queue);
        }
        false
    }
}

impl QueueStats {
    /// Reads the hash of a queue's metrics; values that are not numbers are ignored.
    pub(super) fn read(queue: &str, fields: Fields) -> Self {
        let mut figures = Self {
            queue: queue.to_owned(),
            ..Self::default()
        };
        for (name, value) in fields {
            let Ok(number) = text(value).trim().parse::<u64>() else {
                continue;
            };
            let name = text(name);
            match name.as_str() {
                "created" => figures.created = figures.created.saturating_add(number),
                "created:foreign" => {
                    figures.created = figures.created.saturating_add(number);
                    figures.created_foreign = number;
                }
                "started" => figures.started = number,
                "finished" => figures.finished = number,
                "failed" => figures.failed = number,
                "retried" => figures.retried = number,
                "dead" => figures.dead = number,
                "lost" => figures.lost = number,
                "released" => figures.released = number,
                "requeued" => figures.requeued = number,
                "run_ms" => figures.run_ms = number,
                "claimed_at" => figures.claimed_at = Some(number),
                "slots_late_ms" => figures.slots_late_ms = number,
                other => {
                    let (words, word) = match other.split_once(':') {
                        Some(("error", "stopped")) => (&mut figures.errors, CANCELLED),
                        Some(("error", kind)) => (&mut figures.errors, kind),
                        Some(("slots", outcome)) => (&mut figures.slots, outcome),
                        _ => continue,
                    };
                    if words.len() < MAX_KINDS {
                        words.insert(word.to_owned(), number);
                    }
                }
            }
        }
        figures
    }

    /// Returns the number of cancelled jobs.
    #[must_use]
    pub fn cancelled(&self) -> u64 {
        self.errors.get(CANCELLED).copied().unwrap_or(0)
    }

    /// Returns the number of runs that ended with a report.
    #[must_use]
    pub fn ended_runs(&self) -> u64 {
        self.finished + self.failed + self.retried
    }

    /// Returns whether the queue was ever used: it has counters or jobs. Workers that listen to it are not enough,
    /// because every worker listens to several queues.
    #[must_use]
    pub fn is_used(&self) -> bool {
        let unused = Self {
            queue: self.queue.clone(),
            listeners: self.listeners,
            ..Self::default()
        };
        *self != unused
    }
}
