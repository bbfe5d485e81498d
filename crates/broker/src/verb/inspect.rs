//! inspect: the read side. It changes nothing, and never walks all keys in one call.

use meshwork_model::job::{Job, field};
use meshwork_model::name::JobId;
use meshwork_model::state::Status;
use redis::FromRedisValue;

use super::{Fields, MAX_ITEMS, at_most, job};
use crate::{Broker, Error};

/// Keys looked at per step of a scan.
const SCAN_COUNT: usize = 500;

/// Listeners looked at in one call.
const LISTENERS: usize = 10 * MAX_ITEMS;

/// Running jobs looked at for a list of queues: beyond, nobody reads the numbers one by one.
const MAX_LISTED: usize = 10 * MAX_ITEMS;

/// A queue and how much waits in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueInfo {
    /// The list.
    pub queue: String,
    /// Ids in it.
    pub waiting: usize,
    /// Workers that listen to it.
    pub listeners: usize,
    /// Jobs from it that run now.
    pub running: usize,
}

/// A part of all jobs.
#[derive(Debug, Clone, Default)]
pub struct JobPage {
    /// The jobs, in no order, as [`Broker::summaries`] gives them.
    pub jobs: Vec<Job>,
    /// Where the next page begins; 0 if this was the last.
    pub next: u64,
}

fn failed(source: redis::RedisError) -> Error {
    Error::Call {
        verb: "inspect",
        source,
    }
}

impl Broker {
    async fn ask<T: FromRedisValue>(&self, cmd: &redis::Cmd) -> Result<T, Error> {
        cmd.query_async(&mut self.conn.clone())
            .await
            .map_err(failed)
    }

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
        // A list of that name is one of the old queues, which begin like jobs.
        let read = |(id, record): (&JobId, redis::RedisResult<Fields>)| {
            let fields = record.ok().filter(|fields| !fields.is_empty())?;
            Some(job(id.as_str(), fields))
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
    /// comes at least once (`SCAN`; seed 2's `KEYS` would hold up the server).
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
        let (next, keys): (u64, Vec<Vec<u8>>) = self.ask(&scan).await?;
        let ids: Vec<_> = texts(keys)
            .filter_map(|key| Some(JobId::foreign(key.strip_prefix(&prefix)?.to_owned())))
            .collect();
        let mut jobs = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(MAX_ITEMS) {
            jobs.extend(self.summaries(chunk).await?.into_iter().flatten());
        }
        Ok(JobPage { jobs, next })
    }

    /// All work queues that hold something or are listened to, by name.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn queues(&self) -> Result<Vec<QueueInfo>, Error> {
        let mut queues = std::collections::BTreeMap::new();
        for queue in self.listened().await? {
            *queues.entry(queue).or_insert(0) += 1;
        }
        let mut from = 0_u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(from)
                .arg("MATCH")
                .arg(format!("{}*", glob_literal(&self.keys.work_prefix())));
            scan.arg("COUNT").arg(SCAN_COUNT).arg("TYPE").arg("list");
            let (next, found): (u64, Vec<Vec<u8>>) = self.ask(&scan).await?;
            for queue in texts(found) {
                queues.entry(queue).or_insert(0);
            }
            from = next;
            if from == 0 {
                break;
            }
        }
        let mut pipe = redis::pipe();
        for queue in queues.keys() {
            pipe.cmd("LLEN").arg(queue);
        }
        let lengths: Vec<usize> = if queues.is_empty() {
            Vec::new()
        } else {
            pipe.query_async(&mut self.conn.clone())
                .await
                .map_err(failed)?
        };
        let running = self.origins().await?;
        let info = |((queue, listeners), waiting): ((String, usize), usize)| QueueInfo {
            running: running.iter().filter(|origin| **origin == queue).count(),
            queue,
            waiting,
            listeners,
        };
        Ok(queues.into_iter().zip(lengths).map(info).collect())
    }

    /// Whether a worker listens to `queue` now.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn is_listened(&self, queue: &str) -> Result<bool, Error> {
        Ok(self
            .listened()
            .await?
            .iter()
            .any(|listened| listened == queue))
    }

    /// The number of jobs that run now.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn running(&self) -> Result<usize, Error> {
        self.ask(redis::cmd("ZCARD").arg(self.keys.lease())).await
    }

    /// The queue that each running job was claimed from, for the first [`MAX_LISTED`].
    async fn origins(&self) -> Result<Vec<String>, Error> {
        let mut range = redis::cmd("ZRANGE");
        range.arg(self.keys.lease()).arg(0).arg(MAX_LISTED - 1);
        let ids: Vec<Vec<u8>> = self.ask(&range).await?;
        let ids: Vec<_> = texts(ids).map(JobId::foreign).collect();
        let mut origins = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(MAX_ITEMS) {
            let jobs = self.summaries(chunk).await?;
            origins.extend(jobs.into_iter().filter_map(|job| job?.queue));
        }
        Ok(origins)
    }

    /// The queue of every listener that is alive, once per listener.
    async fn listened(&self) -> Result<Vec<String>, Error> {
        let now = match self.clock.argument() {
            0 => {
                let (seconds, micros): (u64, u64) = self.ask(&redis::cmd("TIME")).await?;
                seconds * 1000 + micros / 1000
            }
            given => given,
        };
        let mut queues = Vec::new();
        loop {
            let mut range = redis::cmd("ZRANGEBYSCORE");
            range
                .arg(self.keys.feeds())
                .arg(format!("({now}"))
                .arg("+inf");
            range.arg("LIMIT").arg(queues.len()).arg(LISTENERS);
            let members: Vec<String> = self.ask(&range).await?;
            let last = members.len() < LISTENERS;
            let queue = |member: String| match member.split_once(' ') {
                Some((_, queue)) => queue.to_owned(),
                None => member,
            };
            queues.extend(members.into_iter().map(queue));
            if last {
                return Ok(queues);
            }
        }
    }
}

/// Those names that are text; nobody can ask for another.
fn texts(names: Vec<Vec<u8>>) -> impl Iterator<Item = String> {
    names
        .into_iter()
        .filter_map(|name| String::from_utf8(name).ok())
}

/// Text in which no character is a wildcard to `MATCH`.
fn glob_literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^') {
            literal.push('\\');
        }
        literal.push(c);
    }
    literal
}
