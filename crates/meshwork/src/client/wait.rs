//! Waits for a job to end: on its reply list if a connection is free, else by polling. Replies to foreign clients'
//! jobs stay for those clients.
//!
//! The record decides, never the reply: a foreign worker may write only the hash, and another reader may have taken
//! the reply.

use std::time::Duration;

use meshwork_broker::{Backoff, BlockingConn, Broker};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::state::Status;
use tokio::time::Instant;

use super::Client;
use crate::Error;
use crate::wait_pool::PooledConnection;

/// Longest single wait on the reply list before the record is read.
const SLICE: Duration = Duration::from_secs(1);
/// Between two looks at a record whose worker may write no reply: at first, and at most.
const POLL: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(250));

/// The part of a record to read: large fields only after the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Summary,
    Whole,
}

impl PooledConnection<'_, BlockingConn> {
    /// Waits for the reply, for `time` at most, and says whether it came, and with it what the record is then, if
    /// that is to be read. None if the connection broke.
    async fn wait(
        &mut self,
        broker: &Broker,
        id: &JobId,
        time: Duration,
        read: bool,
    ) -> Option<(bool, Option<Job>)> {
        let blocking = self.connection.take()?;
        let waited = match read {
            true => broker.wait_for_result(&blocking, id, time).await,
            false => broker
                .wait_for_reply(&blocking, id, time)
                .await
                .map(|replied| (replied, None)),
        };
        match waited {
            Ok(waited) => {
                self.connection = Some(blocking);
                Some(waited)
            }
            Err(error) => {
                tracing::debug!(%error, "a wait for a reply broke off");
                None
            }
        }
    }
}

impl Client {
    /// Waits until a job has ended, well or not, and returns its record.
    ///
    /// # Errors
    /// If there is no such job, or it has not ended after `patience`. While the server is away the wait
    /// goes on.
    pub async fn wait(&self, id: &JobId, patience: Duration) -> Result<Job, Error> {
        let until = Instant::now() + patience;
        let mut space: Option<PooledConnection<'_, BlockingConn>> = None;
        let (mut pause, mut part) = (POLL.0, Part::Summary);
        // Most jobs end soon: the record is read with the first reply. Later it is not read in vain.
        let (mut first, mut known) = (true, None);
        loop {
            let job = match known.take() {
                Some(job) => job,
                None => self.look(id, until, part).await?,
            };
            if job.status().is_some_and(Status::is_final) {
                if part == Part::Whole {
                    return Ok(job);
                }
                part = Part::Whole;
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::NotEnded {
                    id: id.clone(),
                    waited: patience,
                });
            }
            if job.reply && !job.foreign && space.is_none() {
                space = self
                    .wait_pool
                    .enter(async || self.broker.blocking_conn().await)
                    .await;
            }
            let waited = match &mut space {
                Some(space) => {
                    let read = std::mem::take(&mut first);
                    space.wait(&self.broker, id, SLICE.min(left), read).await
                }
                None => None,
            };
            let Some((replied, record)) = waited else {
                (part, space) = (Part::Summary, None);
                tokio::time::sleep(pause.min(left)).await;
                pause = POLL.1.min(pause * 2);
                continue;
            };
            part = match replied || record.is_some() {
                true => Part::Whole,
                false => Part::Summary,
            };
            known = record;
        }
    }

    /// Reads the record, and repeats the read until `until` while the server is away.
    async fn look(&self, id: &JobId, until: Instant, part: Part) -> Result<Job, Error> {
        let mut backoff = Backoff::new();
        loop {
            let answer = match part {
                Part::Summary => self.summary(id).await,
                Part::Whole => self.status(id).await,
            };
            match answer {
                Err(Error::Broker(error)) if error.is_temporary() && Instant::now() < until => {
                    backoff.wait().await;
                }
                answer => return answer,
            }
        }
    }
}
