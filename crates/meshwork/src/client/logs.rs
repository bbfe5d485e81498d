//! Log lines of jobs.

use futures_util::FutureExt;
use meshwork_broker::LogLine;
use meshwork_macros::boxed;
use meshwork_model::name::JobId;
use meshwork_model::state::Status;

use super::Client;
use super::follow::{Follow, SLICE};
use crate::Error;

/// Follows the output of one job until the job has ended.
#[derive(Debug)]
pub struct LogFollower {
    client: Client,
    follow: Follow,
    id: JobId,
    last: Option<String>,
    ended: bool,
}

impl Client {
    /// Returns the stored lines of a job's output, about the newest 1,000, in order.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn log_lines(&self, id: &JobId) -> Result<Vec<LogLine>, Error> {
        let mut lines: Vec<LogLine> = Vec::new();
        loop {
            let last = lines.last().map(|line| line.id.as_str());
            let more = self.broker.log_lines(id, last).await?;
            if more.is_empty() {
                return Ok(lines);
            }
            lines.extend(more);
        }
    }

    /// Follows a job's output, from the first stored line.
    ///
    /// # Errors
    /// The job does not exist, or the call to the server fails.
    #[boxed]
    pub async fn follow_log(&self, id: &JobId) -> Result<LogFollower, Error> {
        let job = self.summary(id).await?;
        Ok(LogFollower {
            client: self.clone(),
            follow: Follow::new(self.broker.clone()),
            id: id.clone(),
            last: None,
            ended: job.status().is_some_and(Status::is_final),
        })
    }
}

impl LogFollower {
    /// Returns the next lines, at most 1,000. Returns `None` when the job has ended and all its lines were returned.
    /// While the server is unreachable, the call is repeated for 15 s.
    ///
    /// # Errors
    /// The job was deleted meanwhile, or a call to the server fails.
    #[boxed]
    pub async fn next(&mut self) -> Result<Option<Vec<LogLine>>, Error> {
        loop {
            let ended = self.ended;
            let after = (self.id.clone(), self.last.clone());
            let lines = self.follow.ask(|broker, blocking| {
                let (id, last) = after.clone();
                async move {
                    let last = last.as_deref();
                    if ended {
                        return broker.log_lines(&id, last).await;
                    }
                    broker.next_log_lines(&blocking, &id, last, SLICE).await
                }
                .boxed()
            });
            let lines = lines.await?;
            if let Some(line) = lines.last() {
                self.last = Some(line.id.clone());
                return Ok(Some(lines));
            }
            if ended {
                return Ok(None);
            }
            let summary = self.client.broker.summaries(std::slice::from_ref(&self.id));
            let job = match summary.await {
                // The next wait repeats the read.
                Err(error) if error.is_temporary() && !error.is_moving() => continue,
                answer => answer?.into_iter().next().flatten(),
            };
            let job = job.ok_or_else(|| Error::JobNotFound {
                id: self.id.clone(),
            })?;
            // Lines that were printed before the end are read once more.
            self.ended = job.status().is_some_and(Status::is_final);
        }
    }
}
