//! Open jobs for a migration: pages of records in a few short fields, and the type of a record without one.

use meshwork_macros::boxed;
use std::collections::{BTreeMap, BTreeSet};

use meshwork_model::job::field;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::migration::Migration;
use meshwork_model::name::{ActorId, JobId};
use meshwork_model::route::Route;
use meshwork_model::state::Status;
use meshwork_model::stored;
use redis::RedisResult;

use super::super::MAX_ITEMS;
use crate::broker::Broker;
use crate::error::Error;
use crate::verb::inspect::jobs::{glob_literal, texts};

/// Types that migrate.
pub(crate) type Migrations = BTreeMap<String, Migration>;

/// Number of keys in each step of a scan.
const SCAN_COUNT: usize = 1000;

const FIELDS: [&str; 15] = [
    field::STATUS,
    field::REPLY,
    field::WAITING,
    field::LOCK,
    field::TOKEN,
    field::QUEUE,
    field::SCRIPT_TYPE,
    field::WORKER_ID,
    field::ACTOR_ID,
    field::GROUP,
    field::INSTANCE,
    field::PRIORITY,
    field::CREATED_AT,
    field::UPDATED_AT,
    field::FLOW,
];

/// Set that has to contain a job of Meshwork's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// An ended job: that of ended jobs, or of dead letters.
    Ended,
    /// A job that waits for others: that of watched jobs.
    Waiting,
}

impl Kept {
    fn read(values: &[Option<Vec<u8>>]) -> Option<Self> {
        let has = |field: &str| {
            let at = FIELDS.iter().position(|name| *name == field)?;
            values.get(at)?.as_deref().filter(|value| !value.is_empty())
        };
        if has(field::REPLY).is_none() || has(field::FLOW).is_some() {
            return None;
        }
        let status: Status = std::str::from_utf8(has(field::STATUS)?)
            .ok()?
            .parse()
            .ok()?;
        if status.is_final() {
            return Some(Self::Ended);
        }
        has(field::WAITING).map(|_| Self::Waiting)
    }
}

/// A page of records.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// Jobs that may run.
    pub(crate) open: Vec<Open>,
    /// Jobs that have ended or wait.
    pub(crate) kept: Vec<(JobId, Kept)>,
}

/// A job that has not ended.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) id: JobId,
    /// True if the job has started.
    pub(crate) started: bool,
    /// True if a foreign client wrote it.
    pub(crate) foreign: bool,
    /// True if a Meshwork worker runs it.
    pub(crate) ours: bool,
    /// Legacy list that also contains the id.
    pub(crate) lock: Option<String>,
    pub(crate) queue: Option<String>,
    pub(crate) script_type: Option<String>,
    pub(crate) worker_id: Option<String>,
    /// Route in the record, if it is valid.
    pub(crate) route: Option<Route>,
    /// Time of the last write, in milliseconds since 1970, if the record has it.
    pub(crate) written_at: Option<u64>,
}

impl Open {
    fn read(keys: &JobKeys, id: JobId, values: Vec<Option<Vec<u8>>>) -> Option<Self> {
        let mut values = values.into_iter().map(|value| {
            let text = String::from_utf8(value?).ok()?;
            (!text.is_empty()).then_some(text)
        });
        let mut next = || values.next().flatten();
        let (status, reply, waiting) = (next()?, next(), next());
        let (lock, token, queue) = (next(), next(), next());
        let (script_type, worker_id, actor_id) = (next(), next(), next());
        let (group, instance, priority) = (next(), next(), next());
        let (created_at, updated_at) = (next(), next());
        let started = status == "started";
        let route = || {
            Some(Route {
                script_type: script_type.as_deref()?.parse().ok()?,
                group: group.map(|group| group.parse()).transpose().ok()?,
                instance: instance.map(|name| name.parse()).transpose().ok()?,
                priority: priority
                    .map(|word| word.parse())
                    .transpose()
                    .ok()?
                    .unwrap_or_default(),
            })
        };
        let route = reply.as_ref().and_then(|_| route());
        // In a context, a job whose prerequisites have ended keeps this status.
        let ready = status == "dispatched"
            || (keys.context().is_some() && status == "waiting_for_prerequisites");
        (waiting.is_none() && (started || ready)).then(|| Self {
            id,
            started,
            foreign: reply.is_none(),
            ours: token.is_some(),
            lock,
            queue,
            script_type: script_type.map(|name| name.to_lowercase()),
            worker_id: worker_id.or(actor_id),
            route,
            written_at: updated_at
                .or(created_at)
                .and_then(|at| stored::time(keys, &at, None)),
        })
    }

