//! Child jobs: listing and cancelling them.

use futures_util::StreamExt;
use meshwork_broker::{AddedChild, Backoff, Cancelled, Claimed, Tries};
use meshwork_macros::boxed;
use meshwork_model::cancellation::CANCELLED;
use meshwork_model::job::{ChildDigest, Job, NewJob, child_id};
use meshwork_model::name::JobId;

use super::{Client, REPEAT_FOR, worth_repeating};
use crate::Error;

/// Number of children per call, which bounds the memory of a walk through all levels.
const PAGE: u32 = 100;
/// Greatest number of concurrent calls.
const AT_ONCE: usize = 64;

/// The children of one job that a walk has not reached yet.
#[derive(Debug)]
struct Level {
    parent: String,
    /// Number of the next child.
    next: u32,
    /// Number of the last child.
    last: u32,
}

impl Client {
    /// Adds a child of a running job. While the server is unreachable, the call is repeated as by
    /// [`Client::enqueue`].
    pub(crate) async fn add_child(
        &self,
        claimed: &Claimed,
        number: u32,
        job: &NewJob,
        digest: &ChildDigest,
    ) -> Result<AddedChild, Error> {
        let (mut tries, mut backoff) = (Tries::within(REPEAT_FOR), Backoff::new());
        loop {
            match self.broker.add_child(claimed, number, job, digest).await {
                Ok(submitted) => return Ok(submitted),
                Err(error) if worth_repeating(&error, &mut tries) => {
                    tracing::warn!(%error, "child not added: repeating the call");
                    backoff.wait().await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the children of a job, in order, without script, input, result and logs. Deleted children are left out.
    /// A job has at most 1,000 children.
    ///
    /// # Errors
    /// The job does not exist, or a call to the server fails.
    #[boxed]
    pub async fn children(&self, id: &JobId) -> Result<Vec<Job>, Error> {
        let mut level = self.level(id).await?;
        let mut children = Vec::new();
        while level.next <= level.last {
            children.extend(self.page(&mut level).await?);
        }
        Ok(children)
    }

    /// Cancels all descendants of a job: its children, their children, and so on. Reports the outcome for each that had
    /// not ended, and returns their number. The job itself stays as it is; cancel it first ([`Client::cancel`]), so
    /// that it adds no more children. Each child is cancelled before its own children are read. Running jobs end later,
    /// as with [`Client::cancel`]; with `force` at once, as with [`Client::force_cancel`].
    ///
    /// An interrupted call can be repeated. Descendants of a deleted job are not found.
    ///
    /// # Errors
    /// The job does not exist, or a call to the server fails. Some jobs may be cancelled then.
    pub async fn cancel_children(
        &self,
        id: &JobId,
        force: bool,
        mut report: impl FnMut(&Job, Cancelled),
    ) -> Result<usize, Error> {
        let (mut levels, mut stopped) = (vec![self.level(id).await?], 0);
        while let Some(mut level) = levels.pop() {
            let page = self.page(&mut level).await?;
            if level.next <= level.last {
                levels.push(level);
            }
            let open = page.iter().filter(|job| !is_final(job));
            let mut stops = futures_util::stream::iter(open)
                .map(async |job| {
                    (
                        job,
                        self.broker.cancel_anywhere(job, CANCELLED, force).await,
                    )
                })
                .buffer_unordered(AT_ONCE);
            while let Some((job, cancelled)) = stops.next().await {
                report(job, cancelled?);
                stopped += 1;
            }
            // Only a cancelled job adds no more children, so its number of children is final now.
            let ids: Vec<_> = page.iter().map(Job::job_id).collect();
            let again = self.broker.summaries(&ids).await?.into_iter().flatten();
            levels.extend(
                again
                    .map(|job| Level::of(&job))
                    .filter(|level| level.last > 0),
            );
        }
        Ok(stopped)
    }

    async fn level(&self, id: &JobId) -> Result<Level, Error> {
        Ok(Level::of(&self.summary(id).await?))
    }

    /// Returns the next existing children of a job.
    async fn page(&self, level: &mut Level) -> Result<Vec<Job>, Error> {
        let end = level.last.min(level.next.saturating_add(PAGE - 1));
        let ids = (level.next..=end).filter_map(|number| child_id(&level.parent, number).ok());
        let ids: Vec<_> = ids.collect();
        level.next = end + 1;
        let jobs = self.broker.summaries(&ids).await?.into_iter().flatten();
        // The id of a deleted child may belong to another job.
        let is_child = |job: &Job| job.parent.as_deref() == Some(&level.parent);
        Ok(jobs.filter(is_child).collect())
    }
}

impl Level {
    fn of(job: &Job) -> Self {
        Self {
            parent: job.id.clone(),
            next: 1,
            last: job.calls,
        }
    }
}

fn is_final(job: &Job) -> bool {
    job.status()
        .is_some_and(meshwork_model::state::Status::is_final)
}
