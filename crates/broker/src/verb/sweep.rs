//! sweep: a walk through all keys, in steps, for jobs that no script of ours comes back to: those that stand on no
//! list, and those that a worker without leases runs or left. How far it is, all workers share.

use std::collections::{BTreeSet, HashMap};

use meshwork_model::job::field;
use meshwork_model::name::{JobId, ScriptType};
use meshwork_model::stored;
use redis::RedisResult;

use super::inspect::{SCAN_COUNT, failed, glob_literal, texts};
use super::migrate::{Migrations, Open};
use super::{Adopted, MAX_ITEMS, text};
use crate::{Broker, Error};

/// Pages looked at in one call, of 500 keys each: about 10 ms of the server's time.
const PAGES: usize = 8;
/// From the beginning of a walk to that of the next, in milliseconds, where no type migrates.
const EVERY: u64 = 60_000;
/// For how long a canonical queue is known that a walk has met, in milliseconds (one day): empty lists are no keys.
const KNOWN_FOR: u64 = 86_400_000;
/// The most canonical queues that are looked through.
const MOST_LISTS: usize = MAX_ITEMS;
/// The most of their entries that a call reads, 1,000 at a time: about 10 ms of the server's time, and 5 MB. Each queue
/// has an equal share.
const MOST_READ: usize = 100_000;

/// What a sweep met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Where the next one goes on; 0 if the walk is over, or the next is not due.
    pub next: u64,
    /// Jobs that are under watch now and were not before.
    pub adopted: usize,
    /// Open jobs of other clients whose type cannot be told: nobody can push them again.
    pub unroutable: usize,
    /// The next walk is not due yet.
    pub rests: bool,
}

/// What stands on the canonical queues.
#[derive(Debug, Default)]
struct Standing {
    /// By id, the queue.
    lists: HashMap<String, String>,
    /// The types of the queues.
    types: BTreeSet<String>,
    /// Whether there is more than was read. An id that is not among these may stand there all the same.
    cut: bool,
}

/// A page of all keys.
#[derive(Debug, Default)]
struct Page {
    /// Of jobs, or what is called like one.
    ids: Vec<JobId>,
    /// Canonical queues.
    lists: Vec<String>,
    /// Replies, with the jobs that they are to.
    replies: Vec<(String, JobId)>,
    /// Where the next one begins; 0 after the last.
    next: u64,
}

/// How far the walk is.
#[derive(Debug, Clone, Copy, Default)]
struct Walk {
    next: u64,
    began: Option<u64>,
}

impl Broker {
    /// Goes on with the walk: takes suspected orphans under watch ([`Broker::adopt`]), notes which canonical queues there
    /// are, and gives replies to jobs of ours an end where their worker set none. A walk begins once a minute; while a type migrates, when the last is over. Suspects are jobs that
    /// were started without a lease; waiting jobs of other clients that stand on no queue; and those of ours that should
    /// have been taken before what is first in their queue. Of types that migrate all open jobs of other clients are.
    ///
    /// # Errors
    /// If the server does not take a call; repeat it then.
    pub async fn sweep(&self) -> Result<Swept, Error> {
        let (migrations, now) = (self.migrations().await?, self.now().await?);
        let mut walk = self.walk_state().await?;
        if walk.next == 0 {
            let recent = |began| now >= began && now < began + EVERY;
            if migrations.is_empty() && walk.began.is_some_and(recent) {
                let rests = true;
                return Ok(Swept {
                    rests,
                    ..Swept::default()
                });
            }
            walk.began = Some(now);
        }
        let (mut swept, mut standing) = (Swept::default(), None);
        for _ in 0..PAGES {
            let page = self.page(walk.next).await?;
            self.note_lists(&page.lists, now).await?;
            self.end_replies(&page.replies).await?;
            let (open, next) = (self.read_open(&page.ids).await?, page.next);
            self.take_page(open, &migrations, &mut standing, &mut swept)
                .await?;
            (walk.next, swept.next) = (next, next);
            self.note_walk(walk, now).await?;
            if next == 0 {
                break;
            }
        }
        Ok(swept)
    }

    async fn walk_state(&self) -> Result<Walk, Error> {
        let mut get = redis::cmd("HMGET");
        get.arg(self.keys.walk()).arg("next").arg("began");
        let (next, began): (Option<u64>, Option<u64>) = self.ask("sweep", &get).await?;
        let next = next.unwrap_or(0);
        Ok(Walk { next, began })
    }

    /// Notes how far it is. Both fields are written together, so that they tell of one walk whoever is late.
    async fn note_walk(&self, walk: Walk, now: u64) -> Result<(), Error> {
        let began = walk.began.unwrap_or(now);
        let mut pipe = redis::pipe();
        let set = pipe.cmd("HSET").arg(self.keys.walk());
        set.arg("next").arg(walk.next).arg("began").arg(began);
        if walk.next == 0 {
            set.arg("whole").arg(began);
            let forget = pipe.cmd("ZREMRANGEBYSCORE").arg(self.keys.known_lists());
            forget.arg("-inf").arg(now.saturating_sub(KNOWN_FOR));
        }
        let conn = &mut self.conn.clone();
        let done = pipe.query_async::<redis::Value>(conn).await;
        done.map(drop).map_err(failed)
    }

