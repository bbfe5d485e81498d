//! scan: a scan of all keys, in steps, for jobs to which no script returns: those on no list, and those that a
//! worker without leases runs or left. All workers share its position.

use meshwork_macros::boxed;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use meshwork_model::job::field;
use meshwork_model::keys::context::Counter;
use meshwork_model::name::{JobId, ScheduleName, ScriptType};
use meshwork_model::stored;
use redis::RedisResult;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::inspect::jobs::{SCAN_COUNT, failed, glob_literal, texts};
use crate::verb::migrate::{Migrations, Open};
use crate::verb::{MAX_ITEMS, Suspect, text};

/// Number of pages in a call, of 500 keys each: about 10 ms of the server's time.
const PAGES: usize = 8;
/// Interval of the scans, in milliseconds, where no type migrates.
const EVERY: u64 = 60_000;
/// Least interval of the scans where workers rescue foreign jobs: the age of the rescue, but not less than this, and at
/// most [`EVERY`].
const RESCUE_EVERY: u64 = 10_000;
/// Time for which a canonical queue that a scan found is remembered, in milliseconds (1 day): empty lists do not
/// exist as keys.
const KNOWN_FOR: u64 = 86_400_000;
/// Greatest number of canonical queues that are searched.
const MOST_LISTS: usize = MAX_ITEMS;
/// Greatest number of their entries that a call reads, 1,000 at a time: about 10 ms of the server's time, and 5 MB. If there
/// are more, long queues have equal shares.
const MOST_READ: usize = 100_000;

/// The result of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrphanScan {
    /// Cursor of the next call; 0 if the scan is complete, or the next one is not due.
    pub next: u64,
    /// Number of newly watched jobs.
    pub adopted: usize,
    /// Number of schedules that the set of all schedules lacked, and has now.
    pub restored: usize,
    /// Number of foreign clients' open jobs with an unknown type, which cannot be pushed again.
    pub unroutable: usize,
    /// Time until the next scan is due; `None` if one is under way.
    pub rests: Option<Duration>,
}

/// The ids on canonical queues.
#[derive(Debug, Default)]
struct Standing {
    /// Queue by id.
    lists: HashMap<String, String>,
    /// Types of the queues.
    types: BTreeSet<String>,
    /// True if a part was not read, so that other ids may also be on these queues.
    cut: bool,
}

/// A page of all keys.
#[derive(Debug, Default)]
struct Page {
    /// Ids of jobs, or of keys with similar names.
    ids: Vec<JobId>,
    /// Canonical queues.
    lists: Vec<String>,
    /// Reply lists, with their jobs.
    replies: Vec<(String, JobId)>,
    schedules: Vec<ScheduleName>,
    batches: Vec<String>,
    /// Names of backlogs of concurrency keys.
    backlogs: Vec<String>,
    /// Cursor of the next page; 0 after the last one.
    next: u64,
}

/// Position of the scan.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Walk {
    next: u64,
    began: Option<u64>,
    /// Age of a rescue of foreign jobs in milliseconds, and until when the note of it holds.
    pub(super) rescue: Option<(u64, u64)>,
}

impl Broker {
    /// Continues the scan. It puts suspected orphans under watch ([`Broker::track_orphans`]), records the canonical queues,
    /// sets a time to live for replies whose worker set none, and adds schedules to the set of all schedules if it
    /// lacks them, batches and backlogs of concurrency keys to those of the next checks, and jobs to the sets of ended, dead, delayed and waiting ones. A scan begins once a minute, where foreign jobs are rescued every 10 s or more, and while a type migrates,
    /// at the end of the last one.
    ///
    /// Suspected orphans are jobs that were started without a lease, waiting jobs of foreign clients that are on no
    /// queue, and waiting jobs of Meshwork's clients that should have been claimed before the next one in their
    /// queue. If not all entries of queues can be read, this also holds for those of foreign clients. Of types that migrate, all open jobs of foreign clients are suspected.
    ///
    /// # Errors
    /// The server refuses a call; repeat it then.
    #[boxed]
    pub async fn scan_orphans(&self) -> Result<OrphanScan, Error> {
        let (migrations, now) = (self.migrations().await?, self.now().await?);
        let mut walk = self.walk_state().await?;
        if walk.next == 0 {
            let every = self.interval(walk.rescue, now);
            let recent = walk
                .began
                .filter(|began| now >= *began && now < began + every);
            if let Some(began) = recent.filter(|_| migrations.is_empty()) {
                return Ok(OrphanScan {
                    rests: Some(Duration::from_millis(began + every - now)),
                    ..OrphanScan::default()
                });
            }
            walk.began = Some(now);
        }
        let (mut swept, mut standing) = (OrphanScan::default(), None);
        for _ in 0..PAGES {
            let page = self.page(walk.next).await?;
            self.note_lists(&page.lists, now).await?;
            self.index(&page.ids).await?;
            self.end_replies(&page.replies).await?;
            swept.restored += self.restore_schedules(page.schedules, now).await?;
            let open = self.open_batches(page.batches).await?;
            self.enter(self.keys.batches_open(), &open, now).await?;
            self.enter(self.keys.backlog_index(), &page.backlogs, now)
                .await?;
            let (read, next) = (self.read_jobs(&page.ids).await?, page.next);
            swept.adopted += self.track_lost(&read.kept).await?;
            self.take_page(read.open, &migrations, &mut standing, &mut swept)
                .await?;
            (walk.next, swept.next) = (next, next);
            self.note_walk(walk, now).await?;
            if next == 0 {
                self.or_nothing(self.note_settings().await)?;
            }
            if next == 0 {
                break;
            }
        }
        Ok(swept)
    }

