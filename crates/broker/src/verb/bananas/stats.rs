//! stats: metrics of all routes, for dashboards. It changes nothing, and the cost of a call is bounded. It covers the
//! routes that Meshwork's workers serve or have served, and those to which Meshwork's clients have submitted.

use meshwork_macros::boxed;
use std::collections::BTreeMap;

use meshwork_model::bananas::Record;
use meshwork_model::name::RoutingKey;
use meshwork_model::route::Priority;
use redis::RedisResult;

use super::Bananas;
use super::inspect::failed;
use crate::error::Error;
use crate::verb::{Fields, MAX_ITEMS, MAX_QUEUES, text};

/// Greatest length of a record that is read for its age, in bytes.
const MOST_BYTES: usize = 64 * 1024;

/// Metrics of one priority of a route. Meshwork's scripts maintain the counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// Waiting ids of all clients.
    pub waiting: u64,
    /// Age of the record of the oldest one, in milliseconds, if it has a time.
    pub oldest_ms: Option<u64>,
    /// Jobs that Meshwork's clients and schedules stored.
    pub created: u64,
    /// Runs that Meshwork's workers started.
    pub started: u64,
    /// Jobs that completed.
    pub finished: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Failed runs with a retry.
    pub retried: u64,
    /// Jobs that became dead letters: failed ones, and entries without a record.
    pub dead: u64,
    /// Leases that expired.
    pub lost: u64,
    /// Jobs that Meshwork's workers claimed and did not run: released, moved to the list of their route, or completed
    /// before.
    pub released: u64,
    /// Total duration of all runs, in milliseconds.
    pub run_ms: u64,
}

/// Metrics of one deployment of Bananas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// By route and priority.
    pub places: BTreeMap<(RoutingKey, Priority), QueueStats>,
    /// Jobs that Meshwork's workers run, by route.
    pub running: BTreeMap<RoutingKey, u64>,
    /// Number of delayed jobs.
    pub scheduled: u64,
    /// Number of jobs that any worker runs, with those that dead workers left.
    pub processing: u64,
    /// Number of dead letters.
    pub dead: u64,
}

/// Metrics by list.
type Lists = BTreeMap<String, QueueStats>;

