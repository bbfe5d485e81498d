//! inspect: the read side. It changes nothing, and never walks all keys in one call.

use meshwork_model::job::{Job, field};
use meshwork_model::name::JobId;
use meshwork_model::state::Status;

use super::{Fields, MAX_ITEMS, at_most, job};
use crate::{Broker, Error};

/// Keys looked at per step of a scan.
pub(super) const SCAN_COUNT: usize = 500;

/// A part of all jobs.
#[derive(Debug, Clone, Default)]
pub struct JobPage {
    /// The jobs, in no order, as [`Broker::summaries`] gives them.
    pub jobs: Vec<Job>,
    /// Where the next page begins; 0 if this was the last.
    pub next: u64,
}

pub(super) fn failed(source: redis::RedisError) -> Error {
    Error::Call {
        verb: "inspect",
        source,
    }
}

impl Broker {
    /// One job's record, if there is one.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn inspect(&self, id: &JobId) -> Result<Option<Job>, Error> {
        Ok(self
            .inspect_many(std::slice::from_ref(id))
            .await?
            .pop()
            .flatten())
    }

    /// The records of several jobs, in order.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`], or the server does not take the call.
    pub async fn inspect_many(&self, ids: &[JobId]) -> Result<Vec<Option<Job>>, Error> {
        at_most("inspect", MAX_ITEMS, ids.len())?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for id in ids {
            pipe.cmd("HGETALL").arg(self.keys.job_hash_key(id));
        }
        let records: Vec<redis::RedisResult<Fields>> = pipe
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed)?;
        // A list of that name is one of the old queues, which begin like jobs; a hash without a status is no job.
        let has_status = |fields: &Fields| {
            let mut names = fields.iter().map(|(name, _)| name);
            names.any(|name| name == field::STATUS.as_bytes())
        };
        let read = |(id, record): (&JobId, redis::RedisResult<Fields>)| {
            let record = record.ok().filter(has_status)?;
            Some(job(&self.keys, id.as_str(), record))
        };
        Ok(ids.iter().zip(records).map(read).collect())
    }

    /// The statuses of several jobs, in order; none where there is no such job, or its status is no word
    /// of ours.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`], or the server does not take the call.
    pub async fn statuses(&self, ids: &[JobId]) -> Result<Vec<Option<Status>>, Error> {
        at_most("statuses", MAX_ITEMS, ids.len())?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for id in ids {
            pipe.cmd("HGET")
                .arg(self.keys.job_hash_key(id))
                .arg(field::STATUS);
        }
        let words: Vec<redis::RedisResult<Option<Vec<u8>>>> = pipe
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed)?;
        let status = |word: redis::RedisResult<Option<Vec<u8>>>| {
            String::from_utf8(word.ok()??).ok()?.parse().ok()
        };
        Ok(words.into_iter().map(status).collect())
    }

    /// A page of all jobs: begin at 0, go on at `next` until it is 0. Each job that is there all the time
    /// comes at least once (`SCAN`; Hero's `KEYS` would hold up the server).
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn list(&self, from: u64) -> Result<JobPage, Error> {
        let prefix = self.keys.job_prefix();
        let mut scan = redis::cmd("SCAN");
        scan.arg(from)
            .arg("MATCH")
            .arg(format!("{}*", glob_literal(&prefix)));
        scan.arg("COUNT").arg(SCAN_COUNT).arg("TYPE").arg("hash");
        let (next, keys): (u64, Vec<Vec<u8>>) = self.ask("inspect", &scan).await?;
        let ids: Vec<_> = texts(keys)
            .filter_map(|key| self.keys.job_of_key(&key))
            .collect();
        let mut jobs = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(MAX_ITEMS) {
            jobs.extend(self.summaries(chunk).await?.into_iter().flatten());
        }
        Ok(JobPage { jobs, next })
    }

    /// The number of jobs that run now.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn running(&self) -> Result<usize, Error> {
        self.ask("inspect", redis::cmd("ZCARD").arg(self.keys.lease()))
            .await
    }

    /// When the job is to run again after a failure, in milliseconds since 1970; none if it waits for no
    /// such time.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn next_run(&self, id: &JobId) -> Result<Option<u64>, Error> {
        let mut score = redis::cmd("ZSCORE");
        score.arg(self.keys.delayed()).arg(id.as_str());
        let due: Option<f64> = self.ask("inspect", &score).await?;
        Ok(due.map(|ms| ms as u64))
    }
}

/// Those names that are text; nobody can ask for another.
pub(super) fn texts(names: Vec<Vec<u8>>) -> impl Iterator<Item = String> {
    names
        .into_iter()
        .filter_map(|name| String::from_utf8(name).ok())
}

/// Text in which no character is a wildcard to `MATCH`.
pub(super) fn glob_literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^') {
            literal.push('\\');
        }
        literal.push(c);
    }
    literal
}