    pub(super) async fn walk_state(&self) -> Result<Walk, Error> {
        let mut get = redis::cmd("HMGET");
        get.arg(self.keys.walk()).arg("next").arg("began");
        get.arg("rescue").arg("rescue_until");
        type Number = Option<u64>;
        let (next, began, age, until): (Number, Number, Number, Number) =
            self.ask("sweep", &get).await?;
        Ok(Walk {
            next: next.unwrap_or(0),
            began,
            rescue: age.zip(until),
        })
    }

    /// Returns the interval of the scans in milliseconds. Any worker scans, also for others that rescue foreign jobs.
    fn interval(&self, noted: Option<(u64, u64)>, now: u64) -> u64 {
        let noted = noted.filter(|(_, until)| *until > now).map(|(age, _)| age);
        let own = self.rescue.foreign.then(|| self.rescue.after_ms());
        let age = noted.into_iter().chain(own).min();
        age.map_or(EVERY, |age| age.clamp(RESCUE_EVERY, EVERY))
    }

    /// Stores the position. Both fields are written together, so that they belong to one scan, whichever worker is
    /// late.
    async fn note_walk(&self, walk: Walk, now: u64) -> Result<(), Error> {
        let began = walk.began.unwrap_or(now);
        let mut pipe = redis::pipe();
        let set = pipe.cmd("HSET").arg(self.keys.walk());
        set.arg("next").arg(walk.next).arg("began").arg(began);
        if walk.next == 0 {
            set.arg("whole").arg(began);
            let before = now
                .saturating_sub(KNOWN_FOR)
                .max(self.too_many(began).await?);
            let forget = pipe.cmd("ZREMRANGEBYSCORE").arg(self.keys.known_lists());
            forget.arg("-inf").arg(format!("({before}"));
        }
        let conn = &mut self.conn.clone();
        let done = pipe.query_async::<redis::Value>(conn).await;
        done.map(drop).map_err(failed)
    }

    /// Returns the time before which known queues are forgotten, so that no more are known than are searched: those that no
    /// scan has found since then. The scan that began at this time has not found them.
    async fn too_many(&self, began: u64) -> Result<u64, Error> {
        let mut least = redis::cmd("ZRANGE");
        least.arg(self.keys.known_lists());
        let at = -(MOST_LISTS as i64) - 1;
        least.arg(at).arg(at).arg("WITHSCORES");
        let least: Vec<(Vec<u8>, f64)> = self.ask("sweep", &least).await?;
        let at = least.first().map(|(_, at)| *at as u64);
        Ok(at.filter(|at| *at < began).map_or(0, |at| at + 1))
    }

    /// Returns a page of all keys.
    async fn page(&self, from: u64) -> Result<Page, Error> {
        let all = format!("{}*", glob_literal(&self.keys.prefix()));
        let mut scan = redis::cmd("SCAN");
        scan.arg(from).arg("MATCH").arg(all);
        scan.arg("COUNT").arg(SCAN_COUNT);
        let (next, keys): (u64, Vec<Vec<u8>>) = self.ask("sweep", &scan).await?;
        let (work, schedules) = (self.keys.work_prefix(), self.keys.schedule_prefix());
        let (batches, backlogs) = (self.keys.batch_prefix(), self.keys.backlog(""));
        let mut page = Page {
            next,
            ..Page::default()
        };
        for key in texts(keys) {
            if let Some(id) = self.keys.job_of_key(&key) {
                page.ids.push(id);
            } else if key.starts_with(&work) {
                page.lists.push(key);
            } else if let Some(name) = key.strip_prefix(&schedules) {
                page.schedules.extend(name.parse());
            } else if let Some(batch) = key.strip_prefix(&batches) {
                page.batches.push(batch.to_owned());
            } else if let Some(name) = key.strip_prefix(&backlogs) {
                page.backlogs.push(name.to_owned());
            } else if let Some(id) = self.reply_of(&key) {
                page.replies.push((key, id));
            }
        }
        Ok(page)
    }

