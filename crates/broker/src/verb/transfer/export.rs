//! export: reads a whole store, page by page.

use meshwork_macros::boxed;
use std::collections::BTreeMap;

use meshwork_model::export::{Bytes, MAX_IDS, StoredJob, StoredRecord};
use meshwork_model::job::{field, text};
use meshwork_model::name::{BatchId, JobId};
use redis::{FromRedisValue, RedisResult, Value};

use crate::broker::Broker;
use crate::error::Error;
use crate::error::pass_denied;
use crate::verb::Fields;
use crate::verb::inspect::jobs::{SCAN_COUNT, glob_literal, texts};

/// Greatest number of bytes of records in one call, except for a single larger record: they are in memory at once.
const READ_BYTES: u64 = 16 * 1024 * 1024;
/// Number of batches, schedules and members of sets in one page.
const PAGE: usize = MAX_IDS;

fn failed(source: redis::RedisError) -> Error {
    let verb = "export";
    Error::Call { verb, source }
}

fn bytes(fields: Fields) -> BTreeMap<String, Bytes> {
    let fields = fields.into_iter();
    fields
        .map(|(name, value)| (text(name), Bytes(value)))
        .collect()
}

/// A list of ids, in the order in which their jobs run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdList {
    /// The queue.
    pub queue: String,
    key: String,
    sorted: bool,
}

impl Broker {
    /// Returns the prefix of all keys.
    #[must_use]
    pub fn key_prefix(&self) -> String {
        self.keys.prefix()
    }

