//! stats: the figures of all queues for dashboards. It changes nothing, and what one call costs has a bound:
//! queues that are not known yet are searched for in slices.

use std::collections::{BTreeMap, BTreeSet};

use meshwork_model::job::field;
use meshwork_model::name::JobId;
use meshwork_model::stored;
use redis::RedisResult;

use super::actors::Actor;
use super::count_stale;
use super::inspect::{failed, glob_literal, texts};
use super::{Fields, MAX_ITEMS, text};
use crate::{Broker, Error};

/// The most queues that are told of: ten per call of a thousand; who has more reads their figures elsewhere.
pub const MAX_QUEUES: usize = 10 * MAX_ITEMS;
/// Keys looked at per step of the search.
const STEP: usize = 1000;
/// Steps of one slice of the search: some ten milliseconds of a server's time.
const SLICE: usize = 20;
/// Steps of a whole search, which is for people who wait for it: ten million keys.
const WHOLE: usize = 10_000;
/// The most kinds of errors, and outcomes of slots, told of one queue; the scripts know fewer.
const MAX_KINDS: usize = 32;

/// The queues that are known, and how far the search for others is. Keep it between calls.
#[derive(Debug, Clone, Default)]
pub struct KnownQueues {
    queues: BTreeSet<String>,
    /// Where the next slice begins.
    next: u64,
    /// Whether the search has been all around.
    whole: bool,
}

/// The figures of one queue: one list, so those of each priority apart. What is counted is counted since the
/// figures began, by the scripts that change jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// The list.
    pub queue: String,
    /// Ids in it.
    pub waiting: u64,
    /// Jobs that are set aside until it is the turn of their key, of the first 10,000 keys.
    pub set_aside: u64,
    /// For how many milliseconds the oldest of them has been ready to run.
    pub oldest_ms: Option<u64>,
    /// Workers that listen to it.
    pub listeners: u64,
    /// Jobs stored for it.
    pub created: u64,
    /// Runs begun.
    pub started: u64,
    /// Jobs that ended well.
    pub finished: u64,
    /// Jobs that ended in error.
    pub failed: u64,
    /// Runs that failed and are to be repeated.
    pub retried: u64,
    /// Jobs that became dead letters.
    pub dead: u64,
    /// Leases that ended without a report.
    pub lost: u64,
    /// Jobs that workers handed back unrun.
    pub released: u64,
    /// Jobs that ended and were put back by hand.
    pub requeued: u64,
    /// How long all runs took together, in milliseconds.
    pub run_ms: u64,
    /// When a claim last brought a job of it: milliseconds since 1970.
    pub claimed_at: Option<u64>,
    /// Jobs that ended in error, by the kind of error.
    pub errors: BTreeMap<String, u64>,
    /// Slots of schedules whose jobs belong here, by what became of them: `ran`, `skipped` since the job before
    /// had not ended, or `refused` for good.
    pub slots: BTreeMap<String, u64>,
    /// How late those that ran were together, in milliseconds.
    pub slots_late_ms: u64,
}

/// The figures of a namespace.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The server's time: milliseconds since 1970.
    pub now_ms: u64,
    /// By name.
    pub queues: Vec<QueueStats>,
    /// Jobs that run.
    pub running: u64,
    /// Jobs that wait for a time.
    pub delayed: u64,
    /// For how many milliseconds the first of these has been due; none if none is due.
    pub overdue_ms: Option<u64>,
    /// Schedules that there are.
    pub schedules: u64,
    /// When the next slot of a schedule is due, in milliseconds since 1970; none if none ever is.
    pub next_slot_ms: Option<u64>,
    /// Dead letters that are kept.
    pub dead: u64,
    /// Ended jobs that are kept.
    pub ended: u64,
    /// Suspected orphans ([`Broker::stale`]).
    pub stale: u64,
    /// Our workers that are there, up to 10,000.
    pub workers: Vec<Actor>,
    /// Whether queues may be missing: the search goes on with the next call, or there are too many.
    pub partial: bool,
}

/// What stands in the store about one queue, as it comes.
type Row = (
    RedisResult<Fields>,
    RedisResult<u64>,
    RedisResult<Vec<Vec<u8>>>,
);

