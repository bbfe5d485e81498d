//! Waits for the end of a job: on its reply list if a connection is free, else by polling. Replies to jobs of foreign
//! clients are left to them.
//!
//! The record decides, not the reply: a foreign worker may write only the record, and another reader may have taken the
//! reply.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_broker::{Backoff, BlockingConn, Broker, Tries};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::state::Status;
use tokio::time::Instant;

use super::Client;
use crate::Error;
use crate::wait_pool::PooledConnection;

/// Longest wait on the reply list before the record is read.
const SLICE: Duration = Duration::from_secs(1);
/// Pause between two reads of a record whose worker may push no reply: the first, and the longest.
const POLL: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(250));

/// Part of a record to read. Large fields are read only after the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Summary,
    Whole,
}

impl PooledConnection<'_, BlockingConn> {
    /// Waits up to `time` for the reply. Returns true if it arrived, and the record if it was requested; `None` if the
    /// connection broke.
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
                tracing::debug!(%error, "wait for a reply interrupted: waiting again");
                None
            }
        }
    }
}

impl Client {
    /// Waits until a job has ended, in success or error, and returns its record. The wait goes on while the server is
    /// unreachable.
    ///
    /// # Errors
    /// The job does not exist, or has not ended after `patience`; or its slot of a Cluster has been moving for seconds.
    #[boxed]
    pub async fn wait(&self, id: &JobId, patience: Duration) -> Result<Job, Error> {
        let until = Instant::now() + patience;
        let mut space: Option<PooledConnection<'_, BlockingConn>> = None;
        let (mut pause, mut part) = (POLL.0, Part::Summary);
        // Most jobs end soon, so the record is read together with the first reply.
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
                return Err(Error::JobWaitTimeout {
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

    /// Reads the record. Repeats the read until `until` while the server is unreachable, but only for seconds while the
    /// job's slot of a Cluster moves.
    async fn look(&self, id: &JobId, until: Instant, part: Part) -> Result<Job, Error> {
        let (mut tries, mut backoff) = (Tries::until(until), Backoff::new());
        loop {
            let answer = match part {
                Part::Summary => self.summary(id).await,
                Part::Whole => self.status(id).await,
            };
            match answer {
                Err(Error::Broker(error)) if tries.repeat(&error) => {
                    backoff.wait().await;
                }
                answer => return answer,
            }
        }
    }
}