    /// A page of all keys.
    async fn page(&self, from: u64) -> Result<Page, Error> {
        let all = format!("{}*", glob_literal(&self.keys.prefix()));
        let mut scan = redis::cmd("SCAN");
        scan.arg(from).arg("MATCH").arg(all);
        scan.arg("COUNT").arg(SCAN_COUNT);
        let (next, keys): (u64, Vec<Vec<u8>>) = self.ask("sweep", &scan).await?;
        let work = self.keys.work_prefix();
        let mut page = Page {
            next,
            ..Page::default()
        };
        for key in texts(keys) {
            if let Some(id) = self.keys.job_of_key(&key) {
                page.ids.push(id);
            } else if key.starts_with(&work) {
                page.lists.push(key);
            } else if let Some(id) = self.reply_of(&key) {
                page.replies.push((key, id));
            }
        }
        Ok(page)
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

    /// Takes those of a page that are to be taken.
    async fn take_page(
        &self,
        open: Vec<Open>,
        migrations: &Migrations,
        standing: &mut Option<Standing>,
        swept: &mut Swept,
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
            } else if job.foreign {
                found.extend((!stands && !unsure).then_some(adopted));
            } else if !migrates || job.lock.is_none() {
                suspects.push((adopted, job.written_at));
            }
        }
        found.extend(self.passed_over(suspects).await?);
        for chunk in found.chunks(MAX_ITEMS) {
            swept.adopted += self.adopt(chunk).await?;
        }
        Ok(())
    }

    fn adopted(&self, job: &Open, script_type: Option<String>, place: Option<String>) -> Adopted {
        let work = self.keys.work_prefix();
        let own = job.queue.clone().filter(|queue| queue.starts_with(&work));
        let route = || Some(job.route.as_ref()?.queue(&self.keys));
        Adopted {
            id: job.id.clone(),
            script_type: script_type.map(ScriptType::foreign),
            queue: place.or(own).or_else(route),
        }
    }

    /// Canonical queues that a walk has met.
    pub(super) async fn known_queues(&self) -> Result<Vec<String>, Error> {
        let mut range = redis::cmd("ZRANGE");
        range
            .arg(self.keys.known_lists())
            .arg(0)
            .arg(MOST_LISTS - 1);
        self.ask::<Vec<Vec<u8>>>("sweep", &range)
            .await
            .map(|lists| texts(lists).collect())
    }

    /// The type of a canonical queue.
    pub(super) fn type_of_queue(&self, list: &str) -> Option<String> {
        let behind = list.strip_prefix(&self.keys.work_prefix())?;
        behind.split(':').next().map(str::to_owned)
    }

    /// Reads the canonical queues, from the ends that are taken first.
    async fn standing(&self) -> Result<Standing, Error> {
        let known = self.known_queues().await?;
        let types = known.iter().filter_map(|list| self.type_of_queue(list));
        let mut standing = Standing {
            types: types.collect(),
            cut: known.len() == MOST_LISTS,
            ..Standing::default()
        };
        let lengths = self.lengths(&known.iter().collect::<Vec<_>>()).await?;
        let share = MOST_READ / known.len().max(1);
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        let mut pages = Vec::new();
        for (list, length) in known.iter().zip(lengths) {
            standing.cut |= length > share;
            for from in (0..length.min(share)).step_by(MAX_ITEMS) {
                // Counted from the right, where -1 is the last.
                let (near, far) = (from + 1, (from + MAX_ITEMS).min(share));
                let range = pipe.cmd("LRANGE").arg(list);
                range.arg(-(far as i64)).arg(-(near as i64));
                pages.push(list);
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

    /// Of waiting jobs of ours, those that should have been taken before the one that is taken next from their queue: that one
    /// was stored after they were written last. All others stand behind it, as far as one can tell.
    async fn passed_over(&self, jobs: Vec<(Adopted, Option<u64>)>) -> Result<Vec<Adopted>, Error> {
        let queue = |job: &Adopted| {
            let of_type = || Some(self.keys.work_queue_type(job.script_type.as_ref()?));
            job.queue.clone().or_else(of_type)
        };
        let queues: BTreeSet<_> = jobs.iter().filter_map(|(job, _)| queue(job)).collect();
        let next = self
            .next_of(&queues.into_iter().collect::<Vec<_>>())
            .await?;
        let passed = |(job, at): &(Adopted, Option<u64>)| {
            let Some((id, stored)) = queue(job).and_then(|queue| next.get(&queue).cloned()) else {
                return true;
            };
            let before = at.zip(stored).is_none_or(|(at, stored)| at < stored);
            before && id != job.id.as_str()
        };
        Ok(jobs
            .into_iter()
            .filter(passed)
            .map(|(job, _)| job)
            .collect())
    }

    /// The job that is taken next from each of these queues, and when it was stored.
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
            .map(|at| stored::time(&self.keys, &text(at.ok()??)));
        let both = first.into_iter().zip(stored);
        Ok(both.map(|((queue, id), at)| (queue, (id, at))).collect())
    }
}

/// An id, and when its job was stored: milliseconds since 1970.
type Next = (String, Option<u64>);