impl Broker {
    /// The figures of all queues that are known, after one slice of the search for others: at most some 20
    /// steps of a thousand keys. With `whole` the search goes all around first.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn stats(&self, known: &mut KnownQueues, whole: bool) -> Result<Stats, Error> {
        self.search(known, if whole { WHOLE } else { SLICE })
            .await?;
        let mut listeners = BTreeMap::new();
        for queue in self.listened().await? {
            *listeners.entry(queue).or_insert(0) += 1;
        }
        let too_many = known.add(listeners.keys().cloned());
        let now_ms = self.now().await?;
        let mut stats = Stats {
            now_ms,
            partial: too_many || !known.whole,
            workers: self.live_actors(now_ms, "").await?,
            ..Stats::default()
        };
        self.totals(&mut stats).await?;
        let aside = self.set_aside().await?;
        known.add(aside.keys().cloned());
        let names: Vec<_> = known.queues.iter().cloned().collect();
        for chunk in names.chunks(MAX_ITEMS) {
            for mut figures in self.figures(chunk, now_ms).await? {
                let queue = &figures.queue;
                figures.listeners = listeners.get(queue).copied().unwrap_or(0);
                figures.set_aside = aside.get(queue).copied().unwrap_or(0);
                if figures.is_there() {
                    stats.queues.push(figures);
                } else {
                    known.queues.remove(queue);
                }
            }
        }
        Ok(stats)
    }

    /// Looks for figures and queues that nobody listens to, a few steps on from where it was.
    async fn search(&self, known: &mut KnownQueues, steps: usize) -> Result<(), Error> {
        // `hero:q:work:type:…` and `hero:meta:queue:stats:…`, but no job.
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

    /// What stands under the names of up to a thousand queues, in order.
    async fn figures(&self, queues: &[String], now_ms: u64) -> Result<Vec<QueueStats>, Error> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for queue in queues {
            pipe.cmd("HGETALL").arg(self.keys.queue_stats_key(queue));
            pipe.cmd("LLEN").arg(queue);
            // Ids are taken off the end.
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

    /// How many jobs are set aside, by queue, of the first [`MAX_QUEUES`] keys.
    async fn set_aside(&self) -> Result<BTreeMap<String, u64>, Error> {
        let mut aside = BTreeMap::new();
        for from in (0..MAX_QUEUES).step_by(MAX_ITEMS) {
            let (counts, last) = self.aside_page(from, |_| true).await?;
            for (queue, count) in counts {
                *aside.entry(queue).or_default() += count.unwrap_or(0) as u64;
            }
            if last {
                break;
            }
        }
        Ok(aside)
    }

    /// Since when jobs are ready to run, in milliseconds since 1970, as far as their records tell it.
    async fn ready(&self, jobs: &[(usize, JobId)]) -> Result<Vec<Option<u64>>, Error> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for (_, id) in jobs {
            pipe.cmd("HMGET").arg(self.keys.job_hash_key(id));
            pipe.arg(field::UPDATED_AT).arg(field::CREATED_AT);
        }
        let conn = &mut self.conn.clone();
        let rows: Vec<RedisResult<Vec<Option<Vec<u8>>>>> =
            pipe.query_async(conn).await.map_err(failed)?;
        let ready = |row: RedisResult<Vec<Option<Vec<u8>>>>| {
            let times = row.unwrap_or_default().into_iter().flatten();
            times
                .map(text)
                .find_map(|time| stored::time(&self.keys, &time))
        };
        Ok(rows.into_iter().map(ready).collect())
    }

    /// What is counted for the whole namespace.
    async fn totals(&self, stats: &mut Stats) -> Result<(), Error> {
        let mut pipe = redis::pipe();
        let keys = &self.keys;
        let (delayed, schedules) = (keys.delayed(), keys.schedules());
        for set in [
            &keys.lease(),
            &delayed,
            &keys.dead(),
            &keys.ended(),
            &schedules,
        ] {
            pipe.cmd("ZCARD").arg(set);
        }
        for set in [&delayed, &schedules] {
            let range = pipe.cmd("ZRANGE").arg(set).arg(0).arg(0);
            range.arg("WITHSCORES");
        }
        type First = Vec<(Vec<u8>, f64)>;
        let conn = &mut self.conn.clone();
        let (counts, [job, slot]): ([u64; 5], [First; 2]) = {
            let (a, b, c, d, e, job, slot) = pipe.query_async(conn).await.map_err(failed)?;
            ([a, b, c, d, e], [job, slot])
        };
        [
            stats.running,
            stats.delayed,
            stats.dead,
            stats.ended,
            stats.schedules,
        ] = counts;
        let stale = count_stale(&self.conn, keys, stats.now_ms).await;
        stats.stale = stale.map_err(failed)?;
        // What is never due stands at infinity.
        let first = |first: First| first.first().map(|(_, due)| *due).filter(|d| d.is_finite());
        let due = first(job).map(|due| due as u64);
        stats.overdue_ms = due.and_then(|due| stats.now_ms.checked_sub(due));
        stats.next_slot_ms = first(slot).map(|slot| slot as u64);
        Ok(())
    }
}

impl KnownQueues {
    /// Knows these too. Whether there are too many.
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
    /// Reads the hash of a queue's figures; what is no number is passed over.
    fn read(queue: &str, fields: Fields) -> Self {
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
                "created" => figures.created = number,
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

    /// Jobs that were stopped.
    #[must_use]
    pub fn stopped(&self) -> u64 {
        self.errors.get("stopped").copied().unwrap_or(0)
    }

    /// Runs that have ended in a report.
    #[must_use]
    pub fn ended_runs(&self) -> u64 {
        self.finished + self.failed + self.retried
    }

    /// Whether there is anything of it but its name.
    fn is_there(&self) -> bool {
        let nothing = Self {
            queue: self.queue.clone(),
            ..Self::default()
        };
        *self != nothing
    }
}