    /// Returns the type of the job, if it can be determined; `others` are further known types. A job without type and
    /// worker has a known type only if there is a single one.
    pub(crate) fn type_in(
        &self,
        migrations: &Migrations,
        others: &BTreeSet<String>,
        broker: &Broker,
    ) -> Option<String> {
        let worker = self.worker_id.as_deref();
        let by_worker = || by_worker(worker?, migrations, broker);
        let by_name = || named(worker?, others.iter().map(String::as_str).chain(TYPES));
        let only = || match migrations.len() {
            1 => migrations.keys().next().cloned(),
            _ => None,
        };
        let alone = |name: &String| worker.is_some() || others.iter().all(|other| other == name);
        let known = self.script_type.clone().or_else(by_worker).or_else(by_name);
        known.or_else(|| only().filter(alone))
    }
}

/// Returns the type of a legacy worker: that of the worker's own legacy list, else the one that its name begins with,
/// as in `osis_runner_1`.
pub(super) fn by_worker(worker: &str, migrations: &Migrations, broker: &Broker) -> Option<String> {
    let actor = ActorId::foreign(worker.to_owned());
    let own = [
        broker.keys.legacy_work_queue(&actor),
        broker.keys.legacy_actor_queue(&actor),
    ];
    let lists = |(_, set): &(&String, &Migration)| own.iter().any(|own| own == set.list.as_str());
    let found = migrations.iter().find(lists).map(|(name, _)| name.clone());
    found.or_else(|| named(worker, migrations.keys().map(String::as_str)))
}

/// Types of scripts that every version of Hero has.
const TYPES: [&str; 4] = ["osis", "sal", "v", "python"];

/// Returns the type that a worker's name begins with.
fn named<'a>(worker: &str, mut types: impl Iterator<Item = &'a str>) -> Option<String> {
    let begins = |name: &&str| {
        let rest = worker.strip_prefix(*name);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    };
    types.find(begins).map(str::to_owned)
}

impl Broker {
    /// Returns the types that migrate.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn migrations(&self) -> Result<BTreeMap<String, Migration>, Error> {
        let config = redis::cmd("HGETALL").arg(self.keys.config()).to_owned();
        let fields: Vec<(String, Vec<u8>)> = self.ask("migrate", &config).await?;
        let migration = |(name, value): (String, Vec<u8>)| {
            let script_type = name.strip_prefix(super::FIELD)?;
            let set = String::from_utf8(value).ok()?.parse().ok()?;
            Some((script_type.to_owned(), set))
        };
        Ok(fields.into_iter().filter_map(migration).collect())
    }

    /// Returns a page of open jobs that do not wait for others. Begin at 0 and continue until the cursor is 0.
    pub(crate) async fn open_jobs(&self, from: u64) -> Result<(Vec<Open>, u64), Error> {
        let prefix = self.keys.job_prefix();
        let mut scan = redis::cmd("SCAN");
        scan.arg(from)
            .arg("MATCH")
            .arg(format!("{}*", glob_literal(&prefix)))
            .arg("COUNT")
            .arg(SCAN_COUNT)
            .arg("TYPE")
            .arg("hash");
        let (next, keys): (u64, Vec<Vec<u8>>) = self.ask("migrate", &scan).await?;
        let ids: Vec<_> = texts(keys)
            .filter_map(|key| self.keys.job_of_key(&key))
            .collect();
        Ok((self.read_jobs(&ids).await?.open, next))
    }

    /// Returns those of these jobs that are open and do not wait for others.
    pub(crate) async fn read_jobs(&self, ids: &[JobId]) -> Result<Read, Error> {
        let mut read = Read::default();
        for chunk in ids.chunks(MAX_ITEMS) {
            let mut pipe = redis::pipe();
            pipe.ignore_errors();
            for id in chunk {
                pipe.cmd("HMGET")
                    .arg(self.keys.job_hash_key(id))
                    .arg(&FIELDS);
            }
            let records: Vec<RedisResult<Vec<Option<Vec<u8>>>>> =
                self.ask_all("inspect", &pipe).await?;
            for (id, record) in chunk.iter().zip(records) {
                let Ok(values) = record else { continue };
                read.kept
                    .extend(Kept::read(&values).map(|kept| (id.clone(), kept)));
                read.open.extend(Open::read(&self.keys, id.clone(), values));
            }
        }
        Ok(read)
    }
}
