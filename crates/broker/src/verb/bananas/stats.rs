//! stats: the figures of all routes for dashboards. It changes nothing, and what one call costs has a bound: told of are
//! the routes that workers of ours serve or have served, and those that clients of ours have submitted to.

use std::collections::BTreeMap;

use meshwork_model::bananas::Record;
use meshwork_model::name::RoutingKey;
use meshwork_model::route::Priority;
use redis::RedisResult;

use super::Bananas;
use super::inspect::failed;
use crate::error::Error;
use crate::verb::{Fields, MAX_ITEMS, MAX_QUEUES, text};

/// The largest record that is read for its age, in bytes.
const MOST_BYTES: usize = 64 * 1024;

/// The figures of one priority of a route. What is counted is counted by the scripts of ours, since the figures began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlaceStats {
    /// Ids that wait, whoever pushed them.
    pub waiting: u64,
    /// How many milliseconds ago the record of the oldest of them was written, if it tells that.
    pub oldest_ms: Option<u64>,
    /// Jobs that clients and schedules of ours stored.
    pub created: u64,
    /// Runs begun by workers of ours.
    pub started: u64,
    /// Jobs that ended well.
    pub finished: u64,
    /// Jobs that ended in error.
    pub failed: u64,
    /// Runs that failed and are to be repeated.
    pub retried: u64,
    /// Jobs that became dead letters: those that ended in error, and entries without a record.
    pub dead: u64,
    /// Leases that ended without a report.
    pub lost: u64,
    /// Jobs that workers of ours took and did not run: handed back, moved to the list of their route, or done before.
    pub released: u64,
    /// How long all runs took together, in milliseconds.
    pub run_ms: u64,
}

/// The figures of one deployment of Bananas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// By route and priority.
    pub places: BTreeMap<(RoutingKey, Priority), PlaceStats>,
    /// Jobs that workers of ours run, by route.
    pub running: BTreeMap<RoutingKey, u64>,
    /// What waits for its time.
    pub scheduled: u64,
    /// What runs, whoever runs it, and what workers that are gone left behind.
    pub processing: u64,
    /// What failed for good.
    pub dead: u64,
}

/// By list.
type Lists = BTreeMap<String, PlaceStats>;

impl Bananas {
    /// The figures of up to [`MAX_QUEUES`] lists: see above for which.
    ///
    /// # Errors
    /// If the server does not take a call.
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

    /// What was counted, by list: nine counts for each that ours ever took from.
    async fn counted(&self) -> Result<Lists, Error> {
        let mut get = redis::cmd("HGETALL");
        get.arg(self.keys.stats());
        let fields: RedisResult<Fields> = get.query_async(&mut self.conn.clone()).await;
        let mut lists = Lists::new();
        // What is no hash has no counts.
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

    /// The routes that workers of ours serve.
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

    /// Adds how many wait in each list, and since when the next of them does. What is no list is empty.
    async fn waiting(&self, lists: &mut [(String, PlaceStats)], now_ms: u64) -> Result<(), Error> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for (list, _) in &*lists {
            pipe.cmd("LLEN").arg(list);
            // Ids are taken off the end.
            pipe.cmd("LRANGE").arg(list).arg(-1).arg(-1);
        }
        type Row = (RedisResult<u64>, RedisResult<Vec<Vec<u8>>>);
        let conn = &mut self.conn.clone();
        let rows: Vec<Row> = pipe.query_async(conn).await.map_err(failed("stats"))?;
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        let mut asked = Vec::new();
        for (at, (waiting, oldest)) in rows.into_iter().enumerate() {
            lists[at].1.waiting = waiting.unwrap_or_default();
            if let Some(id) = oldest.ok().and_then(|mut ids| ids.pop()) {
                let record = self.keys.job(&text(id));
                pipe.cmd("GETRANGE").arg(record).arg(0).arg(MOST_BYTES - 1);
                asked.push(at);
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        let records: Vec<RedisResult<Vec<u8>>> =
            pipe.query_async(conn).await.map_err(failed("stats"))?;
        for (at, record) in asked.into_iter().zip(records) {
            let record = record.ok().and_then(|text| Record::read(&text).ok());
            let written = record.and_then(|record| record.written_ms());
            lists[at].1.oldest_ms = written.map(|written| now_ms.saturating_sub(written));
        }
        Ok(())
    }

    /// What is counted by route, and for all of them together.
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

impl PlaceStats {
    /// Sets what is counted under that name in the scripts; any other is passed over.
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

    /// Adds the figures of another list of the same place.
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
