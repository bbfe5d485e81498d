//! outcomes: reads records without their inputs and scripts, which may be large.

use meshwork_macros::boxed;
use meshwork_model::job::{Job, field};
use meshwork_model::name::JobId;
use meshwork_model::stored;

use redis::RedisResult;

use crate::broker::Broker;
use crate::error::Error;
use crate::error::pass_denied;
use crate::verb::{MAX_ITEMS, at_most};

/// Fields for a list of jobs: route and outcome, in a few short fields.
const SUMMARY: [&str; 41] = [
    field::FLOW,
    field::ID,
    field::STATUS,
    field::CALLER_ID,
    field::WORKER_ID,
    field::ACTOR_ID,
    field::CONTEXT_ID,
    field::SCRIPT_TYPE,
    field::GROUP,
    field::INSTANCE,
    field::TIMEOUT,
    field::RETRIES,
    field::REPLY,
    field::CREATED_AT,
    field::UPDATED_AT,
    field::CREATED_MS,
    field::UPDATED_MS,
    field::ERROR,
    field::ATTEMPT,
    field::LOST,
    field::TOKEN,
    field::WORKER,
    field::QUEUE,
    field::CONCURRENT,
    field::PRIORITY,
    field::ON_FAILURE,
    field::WAITING,
    field::LOCK,
    field::STOP,
    field::DEAD,
    field::PROGRESS,
    field::RUN_AT,
    field::KEY,
    field::TAGS,
    field::START_BY,
    field::STARTED,
    field::UNIQUE,
    field::BATCH,
    field::PARENT,
    field::CHILDREN,
    field::CALLS,
];

/// Additional fields of the result.
const RESULT: [&str; 6] = [
    field::OUTPUT,
    field::TRACEBACK,
    field::STDOUT,
    field::STDERR,
    field::LOG_PATH,
    field::ENV_VARS,
];

/// Values of fields, in order.
type Values = Vec<Option<Vec<u8>>>;

impl Broker {
    /// Returns the records of several jobs, in order, without script and input.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
    pub async fn outcomes(&self, ids: &[JobId]) -> Result<Vec<Option<Job>>, Error> {
        self.fields_of(ids, &[&SUMMARY[..], &RESULT[..]].concat())
            .await
    }

    /// Returns the records of several jobs, in order, without script, input, environment, result and logs.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
    pub async fn summaries(&self, ids: &[JobId]) -> Result<Vec<Option<Job>>, Error> {
        self.fields_of(ids, &SUMMARY).await
    }

    async fn fields_of(
        &self,
        ids: &[JobId],
        names: &[&'static str],
    ) -> Result<Vec<Option<Job>>, Error> {
        at_most("outcomes", MAX_ITEMS, ids.len())?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for id in ids {
            let key = self.keys.job_hash_key(id);
            let names = names.iter().map(|name| stored::field_of(&self.keys, name));
            pipe.cmd("HMGET").arg(&key).arg(Vec::from_iter(names));
        }
        let records: Vec<RedisResult<Values>> = pipe
            .query_async(&mut self.conn.clone())
            .await
            .map_err(|source| Error::Call {
                verb: "outcomes",
                source,
            })?;
        pass_denied("outcomes", &records)?;
        // A list of this name is a legacy queue, which has the same prefix as jobs. A hash without a status is not a
        // job.
        let status = names.iter().position(|name| *name == field::STATUS);
        let job = |(id, record): (&JobId, RedisResult<Values>)| {
            let record = record.ok()?;
            record.get(status?)?.as_ref()?;
            let fields = names.iter().zip(record);
            let own = |name| stored::field_of(&self.keys, name);
            let set = fields.filter_map(|(name, value)| Some((own(name), value?)));
            Some(stored::job(&self.keys, id.as_str(), set))
        };
        Ok(ids.iter().zip(records).map(job).collect())
    }
}