    /// Returns all settings of queues, as stored.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn export_settings(&self) -> Result<BTreeMap<String, Bytes>, Error> {
        let mut all = redis::cmd("HGETALL");
        all.arg(self.keys.config());
        Ok(bytes(self.ask("export", &all).await?))
    }

    /// Returns a page of the ids of all jobs, in no order, and the cursor of the next page. Begin at 0, and continue
    /// until the cursor is 0.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn export_ids(&self, from: u64) -> Result<(Vec<JobId>, u64), Error> {
        let mut scan = redis::cmd("SCAN");
        let pattern = format!("{}*", glob_literal(&self.keys.job_prefix()));
        scan.arg(from).arg("MATCH").arg(pattern);
        scan.arg("COUNT").arg(SCAN_COUNT).arg("TYPE").arg("hash");
        let (next, keys): (u64, Vec<Vec<u8>>) = self.ask("export", &scan).await?;
        let ids = texts(keys).filter_map(|key| self.keys.job_of_key(&key));
        Ok((ids.collect(), next))
    }

    /// Returns the records of the first of these jobs, as many as one call reads, and the number of ids that were read.
    /// Missing jobs are left out.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn export_jobs(&self, ids: &[JobId]) -> Result<(Vec<StoredJob>, usize), Error> {
        let ids = &ids[..self.readable(ids).await?];
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for id in ids {
            pipe.cmd("HGETALL").arg(self.keys.job_hash_key(id));
            for set in [self.keys.delayed(), self.keys.dead(), self.keys.ended()] {
                pipe.cmd("ZSCORE").arg(set).arg(id.as_str());
            }
        }
        let mut answers = self.answers(pipe).await?.into_iter();
        let mut jobs = Vec::with_capacity(ids.len());
        for id in ids {
            let fields = bytes(read(answers.next().flatten()).unwrap_or_default());
            let mut score = || read::<Option<String>>(answers.next().flatten()).flatten();
            let (delayed, dead, ended) = (score(), score(), score());
            if fields.contains_key(field::STATUS) {
                let id = id.as_str().to_owned();
                jobs.push(StoredJob {
                    id,
                    delayed,
                    dead,
                    ended,
                    fields,
                });
            }
        }
        Ok((jobs, ids.len()))
    }

    /// Returns the number of records that are read in one call, by their size; at least one.
    async fn readable(&self, ids: &[JobId]) -> Result<usize, Error> {
        let ids = &ids[..ids.len().min(PAGE)];
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        const LARGE: [&str; 3] = [field::SCRIPT, field::INPUT, field::OUTPUT];
        for id in ids {
            for name in LARGE {
                pipe.cmd("HSTRLEN")
                    .arg(self.keys.job_hash_key(id))
                    .arg(name);
            }
        }
        let answers = self.answers(pipe).await?;
        let mut whole = 0;
        let sizes = answers.chunks(LARGE.len());
        let fits = sizes.take_while(|sizes| {
            let sizes = sizes.iter().map(|size| read(size.clone()).unwrap_or(0_u64));
            whole += sizes.sum::<u64>();
            whole <= READ_BYTES
        });
        Ok(fits.count().max(1).min(ids.len()))
    }

    async fn answers(&self, pipe: redis::Pipeline) -> Result<Vec<Option<Value>>, Error> {
        if pipe.is_empty() {
            return Ok(Vec::new());
        }
        let answers: Vec<RedisResult<Value>> = pipe
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed)?;
        // A key of another type is left out. A missing right would leave out everything.
        pass_denied("export", &answers)?;
        Ok(answers.into_iter().map(Result::ok).collect())
    }

    /// Returns the prefetch lists, then the queues, then the backlogs of keys; and the legacy lists that contain
    /// something.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn export_lists(&self) -> Result<(Vec<IdList>, Vec<String>), Error> {
        let mut lists = Vec::new();
        let list = |queue: String, key, sorted| IdList { queue, key, sorted };
        for member in self.whole_set(&self.keys.prefetch_registry()).await? {
            if let Some((_, queue)) = member.split_once(' ') {
                let key = format!("{}{member}", self.keys.prefetch_prefix());
                lists.push(list(queue.to_owned(), key, false));
            }
        }
        let work = self.keys.work_prefix();
        let (mut queues, old): (Vec<_>, Vec<_>) = self
            .lists()
            .await?
            .into_iter()
            .partition(|queue| queue.starts_with(&work));
        queues.sort();
        queues.dedup();
        lists.extend(
            queues
                .into_iter()
                .map(|queue| list(queue.clone(), queue, false)),
        );
        for member in self.whole_set(&self.keys.backlog_index()).await? {
            if let Some((queue, _)) = member.split_once(' ') {
                lists.push(list(queue.to_owned(), self.keys.backlog(&member), true));
            }
        }
        Ok((lists, old))
    }

    /// Returns true if a list under the name of a job contains ids of jobs. Another list is of no Hero client.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn export_has_jobs(&self, list: &str) -> Result<bool, Error> {
        if !list.starts_with(&self.keys.job_prefix()) {
            return Ok(true);
        }
        let mut range = redis::cmd("LRANGE");
        range.arg(list).arg(0).arg(PAGE - 1);
        let ids: Vec<Vec<u8>> = self.ask("export", &range).await?;
        let mut exist = redis::cmd("EXISTS");
        for id in texts(ids) {
            exist.arg(self.keys.job_hash_key(&JobId::foreign(id)));
        }
        // An empty list is gone meanwhile.
        match exist.args_iter().count() > 1 {
            true => Ok(self.ask::<u64>("export", &exist).await? > 0),
            false => Ok(false),
        }
    }

    /// Returns all members of a small sorted set.
    async fn whole_set(&self, key: &str) -> Result<Vec<String>, Error> {
        let mut range = redis::cmd("ZRANGE");
        range.arg(key).arg(0).arg(-1);
        let members: Vec<Vec<u8>> = self.ask("export", &range).await?;
        Ok(texts(members).collect())
    }

    /// Returns a page of the ids in a list, the next to run first.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn export_list(&self, list: &IdList, page: usize) -> Result<Vec<String>, Error> {
        let (from, to) = (page * PAGE, (page + 1) * PAGE - 1);
        let ids: Vec<Vec<u8>> = if list.sorted {
            let mut range = redis::cmd("ZRANGE");
            range.arg(&list.key).arg(from).arg(to);
            self.ask("export", &range).await?
        } else {
            // Workers pop from the right end.
            let mut range = redis::cmd("LRANGE");
            let back = |at: usize| -1 - i64::try_from(at).unwrap_or(i64::MAX - 1);
            range.arg(&list.key).arg(back(to)).arg(back(from));
            let mut ids: Vec<Vec<u8>> = self.ask("export", &range).await?;
            ids.reverse();
            ids
        };
        Ok(texts(ids).collect())
    }

    /// Returns a page of the batches that have not ended, or of those that have.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn export_batches(
        &self,
        ended: bool,
        page: usize,
    ) -> Result<Vec<StoredRecord>, Error> {
        let set = match ended {
            true => self.keys.batches_ended(),
            false => self.keys.batches_open(),
        };
        let (from, to) = (page * PAGE, (page + 1) * PAGE - 1);
        let mut range = redis::cmd("ZRANGE");
        range.arg(set).arg(from).arg(to).arg("WITHSCORES");
        let found: Vec<(String, String)> = self.ask("export", &range).await?;
        let key = |name: &str| self.keys.batch(&BatchId::foreign(name.to_owned()));
        let mut records = self.records(found, key).await?;
        if ended {
            for record in &mut records {
                record.ended = record.due.take();
            }
        }
        Ok(records)
    }

    async fn records(
        &self,
        found: Vec<(String, String)>,
        key: impl Fn(&str) -> String,
    ) -> Result<Vec<StoredRecord>, Error> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for (name, _) in &found {
            pipe.cmd("HGETALL").arg(key(name));
        }
        let answers = self.answers(pipe).await?;
        let record = |((name, score), answer): ((String, String), Option<Value>)| {
            let fields = bytes(read(answer).unwrap_or_default());
            (!fields.is_empty()).then_some(StoredRecord {
                name,
                due: Some(score),
                ended: None,
                fields,
            })
        };
        Ok(found.into_iter().zip(answers).filter_map(record).collect())
    }

    /// Returns a page of the open jobs of a batch, and the cursor of the next page. Begin at 0, and continue until the
    /// cursor is 0.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn export_members(
        &self,
        batch: &str,
        from: u64,
    ) -> Result<(Vec<String>, u64), Error> {
        let mut scan = redis::cmd("SSCAN");
        let key = self.keys.members(&BatchId::foreign(batch.to_owned()));
        scan.arg(key).arg(from).arg("COUNT").arg(PAGE / 2);
        let (next, ids): (u64, Vec<Vec<u8>>) = self.ask("export", &scan).await?;
        let mut ids: Vec<_> = texts(ids).collect();
        ids.sort();
        Ok((ids, next))
    }

    /// Returns the first jobs of a batch.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn export_joined(&self, batch: &str) -> Result<Vec<String>, Error> {
        let mut range = redis::cmd("LRANGE");
        let key = self.keys.joined(&BatchId::foreign(batch.to_owned()));
        range.arg(key).arg(0).arg(PAGE - 1);
        let ids: Vec<Vec<u8>> = self.ask("export", &range).await?;
        Ok(texts(ids).collect())
    }

    /// Returns a page of all schedules, in no order, and the cursor of the next page. Begin at 0, and continue until
    /// the cursor is 0.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn export_schedules(&self, from: u64) -> Result<(Vec<StoredRecord>, u64), Error> {
        let (names, next) = self.schedule_names(from).await?;
        let mut scores = redis::pipe();
        for name in &names {
            scores.cmd("ZSCORE").arg(self.keys.schedules());
            scores.arg(name.as_str());
        }
        let scores = match names.is_empty() {
            true => Vec::new(),
            false => self.answers(scores).await?,
        };
        // One that the set of all schedules lacks is due at once.
        let score = |score| read(score).unwrap_or_else(|| "0".to_owned());
        let names = names.iter().map(ToString::to_string);
        let named = names.zip(scores.into_iter().map(score));
        let key = |name: &str| {
            name.parse()
                .map_or_else(|_| String::new(), |name| self.keys.schedule(&name))
        };
        Ok((self.records(named.collect(), key).await?, next))
    }
}

/// Returns the value of an answer, if it has one of this type.
fn read<T: FromRedisValue>(answer: Option<Value>) -> Option<T> {
    redis::from_redis_value(answer?).ok()
}