impl Bananas {
    /// Returns the metrics of up to [`MAX_QUEUES`] lists, as described above.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn stats(&self) -> Result<Stats, Error> {
        let now_ms = self.clock.now(&self.conn).await?;
        let mut lists = self.counted().await?;
        let known = self.keys.lists(&self.served().await?).into_iter();
        let plain = Priority::ALL.map(|priority| self.keys.plain(priority));
        for list in known.chain(plain) {
            lists.entry(list).or_default();
        }
        let mut stats = Stats::default();
        let mut lists: Vec<_> = lists.into_iter().take(MAX_QUEUES).collect();
        for some in lists.chunks_mut(MAX_ITEMS) {
            self.waiting(some, now_ms).await?;
        }
        for (list, figures) in lists {
            if let Some((route, priority)) = self.keys.parse_list(&list) {
                stats.running.entry(route.clone()).or_default();
                stats
                    .places
                    .entry((route, priority))
                    .or_default()
                    .add(&figures);
            }
        }
        self.totals(&mut stats).await?;
        Ok(stats)
    }

    /// Returns the counters by list: nine for each list that Meshwork's workers ever claimed from.
    async fn counted(&self) -> Result<Lists, Error> {
        let mut get = redis::cmd("HGETALL");
        get.arg(self.keys.stats());
        let fields: RedisResult<Fields> = get.query_async(&mut self.conn.clone()).await;
        let mut lists = Lists::new();
        // A key of another type has no counters.
        for (name, count) in match fields {
            Err(error) if error.code() == Some("WRONGTYPE") => Fields::new(),
            fields => fields.map_err(failed("stats"))?,
        } {
            let (name, count) = (text(name), text(count).parse());
            if let Some(((list, what), count)) = name.rsplit_once(' ').zip(count.ok()) {
                lists.entry(list.to_owned()).or_default().set(what, count);
            }
        }
        Ok(lists)
    }

    /// Returns the routes that Meshwork's workers serve.
    async fn served(&self) -> Result<Vec<RoutingKey>, Error> {
        let mut range = redis::cmd("ZRANGE");
        range.arg(self.keys.routes()).arg(0).arg(MAX_ITEMS - 1);
        let routes: Vec<Vec<u8>> = range
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed("stats"))?;
        let routes = routes.into_iter();
        Ok(routes
            .filter_map(|route| text(route).parse().ok())
            .collect())
    }

    /// Adds the number of waiting ids of each list, and the age of the next one. A key of another type is empty.
    async fn waiting(&self, lists: &mut [(String, QueueStats)], now_ms: u64) -> Result<(), Error> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for (list, _) in &*lists {
            pipe.cmd("LLEN").arg(list);
            // Ids are claimed from the end.
            pipe.cmd("LRANGE").arg(list).arg(-1).arg(-1);
        }
        type Row = (RedisResult<u64>, RedisResult<Vec<Vec<u8>>>);
        let conn = &mut self.conn.clone();
        let rows: Vec<Row> = pipe.query_async(conn).await.map_err(failed("stats"))?;
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        let mut queried = Vec::new();
        for (at, (waiting, oldest)) in rows.into_iter().enumerate() {
            lists[at].1.waiting = waiting.unwrap_or_default();
            if let Some(id) = oldest.ok().and_then(|mut ids| ids.pop()) {
                let record = self.keys.job(&text(id));
                pipe.cmd("GETRANGE").arg(record).arg(0).arg(MOST_BYTES - 1);
                queried.push(at);
            }
        }
        if queried.is_empty() {
            return Ok(());
        }
        let records: Vec<RedisResult<Vec<u8>>> =
            pipe.query_async(conn).await.map_err(failed("stats"))?;
        for (at, record) in queried.into_iter().zip(records) {
            let record = record.ok().and_then(|text| Record::read(&text).ok());
            let written = record.and_then(|record| record.written_ms());
            lists[at].1.oldest_ms = written.map(|written| now_ms.saturating_sub(written));
        }
        Ok(())
    }

    /// Adds the totals, and the counts by route.
    async fn totals(&self, stats: &mut Stats) -> Result<(), Error> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        pipe.cmd("ZCARD").arg(self.keys.scheduled());
        pipe.cmd("LLEN").arg(self.keys.processing());
        pipe.cmd("LLEN").arg(self.keys.dead());
        for route in stats.running.keys() {
            pipe.cmd("ZCARD").arg(self.keys.slots(route));
        }
        let conn = &mut self.conn.clone();
        let counts: Vec<RedisResult<u64>> =
            pipe.query_async(conn).await.map_err(failed("stats"))?;
        let mut counts = counts.into_iter().map(Result::unwrap_or_default);
        let mut next = || counts.next().unwrap_or_default();
        (stats.scheduled, stats.processing, stats.dead) = (next(), next(), next());
        for running in stats.running.values_mut() {
            *running = next();
        }
        Ok(())
    }
}

impl QueueStats {
    /// Sets the counter of this name in the scripts; unknown names are ignored.
    fn set(&mut self, what: &str, count: u64) {
        let field = match what {
            "created" => &mut self.created,
            "started" => &mut self.started,
            "finished" => &mut self.finished,
            "failed" => &mut self.failed,
            "retried" => &mut self.retried,
            "dead" => &mut self.dead,
            "lost" => &mut self.lost,
            "released" => &mut self.released,
            "run_ms" => &mut self.run_ms,
            _ => return,
        };
        *field = count;
    }

    /// Adds the metrics of another list of the same route and priority.
    fn add(&mut self, other: &Self) {
        self.waiting += other.waiting;
        self.oldest_ms = self.oldest_ms.max(other.oldest_ms);
        self.created += other.created;
        self.started += other.started;
        self.finished += other.finished;
        self.failed += other.failed;
        self.retried += other.retried;
        self.dead += other.dead;
        self.lost += other.lost;
        self.released += other.released;
        self.run_ms += other.run_ms;
    }
}
