//! What is left of the old lists: everything that can be seen of it, which changes nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use meshwork_model::migration::Migration;
use redis::RedisResult;

use super::super::MAX_ITEMS;
use super::super::inspect::{failed, texts};
use super::clients::Waiting;
use super::record::{Migrations, Open, by_worker};
use crate::{Broker, Error};

/// Jobs of other clients that are looked for on all canonical queues; more are taken for not found: 100 MB.
const MAX_SOUGHT: usize = 1_000_000;
/// How far into a list one looks once more for a job that was not met on any: 0.1 ms of the server's time.
const FAR: usize = 10_000;
/// Entries of a list that are read in one call.
const PAGE: isize = MAX_ITEMS as isize;

/// What is there of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// How many.
    pub count: usize,
    /// The first one that was met, for a message.
    pub first: Option<String>,
}

impl Found {
    fn add(&mut self, name: &str) {
        self.count += 1;
        self.first.get_or_insert_with(|| name.to_owned());
    }
}

/// An old list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyQueue {
    /// Its key.
    pub list: String,
    /// Ids on it, and on their way from it to one of our workers.
    pub waiting: usize,
    /// How many of them stand on a canonical queue too.
    pub copies: usize,
}

impl LegacyQueue {
    /// Ids that stand nowhere else.
    #[must_use]
    pub fn alone(&self) -> usize {
        self.waiting.saturating_sub(self.copies)
    }
}

/// How one type stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeSurvey {
    /// Its name.
    pub script_type: String,
    /// Its migration, while there is one.
    pub migration: Option<Migration>,
    /// Ids on its canonical queues.
    pub canonical: usize,
    /// Its old lists. One whose type cannot be told is every type's.
    pub old: Vec<LegacyQueue>,
    /// Open jobs that stand on an old list too, or were taken from there by an old worker.
    pub marked: Found,
    /// Jobs of other clients that wait, and on no canonical queue: on an old list, in the hands of an old
    /// worker that has not said so yet, or on no list at all.
    pub adrift: Found,
    /// Jobs that a worker without leases runs, or left.
    pub running: Found,
}

/// How all types stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// The types that migrate, have old lists or hold jobs.
    pub types: Vec<TypeSurvey>,
    /// Open jobs of other clients whose type cannot be told.
    pub unroutable: Found,
    /// Jobs under watch, those that wait for prerequisites among them.
    pub watched: usize,
    /// Clients of other makes that wait on lists; none if this user may not see them.
    pub listeners: Option<Vec<Waiting>>,
}

impl Survey {
    /// How a type stands.
    #[must_use]
    pub fn of(&self, script_type: &str) -> Option<&TypeSurvey> {
        self.types.iter().find(|of| of.script_type == script_type)
    }
}

/// What is gathered page by page.
#[derive(Default)]
struct Gathered {
    types: BTreeMap<String, TypeSurvey>,
    copies: HashMap<String, usize>,
    unroutable: Found,
    /// Waiting jobs of other clients that no queue is known to hold yet.
    sought: HashMap<String, Open>,
    /// Types of the canonical queues.
    others: BTreeSet<String>,
}

impl Gathered {
    fn of(&mut self, script_type: &str) -> &mut TypeSurvey {
        let of = self.types.entry(script_type.to_owned()).or_default();
        script_type.clone_into(&mut of.script_type);
        of
    }
}

