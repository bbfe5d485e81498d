//! Many jobs at once: which are meant, and stopping them.

use futures_util::StreamExt;
use meshwork_broker::{Cancelled, JobPage};
use meshwork_model::job::Job;
use meshwork_model::name::{Group, ScriptType};
use meshwork_model::state::Status;
use meshwork_model::time;

use super::Client;
use super::stop::STOPPED;
use crate::Error;

/// Calls under way at the same time.
const AT_ONCE: usize = 64;

/// Which jobs are meant; by default, all that have not ended.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// Only jobs of this type.
    pub script_type: Option<ScriptType>,
    /// Only jobs that were sent to this group.
    pub group: Option<Group>,
    /// Only jobs of this queue, by its whole name, with its priority where it has one.
    pub queue: Option<String>,
    /// Only jobs of this status.
    pub status: Option<Status>,
    /// Only jobs of this key.
    pub key: Option<String>,
    /// Only jobs that were created before this time, in milliseconds since 1970. One whose record does not
    /// say when it was, in a way that we can read, is not meant then.
    pub until_ms: Option<u64>,
}

/// What to do to many jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BulkStop {
    /// Nothing, but to say which are meant.
    #[default]
    DryRun,
    /// As [`Client::stop`] does.
    Stop,
    /// As [`Client::stop_by_force`] does.
    Force,
}

impl JobFilter {
    /// Whether a job is meant: one that has ended never is, nor one that is being stopped already.
    fn includes(&self, job: &Job, list: &str) -> bool {
        let is = |wanted: Option<&str>, is: Option<&str>| wanted.is_none() || wanted == is;
        let created = || time::parse_iso(&job.created_at);
        job.status().is_some_and(|status| {
            !status.is_final() && self.status.is_none_or(|wanted| wanted == status)
        }) && job.stop.is_none()
            && is(
                self.script_type.as_ref().map(ScriptType::as_str),
                job.script_type.as_deref(),
            )
            && is(self.group.as_ref().map(Group::as_str), job.group.as_deref())
            && is(self.key.as_deref(), job.key.as_deref())
            && is(self.queue.as_deref(), Some(list))
            && self
                .until_ms
                .is_none_or(|until| created().is_some_and(|at| at < until))
    }
}

impl Client {
    /// A page of the jobs that `filter` means, in no order: begin at 0, go on at `next` until it is 0. A page
    /// in between may be empty, and a job may come twice.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn select(&self, filter: &JobFilter, from: u64) -> Result<JobPage, Error> {
        let mut page = self.list(from).await?;
        page.jobs.retain(|job| {
            let list = self.broker.queue_of(job);
            filter.includes(job, &list)
        });
        Ok(page)
    }

    /// Stops all jobs that `filter` means, in pages of some hundred, and tells of each what became of it:
    /// nothing yet in a dry run. Returns how many were meant. Jobs that come while this goes on may be met or
    /// not: bound the filter's time where that matters. Jobs that run end later, as with [`Client::stop`].
    ///
    /// # Errors
    /// If the server does not take a call: some may be stopped then; say the same again.
    pub async fn stop_all(
        &self,
        filter: &JobFilter,
        how: BulkStop,
        mut told: impl FnMut(&Job, Option<Cancelled>),
    ) -> Result<usize, Error> {
        let (mut meant, mut from) = (0, 0);
        loop {
            let page = self.select(filter, from).await?;
            meant += page.jobs.len();
            if how == BulkStop::DryRun {
                page.jobs.iter().for_each(|job| told(job, None));
            } else {
                let force = how == BulkStop::Force;
                let mut stops = futures_util::stream::iter(&page.jobs)
                    .map(async |job| (job, self.broker.cancel(job, STOPPED, force).await))
                    .buffer_unordered(AT_ONCE);
                while let Some((job, stopped)) = stops.next().await {
                    told(job, Some(stopped?));
                }
            }
            from = page.next;
            if from == 0 {
                return Ok(meant);
            }
        }
    }
}
