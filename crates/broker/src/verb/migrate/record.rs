//! Open jobs as a migration looks at them: a page of records in a few short fields, and the type that a
//! record without one belongs to.

use std::collections::BTreeMap;

use meshwork_model::job::field;
use meshwork_model::migration::Migration;
use meshwork_model::name::{ActorId, JobId, ScriptType};
use redis::RedisResult;

use super::super::MAX_ITEMS;
use super::super::inspect::{failed, glob_literal, texts};
use crate::{Broker, Error};

/// Types that migrate.
pub(crate) type Migrations = BTreeMap<String, Migration>;

/// Keys looked at per step of a scan.
const SCAN_COUNT: usize = 1000;

const FIELDS: [&str; 9] = [
    field::STATUS,
    field::REPLY,
    field::WAITING,
    field::LOCK,
    field::TOKEN,
    field::QUEUE,
    field::SCRIPT_TYPE,
    field::WORKER_ID,
    field::ACTOR_ID,
];

/// A job that has not ended.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) id: JobId,
    /// Whether it has begun.
    pub(crate) started: bool,
    /// Whether a client of another make wrote it.
    pub(crate) foreign: bool,
    /// Whether one of our workers runs it.
    pub(crate) ours: bool,
    /// The old list on which it stands as well.
    pub(crate) lock: Option<String>,
    pub(crate) queue: Option<String>,
    pub(crate) script_type: Option<String>,
    pub(crate) worker_id: Option<String>,
}

impl Open {
    fn read(id: JobId, values: Vec<Option<Vec<u8>>>) -> Option<Self> {
        let mut values = values.into_iter().map(|value| {
            let text = String::from_utf8(value?).ok()?;
            (!text.is_empty()).then_some(text)
        });
        let mut next = || values.next().flatten();
        let (status, reply, waiting) = (next()?, next(), next());
        let (lock, token, queue) = (next(), next(), next());
        let (script_type, worker_id, actor_id) = (next(), next(), next());
        let started = status == "started";
        (waiting.is_none() && (started || status == "dispatched")).then(|| Self {
            id,
            started,
            foreign: reply.is_none(),
            ours: token.is_some(),
            lock,
            queue,
            script_type: script_type.map(|name| name.to_lowercase()),
            worker_id: worker_id.or(actor_id),
        })
    }

    /// The type it belongs to, if that can be told.
    pub(crate) fn type_in(&self, migrations: &Migrations, broker: &Broker) -> Option<String> {
        let by_worker = || by_worker(self.worker_id.as_deref()?, migrations, broker);
        let only = || match migrations.len() {
            1 => migrations.keys().next().cloned(),
            _ => None,
        };
        self.script_type.clone().or_else(by_worker).or_else(only)
    }
}

/// The type of an old worker: the one whose old list is the worker's own, else the one that its name begins
/// with, as in `osis_runner_1`.
pub(super) fn by_worker(worker: &str, migrations: &Migrations, broker: &Broker) -> Option<String> {
    let actor = ActorId::foreign(worker.to_owned());
    let own = [
        broker.keys.legacy_work_queue(&actor),
        broker.keys.legacy_actor_queue(&actor),
    ];
    let lists = |(_, set): &(&String, &Migration)| own.iter().any(|own| own == set.list.as_str());
    let named = |(name, _): &(&String, &Migration)| {
        let rest = worker.strip_prefix(name.as_str());
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    };
    let found = migrations.iter().find(lists);
    let found = found.or_else(|| migrations.iter().find(named));
    found.map(|(name, _)| name.clone())
}

impl Broker {
    /// The types that migrate.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn migrations(&self) -> Result<BTreeMap<String, Migration>, Error> {
        let config = redis::cmd("HGETALL").arg(self.keys.config()).to_owned();
        let fields: Vec<(String, Vec<u8>)> = self.ask(&config).await?;
        let migration = |(name, value): (String, Vec<u8>)| {
            let script_type = name.strip_prefix(super::FIELD)?;
            let set = String::from_utf8(value).ok()?.parse().ok()?;
            Some((script_type.to_owned(), set))
        };
        Ok(fields.into_iter().filter_map(migration).collect())
    }

    /// A page of the jobs that have not ended and wait for no others: begin at 0, go on until it is 0.
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
        let (next, keys): (u64, Vec<Vec<u8>>) = self.ask(&scan).await?;
        let ids: Vec<_> = texts(keys)
            .filter_map(|key| Some(JobId::foreign(key.strip_prefix(&prefix)?.to_owned())))
            .collect();
        let mut open = Vec::new();
        for chunk in ids.chunks(MAX_ITEMS) {
            let mut pipe = redis::pipe();
            pipe.ignore_errors();
            for id in chunk {
                pipe.cmd("HMGET")
                    .arg(self.keys.job_hash_key(id))
                    .arg(&FIELDS);
            }
            let records: Vec<RedisResult<Vec<Option<Vec<u8>>>>> = pipe
                .query_async(&mut self.conn.clone())
                .await
                .map_err(failed)?;
            let read =
                |(id, record): (&JobId, RedisResult<_>)| Open::read(id.clone(), record.ok()?);
            open.extend(chunk.iter().zip(records).filter_map(read));
        }
        Ok((open, next))
    }

    /// The queue of a type by its name.
    pub(super) fn canonical(&self, script_type: &str) -> String {
        let script_type = ScriptType::foreign(script_type.to_owned());
        self.keys.work_queue_type(&script_type)
    }
}