    /// Adds the jobs of a page to the index of a context: those of plain clients, and of stores without an index.
    async fn index(&self, ids: &[JobId]) -> Result<(), Error> {
        let Some(context) = self.keys.context().filter(|_| !ids.is_empty()) else {
            return Ok(());
        };
        let mut add = redis::cmd("ZADD");
        add.arg(context.index(Counter::Job)).arg("NX");
        for id in ids {
            add.arg(0).arg(id.as_str());
        }
        self.ask("sweep", &add).await
    }

    async fn note_lists(&self, lists: &[String], now: u64) -> Result<(), Error> {
        if lists.is_empty() {
            return Ok(());
        }
        let mut add = redis::cmd("ZADD");
        add.arg(self.keys.known_lists());
        for list in lists {
            add.arg(now).arg(list);
        }
        self.ask("sweep", &add).await
    }

    /// Puts the suspected orphans of a page under watch.
    async fn take_page(
        &self,
        open: Vec<Open>,
        migrations: &Migrations,
        standing: &mut Option<Standing>,
        swept: &mut OrphanScan,
    ) -> Result<(), Error> {
        let waits = |job: &Open| job.foreign && !job.started;
        if standing.is_none() && open.iter().any(waits) {
            *standing = Some(self.standing().await?);
        }
        let nowhere = Standing::default();
        let standing = standing.as_ref().unwrap_or(&nowhere);
        let (mut found, mut suspects) = (Vec::new(), Vec::new());
        for job in open {
            let place = standing.lists.get(job.id.as_str()).cloned();
            let script_type = match place.as_deref() {
                Some(list) => self.type_of_queue(list),
                None => job.type_in(migrations, &standing.types, self),
            };
            let migrates = script_type
                .as_ref()
                .is_some_and(|name| migrations.contains_key(name));
            let unsure = waits(&job) && place.is_none() && standing.cut;
            let nameless = script_type.is_none() && !unsure;
            swept.unroutable += usize::from(nameless && !migrations.is_empty());
            let stands = place.is_some();
            let adopted = self.adopted(&job, script_type, place);
            if job.started || (job.foreign && migrates) {
                found.push(adopted);
            } else if unsure {
                suspects.push((adopted, job.written_at, false));
            } else if job.foreign {
                found.extend((!stands).then_some(adopted));
            } else if !migrates || job.lock.is_none() {
                suspects.push((adopted, job.written_at, true));
            }
        }
        found.extend(self.passed_over(suspects).await?);
        for chunk in found.chunks(MAX_ITEMS) {
            swept.adopted += self.track_orphans(chunk).await?;
        }
        Ok(())
    }

    fn adopted(&self, job: &Open, script_type: Option<String>, place: Option<String>) -> Suspect {
        let work = self.keys.work_prefix();
        let own = job.queue.clone().filter(|queue| queue.starts_with(&work));
        let route = || Some(job.route.as_ref()?.queue(&self.keys));
        Suspect {
            id: job.id.clone(),
            script_type: script_type.map(ScriptType::foreign),
            queue: place.or(own).or_else(route),
        }
    }

    /// Returns the first canonical queues that pushes and scans have noted.
    pub(crate) async fn known_queues(&self) -> Result<Vec<String>, Error> {
        self.noted_queues("sweep", 0, MOST_LISTS).await
    }

    /// Returns up to `most` canonical queues that pushes and scans have noted, from this position on.
    pub(crate) async fn noted_queues(
        &self,
        verb: &'static str,
        from: usize,
        most: usize,
    ) -> Result<Vec<String>, Error> {
        let mut range = redis::cmd("ZRANGE");
        range.arg(self.keys.known_lists());
        range.arg(from).arg(from + most - 1);
        let lists: Vec<Vec<u8>> = self.ask(verb, &range).await?;
        Ok(texts(lists).collect())
    }

    /// Returns the type of a canonical queue.
    pub(crate) fn type_of_queue(&self, list: &str) -> Option<String> {
        let behind = list.strip_prefix(&self.keys.work_prefix())?;
        behind.split(':').next().map(str::to_owned)
    }