impl Broker {
    /// Looks at everything: all open jobs, all lists, and who waits. It goes through all keys, in steps.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn survey(&self) -> Result<Survey, Error> {
        let migrations = self.migrations().await?;
        let mut gathered = Gathered::default();
        for (script_type, migration) in &migrations {
            gathered.of(script_type).migration = Some(migration.clone());
        }
        let lists = self.lists().await?;
        let canonical = lists
            .iter()
            .filter(|list| list.starts_with(&self.keys.work_prefix()));
        let canonical: Vec<_> = canonical.cloned().collect();
        gathered.others = canonical
            .iter()
            .filter_map(|list| self.type_of_queue(list))
            .collect();
        let mut from = 0;
        loop {
            let (open, next) = self.open_jobs(from).await?;
            self.sort(open, &migrations, &mut gathered);
            from = next;
            if from == 0 {
                break;
            }
        }
        self.seek(&canonical, &migrations, &mut gathered).await?;
        self.add_lists(lists, &migrations, &mut gathered).await?;
        let watch = redis::cmd("ZCARD").arg(self.keys.watch()).to_owned();
        Ok(Survey {
            types: gathered.types.into_values().collect(),
            unroutable: gathered.unroutable,
            watched: self.ask("survey", &watch).await?,
            listeners: self.waiting_clients().await?,
        })
    }

    /// Adds a page of open jobs.
    fn sort(&self, open: Vec<Open>, migrations: &Migrations, gathered: &mut Gathered) {
        for job in open {
            let id = job.id.as_str();
            if !job.foreign && job.lock.is_none() && (job.ours || !job.started) {
                continue;
            }
            if job.lock.is_none() && !job.started && gathered.sought.len() < MAX_SOUGHT {
                gathered.sought.insert(id.to_owned(), job);
                continue;
            }
            let Some(script_type) = job.type_in(migrations, &gathered.others, self) else {
                gathered.unroutable.add(id);
                continue;
            };
            if let Some(lock) = &job.lock {
                *gathered.copies.entry(lock.clone()).or_default() += usize::from(!job.started);
                gathered.of(&script_type).marked.add(id);
            } else if job.started && !job.ours {
                gathered.of(&script_type).running.add(id);
            } else if !job.started {
                gathered.of(&script_type).adrift.add(id);
            }
        }
    }

    /// Looks for waiting jobs of other clients on all canonical queues, and among those that wait for their time.
    async fn seek(
        &self,
        lists: &[String],
        migrations: &Migrations,
        gathered: &mut Gathered,
    ) -> Result<(), Error> {
        for list in lists {
            let mut from = 0;
            loop {
                let mut range = redis::cmd("LRANGE");
                range.arg(list).arg(from).arg(from + PAGE - 1);
                let page: RedisResult<Vec<Vec<u8>>> =
                    range.query_async(&mut self.conn.clone()).await;
                let page = page.unwrap_or_default();
                let last = page.len() < MAX_ITEMS;
                for id in texts(page) {
                    gathered.sought.remove(&id);
                }
                if last {
                    break;
                }
                from += PAGE;
            }
        }
        let rest: Vec<Open> = std::mem::take(&mut gathered.sought).into_values().collect();
        for chunk in rest.chunks(MAX_ITEMS) {
            let stands = self.stands(chunk, lists).await?;
            for (job, _) in chunk.iter().zip(stands).filter(|(_, stands)| !stands) {
                match job.type_in(migrations, &gathered.others, self) {
                    Some(script_type) => gathered.of(&script_type).adrift.add(job.id.as_str()),
                    None => gathered.unroutable.add(job.id.as_str()),
                }
            }
        }
        Ok(())
    }

    /// Which of these jobs wait for their time, or stand on one of the lists after all: workers of other makes take ids
    /// off the end at which one begins to read. One that is not open any more is nobody's concern.
    async fn stands(&self, jobs: &[Open], lists: &[String]) -> Result<Vec<bool>, Error> {
        let ids: Vec<_> = jobs.iter().map(|job| job.id.clone()).collect();
        let open = self.read_open(&ids).await?;
        let open: BTreeSet<_> = open
            .iter()
            .filter(|job| !job.started)
            .map(|job| job.id.as_str())
            .collect();
        let mut stands: Vec<_> = ids.iter().map(|id| !open.contains(id.as_str())).collect();
        let conn = &mut self.conn.clone();
        let mut delayed = redis::pipe();
        for id in &ids {
            delayed
                .cmd("ZSCORE")
                .arg(self.keys.delayed())
                .arg(id.as_str());
        }
        let mut found: Vec<RedisResult<Option<f64>>> = Vec::new();
        if !ids.is_empty() {
            found = delayed
                .ignore_errors()
                .query_async(conn)
                .await
                .map_err(failed)?;
        }
        for (stands, at) in stands.iter_mut().zip(found) {
            *stands |= matches!(at, Ok(Some(_)));
        }
        for list in lists {
            let mut pipe = redis::pipe();
            pipe.ignore_errors();
            let missing: Vec<_> = (0..ids.len()).filter(|at| !stands[*at]).collect();
            for at in &missing {
                let find = pipe.cmd("LPOS").arg(list).arg(ids[*at].as_str());
                find.arg("MAXLEN").arg(FAR);
            }
            if missing.is_empty() {
                break;
            }
            let found: Vec<RedisResult<Option<u64>>> =
                pipe.query_async(conn).await.map_err(failed)?;
            for (at, found) in missing.iter().zip(found) {
                stands[*at] = matches!(found, Ok(Some(_)));
            }
        }
        Ok(stands)
    }

    /// Adds the lists.
    async fn add_lists(
        &self,
        lists: Vec<String>,
        migrations: &Migrations,
        gathered: &mut Gathered,
    ) -> Result<(), Error> {
        let set = migrations.values().map(|m| &m.list);
        let set = set.filter(|list| !list.is_per_worker());
        let feeds = self.old_feeds().await?;
        let mut lists: BTreeSet<String> = lists.into_iter().collect();
        lists.extend(set.map(|list| list.as_str().to_owned()));
        lists.extend(feeds.iter().map(|(list, _)| list.clone()));
        let lists: Vec<_> = lists.into_iter().collect();
        let feed_lists = feeds.iter().map(|(_, feed)| feed);
        let lengths = self
            .lengths(&lists.iter().chain(feed_lists).collect::<Vec<_>>())
            .await?;
        let (lengths, of_feeds) = lengths.split_at(lists.len());
        for (list, &length) in lists.iter().zip(lengths) {
            if let Some(behind) = list.strip_prefix(&self.keys.work_prefix()) {
                let script_type = behind.split(':').next().unwrap_or_default();
                gathered.of(script_type).canonical += length;
                continue;
            }
            let here = feeds.iter().zip(of_feeds).filter(|((of, _), _)| of == list);
            let old = LegacyQueue {
                list: list.clone(),
                waiting: length + here.map(|(_, length)| length).sum::<usize>(),
                copies: gathered.copies.get(list).copied().unwrap_or_default(),
            };
            match self.owner(list, migrations) {
                Some(script_type) => gathered.of(&script_type).old.push(old),
                None => {
                    for script_type in migrations.keys() {
                        gathered.of(script_type).old.push(old.clone());
                    }
                }
            }
        }
        Ok(())
    }

    /// The type of an old list, if it can be told.
    fn owner(&self, list: &str, migrations: &Migrations) -> Option<String> {
        let set = migrations.iter().find(|(_, m)| m.list.as_str() == list);
        if let Some((script_type, _)) = set {
            return Some(script_type.clone());
        }
        if let Some(suffix) = list.strip_prefix(&self.keys.legacy_type_prefix()) {
            return Some(suffix.to_owned());
        }
        let prefixes = [self.keys.legacy_work_prefix(), self.keys.job_prefix()];
        let worker = prefixes
            .iter()
            .find_map(|prefix| list.strip_prefix(prefix))?;
        let only = || match migrations.len() {
            1 => migrations.keys().next().cloned(),
            _ => None,
        };
        by_worker(worker, migrations, self).or_else(only)
    }

    /// The lists into which our workers wait for ids of old lists: the old list, and theirs.
    async fn old_feeds(&self) -> Result<Vec<(String, String)>, Error> {
        let range = redis::cmd("ZRANGE")
            .arg(self.keys.feeds())
            .arg(0)
            .arg(-1)
            .to_owned();
        let members: Vec<String> = self.ask("survey", &range).await?;
        let old = |member: &String| {
            let (worker, queue) = member.split_once(' ')?;
            let old = !queue.starts_with(&self.keys.work_prefix());
            old.then(|| (queue.to_owned(), self.keys.feed(worker, queue)))
        };
        Ok(members.iter().filter_map(old).collect())
    }

    /// The lengths of lists; 0 of what is none.
    pub(in crate::verb) async fn lengths(&self, lists: &[&String]) -> Result<Vec<usize>, Error> {
        if lists.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for list in lists {
            pipe.cmd("LLEN").arg(list);
        }
        let lengths: Vec<RedisResult<usize>> = pipe
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed)?;
        Ok(lengths
            .into_iter()
            .map(|length| length.unwrap_or(0))
            .collect())
    }
}
