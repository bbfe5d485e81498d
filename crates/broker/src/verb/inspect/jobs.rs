//! inspect: reads jobs. Changes nothing, and never scans all keys in one call.

use std::collections::BTreeSet;

use meshwork_macros::boxed;
use meshwork_model::job::{Job, field};
use meshwork_model::keys::context::{ContextKeys, Counter};
use meshwork_model::name::JobId;
use meshwork_model::state::Status;

use crate::broker::Broker;
use crate::error::Error;
use crate::error::pass_denied;
use crate::verb::{Fields, MAX_ITEMS, at_most, job};

/// Number of keys in each step of a scan.
pub(crate) const SCAN_COUNT: usize = 500;
/// Greatest number of pages in which a beginning of an id is searched: half a million keys.
const MOST_PAGES: usize = 1000;

/// A page of jobs.
#[derive(Debug, Clone, Default)]
pub struct JobPage {
    /// The jobs, in no order, as in [`Broker::summaries`].
    pub jobs: Vec<Job>,
    /// Cursor of the next page; 0 after the last one.
    pub next: u64,
}

pub(crate) fn failed(source: redis::RedisError) -> Error {
    Error::Call {
        verb: "inspect",
        source,
    }
}

impl Broker {
    /// Returns the record of a job, if it exists.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn inspect(&self, id: &JobId) -> Result<Option<Job>, Error> {
        Ok(self
            .inspect_many(std::slice::from_ref(id))
            .await?
            .pop()
            .flatten())
    }

    /// Returns the records of several jobs, in order.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
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
        let records: Vec<redis::RedisResult<Fields>> = self.ask_all("inspect", &pipe).await?;
        pass_denied("inspect", &records)?;
        // A list of this name is a legacy queue, which has the same prefix as jobs. A hash without a status is not a
        // job.
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

    /// Returns the statuses of several jobs, in order; `None` for jobs that do not exist or have an unknown status.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
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
        let words: Vec<redis::RedisResult<Option<Vec<u8>>>> =
            self.ask_all("inspect", &pipe).await?;
        pass_denied("statuses", &words)?;
        let status = |word: redis::RedisResult<Option<Vec<u8>>>| {
            String::from_utf8(word.ok()??).ok()?.parse().ok()
        };
        Ok(words.into_iter().map(status).collect())
    }

    /// Returns a page of all jobs. Begin at 0 and continue with `next` until it is 0. A job that exists throughout is
    /// returned at least once (`SCAN`; Hero's `KEYS` would block the server).
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn list(&self, from: u64) -> Result<JobPage, Error> {
        let (next, ids) = self.scan_ids(from, &self.keys.job_prefix()).await?;
        let mut jobs = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(MAX_ITEMS) {
            jobs.extend(self.summaries(chunk).await?.into_iter().flatten());
        }
        Ok(JobPage { jobs, next })
    }

    /// Returns up to `most` ids that begin with this text, in no order. Reads up to 1,000 pages of keys.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn ids_beginning(&self, text: &str, most: usize) -> Result<Vec<JobId>, Error> {
        let prefix = self.keys.job_hash_key(&JobId::foreign(text.to_owned()));
        let (mut from, mut found) = (0, BTreeSet::new());
        for _ in 0..MOST_PAGES {
            let (next, ids) = self.scan_ids(from, &prefix).await?;
            // The index of a context has all of its jobs.
            found.extend(ids.into_iter().filter(|id| id.as_str().starts_with(text)));
            from = next;
            if from == 0 || found.len() >= most {
                break;
            }
        }
        Ok(found.into_iter().take(most).collect())
    }

    /// Returns the ids of jobs in a page of the keys that begin with `prefix`, and the cursor of the next page. For a user who
    /// may not scan it is a page of the index of the context's jobs.
    async fn scan_ids(&self, from: u64, prefix: &str) -> Result<(u64, Vec<JobId>), Error> {
        let mut scan = redis::cmd("SCAN");
        scan.arg(from).arg("MATCH");
        scan.arg(format!("{}*", glob_literal(prefix)));
        scan.arg("COUNT").arg(SCAN_COUNT).arg("TYPE").arg("hash");
        let scanned = self.ask::<(u64, Vec<Vec<u8>>)>("inspect", &scan).await;
        let (next, keys) = match (scanned, self.keys.context()) {
            (Err(error), Some(context)) if error.is_denied() => self.indexed(context, from).await?,
            (scanned, _) => scanned?,
        };
        let ids = texts(keys).filter_map(|key| self.keys.job_of_key(&key));
        Ok((next, ids.collect()))
    }

    /// Returns a page of the index of a context's jobs, for a user who may not scan.
    async fn indexed(
        &self,
        context: &ContextKeys,
        from: u64,
    ) -> Result<(u64, Vec<Vec<u8>>), Error> {
        let mut scan = redis::cmd("ZSCAN");
        scan.arg(context.index(Counter::Job)).arg(from);
        scan.arg("COUNT").arg(SCAN_COUNT);
        let (next, page): (u64, Vec<(Vec<u8>, f64)>) = self.ask("inspect", &scan).await?;
        Ok((next, page.into_iter().map(|(key, _)| key).collect()))
    }

    /// Returns the number of running jobs.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn running(&self) -> Result<usize, Error> {
        self.ask("inspect", redis::cmd("ZCARD").arg(self.keys.lease()))
            .await
    }

    /// Returns the due time of a delayed job, in milliseconds since 1970; `None` if the job is not delayed.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn next_run(&self, id: &JobId) -> Result<Option<u64>, Error> {
        let mut score = redis::cmd("ZSCORE");
        score.arg(self.keys.delayed()).arg(id.as_str());
        let due: Option<f64> = self.ask("inspect", &score).await?;
        Ok(due.map(|ms| ms as u64))
    }
}

/// Returns the names that are UTF-8; others cannot be requested.
pub(crate) fn texts(names: Vec<Vec<u8>>) -> impl Iterator<Item = String> {
    names
        .into_iter()
        .filter_map(|name| String::from_utf8(name).ok())
}

/// Escapes the wildcards of `MATCH`.
pub(crate) fn glob_literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^') {
            literal.push('\\');
        }
        literal.push(c);
    }
    literal
}
