//! Survey of what remains on legacy lists. Changes nothing.

use meshwork_macros::boxed;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use meshwork_model::migration::Migration;
use redis::RedisResult;

use super::super::MAX_ITEMS;
use super::clients::Waiting;
use super::record::{Migrations, Open, by_worker};
use crate::broker::Broker;
use crate::error::Error;
use crate::verb::inspect::jobs::{failed, texts};

/// Greatest number of foreign clients' jobs that are searched for on all canonical queues (100 MB). Further ones
/// count as not found.
const MAX_SOUGHT: usize = 1_000_000;
/// Number of entries of a list in a second search for a job that was found on none: 0.1 ms of the server's time.
const FAR: usize = 10_000;
/// Number of entries of a list in each call.
const PAGE: isize = MAX_ITEMS as isize;

/// Count of one kind of finding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Number of findings.
    pub count: usize,
    /// First finding, for a message.
    pub first: Option<String>,
}

impl Found {
    fn add(&mut self, name: &str) {
        self.count += 1;
        self.first.get_or_insert_with(|| name.to_owned());
    }
}

/// A legacy list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyQueue {
    /// Its key.
    pub list: String,
    /// Number of ids on it, and in prefetch lists for it.
    pub waiting: usize,
    /// Number of them that are also on a canonical queue.
    pub copies: usize,
}

impl LegacyQueue {
    /// Returns the number of ids that are only on this list.
    #[must_use]
    pub fn alone(&self) -> usize {
        self.waiting.saturating_sub(self.copies)
    }
}

/// State of one type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeSurvey {
    /// Its name.
    pub script_type: String,
    /// Its migration, if it has one.
    pub migration: Option<Migration>,
    /// Number of ids on its canonical queues.
    pub canonical: usize,
    /// Its legacy lists. A list whose type is unknown belongs to every type.
    pub old: Vec<LegacyQueue>,
    /// Open jobs that are also on a legacy list, or that a legacy worker claimed from there.
    pub marked: Found,
    /// Foreign clients' waiting jobs that are on no canonical queue: on a legacy list, at a legacy worker that has
    /// not started them, or on no list.
    pub adrift: Found,
    /// Jobs that a worker without leases runs, or left.
    pub running: Found,
}

/// State of all types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Types that migrate, have legacy lists or have jobs.
    pub types: Vec<TypeSurvey>,
    /// Open jobs of foreign clients with an unknown type.
    pub unroutable: Found,
    /// Number of watched jobs, with those that wait for prerequisites.
    pub watched: usize,
    /// Foreign clients that wait on lists; `None` if this user may not see them.
    pub listeners: Option<Vec<Waiting>>,
}

impl Survey {
    /// Returns the state of a type.
    #[must_use]
    pub fn of(&self, script_type: &str) -> Option<&TypeSurvey> {
        self.types.iter().find(|of| of.script_type == script_type)
    }
}

/// Data that is collected page by page.
#[derive(Default)]
struct Gathered {
    types: BTreeMap<String, TypeSurvey>,
    copies: HashMap<String, usize>,
    unroutable: Found,
    /// Foreign clients' waiting jobs that have not been found on a queue.
    sought: HashMap<String, Open>,
    /// Types of canonical queues.
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
    /// Surveys all open jobs, all lists, and waiting clients. Scans all keys, in steps.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
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

    /// Searches for foreign clients' waiting jobs on all canonical queues, and among delayed jobs.
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

    /// Returns which of these jobs are delayed, or on one of the lists after all. Foreign workers claim ids from the
    /// end at which a search begins. Jobs that are no longer open are irrelevant.
    async fn stands(&self, jobs: &[Open], lists: &[String]) -> Result<Vec<bool>, Error> {
        let ids: Vec<_> = jobs.iter().map(|job| job.id.clone()).collect();
        let open = self.read_jobs(&ids).await?.open;
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
        let prefetch_lists = self.old_prefetch_lists().await?;
        let mut lists: BTreeSet<String> = lists.into_iter().collect();
        lists.extend(set.map(|list| list.as_str().to_owned()));
        lists.extend(prefetch_lists.iter().map(|(list, _)| list.clone()));
        let lists: Vec<_> = lists.into_iter().collect();
        let prefetch_names = prefetch_lists.iter().map(|(_, feed)| feed);
        let lengths = self
            .lengths(&lists.iter().chain(prefetch_names).collect::<Vec<_>>())
            .await?;
        let (lengths, prefetch_lengths) = lengths.split_at(lists.len());
        for (list, &length) in lists.iter().zip(lengths) {
            if let Some(behind) = list.strip_prefix(&self.keys.work_prefix()) {
                let script_type = behind.split(':').next().unwrap_or_default();
                gathered.of(script_type).canonical += length;
                continue;
            }
            let here = prefetch_lists
                .iter()
                .zip(prefetch_lengths)
                .filter(|((of, _), _)| of == list);
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

    /// Returns the type of a legacy list, if it is known.
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

    /// Returns the prefetch lists for legacy lists, each after its legacy list.
    async fn old_prefetch_lists(&self) -> Result<Vec<(String, String)>, Error> {
        let range = redis::cmd("ZRANGE")
            .arg(self.keys.prefetch_registry())
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

    /// Returns the lengths of lists; 0 for keys of another type.
    pub(in crate::verb) async fn lengths(&self, lists: &[&String]) -> Result<Vec<usize>, Error> {
        if lists.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for list in lists {
            pipe.cmd("LLEN").arg(list);
        }
        let lengths: Vec<RedisResult<usize>> = self.ask_all("inspect", &pipe).await?;
        Ok(lengths
            .into_iter()
            .map(|length| length.unwrap_or(0))
            .collect())
    }
}