    /// Reads the canonical queues, from the end that is claimed first.
    async fn standing(&self) -> Result<Standing, Error> {
        let known = self.known_queues().await?;
        let types = known.iter().filter_map(|list| self.type_of_queue(list));
        let mut standing = Standing {
            types: types.collect(),
            cut: known.len() == MOST_LISTS,
            ..Standing::default()
        };
        let lengths = self.lengths(&known.iter().collect::<Vec<_>>()).await?;
        let mut lists: Vec<_> = known.iter().zip(lengths).collect();
        lists.retain(|(_, length)| *length > 0);
        // The short ones first: what they do not need is for the long ones.
        lists.sort_by_key(|(_, length)| *length);
        let (mut pipe, mut pages, mut left) = (redis::pipe(), Vec::new(), MOST_READ);
        pipe.ignore_errors();
        for (at, (list, length)) in lists.iter().enumerate() {
            let share = (*length).min(left / (lists.len() - at));
            left -= share;
            standing.cut |= *length > share;
            for from in (0..share).step_by(MAX_ITEMS) {
                // Indexes count from the right, where -1 is the last.
                let (near, far) = (from + 1, (from + MAX_ITEMS).min(share));
                let range = pipe.cmd("LRANGE").arg(*list);
                range.arg(-(far as i64)).arg(-(near as i64));
                pages.push(*list);
            }
        }
        if pages.is_empty() {
            return Ok(standing);
        }
        let conn = &mut self.conn.clone();
        let read: Vec<RedisResult<Vec<Vec<u8>>>> = pipe.query_async(conn).await.map_err(failed)?;
        for (list, ids) in pages.into_iter().zip(read) {
            let ids = texts(ids.unwrap_or_default()).map(|id| (id, list.clone()));
            standing.lists.extend(ids);
        }
        Ok(standing)
    }

    /// Returns those waiting jobs that should have been claimed before the next one in their
    /// queue, which was stored after their last write. All others are presumably behind it. `or_unknown`: also those where
    /// a time is missing.
    async fn passed_over(
        &self,
        jobs: Vec<(Suspect, Option<u64>, bool)>,
    ) -> Result<Vec<Suspect>, Error> {
        let queue = |job: &Suspect| {
            let of_type = || Some(self.keys.work_queue_type(job.script_type.as_ref()?));
            job.queue.clone().or_else(of_type)
        };
        let queues: BTreeSet<_> = jobs.iter().filter_map(|(job, ..)| queue(job)).collect();
        let next = self
            .next_of(&queues.into_iter().collect::<Vec<_>>())
            .await?;
        let passed = |(job, at, or_unknown): &(Suspect, Option<u64>, bool)| {
            let Some((id, stored)) = queue(job).and_then(|queue| next.get(&queue).cloned()) else {
                return *or_unknown;
            };
            let both = at.zip(stored);
            let before = both.map_or(*or_unknown, |(at, stored)| at < stored);
            before && id != job.id.as_str()
        };
        Ok(jobs
            .into_iter()
            .filter(passed)
            .map(|(job, ..)| job)
            .collect())
    }

    /// Returns the next job of each of these queues, and the time at which it was stored.
    async fn next_of(&self, queues: &[String]) -> Result<HashMap<String, Next>, Error> {
        if queues.is_empty() {
            return Ok(HashMap::new());
        }
        let conn = &mut self.conn.clone();
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for queue in queues {
            pipe.cmd("LRANGE").arg(queue).arg(-1).arg(-1);
        }
        type Text = RedisResult<Option<Vec<u8>>>;
        let ids: Vec<RedisResult<Vec<Vec<u8>>>> = pipe.query_async(conn).await.map_err(failed)?;
        let first = |(queue, ids): (&String, RedisResult<Vec<_>>)| {
            Some((queue.clone(), text(ids.ok()?.pop()?)))
        };
        let first: Vec<_> = queues.iter().zip(ids).filter_map(first).collect();
        if first.is_empty() {
            return Ok(HashMap::new());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for (_, id) in &first {
            let id = JobId::foreign(id.clone());
            pipe.cmd("HGET")
                .arg(self.keys.job_hash_key(&id))
                .arg(field::CREATED_AT);
        }
        let stored: Vec<Text> = pipe.query_async(conn).await.map_err(failed)?;
        let stored = stored
            .into_iter()
            .map(|at| stored::time(&self.keys, &text(at.ok()??), None));
        let both = first.into_iter().zip(stored);
        Ok(both.map(|((queue, id), at)| (queue, (id, at))).collect())
    }
}

/// An id, and the time at which its job was stored, in milliseconds since 1970.
type Next = (String, Option<u64>);
