//! inputs: results of a job's prerequisites.

use meshwork_macros::boxed;
use std::collections::BTreeMap;

use meshwork_model::job::limits::{MAX_BATCH_INPUTS, MAX_INPUTS, MAX_PREREQUISITES};
use meshwork_model::job::{Input, Job, field};
use meshwork_model::name::{BatchId, JobId};
use meshwork_model::state::Status;
use meshwork_model::stored;
use redis::RedisResult;

use crate::broker::Broker;
use crate::error::Error;
use crate::error::pass_denied;

/// Field of a failed `foreach`: the results of its items as a JSON list, with null for those without one.
const ITEM_RESULTS: &str = "mw_item_results";
/// Field of a failed `foreach`: the errors of its items by index, as a JSON object.
const ITEM_ERRORS: &str = "mw_item_errors";

fn failed(source: redis::RedisError) -> Error {
    let verb = "inputs";
    Error::Call { verb, source }
}

impl Broker {
    /// Returns the results of the prerequisites of `job`, or of the jobs of the batch whose callback it is: in order,
    /// the first 1,000. Results beyond 16 MiB in total are left out.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn inputs(&self, job: &Job) -> Result<Vec<Input>, Error> {
        let batch = job.callback.as_deref().and_then(|of| of.split_once(' '));
        let ids = match batch {
            Some((_, batch)) => self.joined(&BatchId::foreign(batch.to_owned())).await?,
            None => self.waited_for(job),
        };
        let mut inputs = self.sizes(&ids).await?;
        let mut left = MAX_INPUTS;
        let mut read = Vec::new();
        for (at, input) in inputs.iter().enumerate() {
            if input.status == Some(Status::Finished) && input.bytes <= left {
                left -= input.bytes;
                read.push(at);
            }
        }
        let outputs = self.outputs(read.iter().map(|at| &ids[*at])).await?;
        for (at, output) in read.into_iter().zip(outputs) {
            // The record may have been deleted, or may have a longer result now.
            let output = output.filter(|output| output.len() <= inputs[at].bytes);
            let read = |value| stored::read_output(&self.keys, value).unwrap_or_default();
            inputs[at].output = output.map(read);
        }
        self.add_errors(&mut inputs, &mut left).await?;
        Ok(inputs)
    }

    /// Adds the errors of failed jobs, and the results of a `foreach` of which items failed.
    async fn add_errors(&self, inputs: &mut [Input], left: &mut usize) -> Result<(), Error> {
        let is_failed = |input: &&mut Input| input.status == Some(Status::Error);
        let failed: Vec<&mut Input> = inputs.iter_mut().filter(is_failed).collect();
        if failed.is_empty() {
            return Ok(());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for input in &failed {
            let id = JobId::foreign(input.id.clone());
            let fields = [field::ERROR, ITEM_ERRORS, ITEM_RESULTS];
            pipe.cmd("HMGET")
                .arg(self.keys.job_hash_key(&id))
                .arg(&fields);
        }
        let answers: Vec<RedisResult<[Option<Vec<u8>>; 3]>> = pipe
            .query_async(&mut self.conn.clone())
            .await
            .map_err(self::failed)?;
        pass_denied("inputs", &answers)?;
        for (input, answer) in failed.into_iter().zip(answers) {
            let [error, of_items, results] = answer.unwrap_or_default();
            let of_items = of_items.and_then(|text| serde_json::from_slice(&text).ok());
            let error = || {
                let error = error.as_deref().map(String::from_utf8_lossy);
                BTreeMap::from([(0, error.unwrap_or_default().into_owned())])
            };
            input.errors = of_items.unwrap_or_else(error);
            input.bytes = results.as_ref().map_or(0, Vec::len);
            if input.bytes <= *left {
                *left -= input.bytes;
                input.output = results;
            }
        }
        Ok(())
    }

    /// Returns the prerequisites that are jobs.
    fn waited_for(&self, job: &Job) -> Vec<JobId> {
        let is_job = |id: &&String| match self.keys.context() {
            Some(context) => context.parse_job(id.as_bytes()).is_ok(),
            None => true,
        };
        let ids = job.depends_on.iter().filter(is_job);
        ids.take(MAX_PREREQUISITES)
            .map(|id| JobId::foreign(id.clone()))
            .collect()
    }

    async fn joined(&self, batch: &BatchId) -> Result<Vec<JobId>, Error> {
        let mut range = redis::cmd("LRANGE");
        range
            .arg(self.keys.joined(batch))
            .arg(0)
            .arg(MAX_BATCH_INPUTS - 1);
        let ids: Vec<String> = self.ask("inputs", &range).await?;
        Ok(ids.into_iter().map(JobId::foreign).collect())
    }

    async fn sizes(&self, ids: &[JobId]) -> Result<Vec<Input>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        let output = stored::field_of(&self.keys, field::OUTPUT);
        for id in ids {
            let key = self.keys.job_hash_key(id);
            pipe.cmd("HGET").arg(&key).arg(field::STATUS);
            pipe.cmd("HSTRLEN").arg(&key).arg(output);
        }
        let answers: Vec<RedisResult<redis::Value>> = pipe
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed)?;
        pass_denied("inputs", &answers)?;
        let mut answers = answers.into_iter();
        let mut next = || {
            answers
                .next()
                .and_then(Result::ok)
                .unwrap_or(redis::Value::Nil)
        };
        let mut inputs = Vec::with_capacity(ids.len());
        for id in ids {
            let (status, bytes) = (next(), next());
            let word: Option<String> = redis::from_redis_value(status).ok();
            inputs.push(Input {
                id: id.as_str().to_owned(),
                status: word.and_then(|word| word.parse().ok()),
                bytes: redis::from_redis_value(bytes).unwrap_or_default(),
                output: None,
                errors: BTreeMap::new(),
            });
        }
        Ok(inputs)
    }

    async fn outputs<'a>(
        &self,
        ids: impl Iterator<Item = &'a JobId>,
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        let output = stored::field_of(&self.keys, field::OUTPUT);
        let mut any = false;
        for id in ids {
            any = true;
            pipe.cmd("HGET").arg(self.keys.job_hash_key(id)).arg(output);
        }
        if !any {
            return Ok(Vec::new());
        }
        let answers: Vec<RedisResult<Option<Vec<u8>>>> = pipe
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed)?;
        pass_denied("inputs", &answers)?;
        // A finished job without an output has an empty result.
        Ok(answers
            .into_iter()
            .map(|answer| Some(answer.ok()?.unwrap_or_default()))
            .collect())
    }
}
