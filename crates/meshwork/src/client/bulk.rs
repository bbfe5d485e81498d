//! Changes of many jobs at once.

use futures_util::StreamExt;
use meshwork_broker::Cancelled;
use meshwork_model::job::Job;

use super::{Client, JobFilter};
use crate::Error;

/// Greatest number of concurrent calls.
const AT_ONCE: usize = 64;

/// Mode of [`Client::cancel_all`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BulkCancel {
    /// Changes nothing; only reports the jobs.
    #[default]
    DryRun,
    /// As [`Client::cancel`] does.
    Cancel,
    /// As [`Client::force_cancel`] does.
    Force,
}

impl Client {
    /// Cancels all open jobs that match `filter`, in pages of some hundred jobs. Reports each with its new state, which
    /// is `None` in a dry run. Returns their number. Jobs that are enqueued meanwhile may be included; bound the
    /// filter's time to prevent that. Running jobs end later, as with [`Client::cancel`].
    ///
    /// # Errors
    /// A call to the server fails. Some jobs may be cancelled then; repeat the call.
    pub async fn cancel_all(
        &self,
        filter: &JobFilter,
        how: BulkCancel,
        mut report: impl FnMut(&Job, Option<Cancelled>),
    ) -> Result<usize, Error> {
        let (mut meant, mut from) = (0, 0);
        loop {
            let mut page = self.find(filter, from).await?;
            page.jobs.retain(Job::is_cancellable);
            meant += page.jobs.len();
            if how == BulkCancel::DryRun {
                page.jobs.iter().for_each(|job| report(job, None));
            } else {
                let force = how == BulkCancel::Force;
                let mut stops = futures_util::stream::iter(&page.jobs)
                    .map(async |job| (job, self.cancel_found(job, force).await))
                    .buffer_unordered(AT_ONCE);
                while let Some((job, stopped)) = stops.next().await {
                    report(job, Some(stopped?));
                }
            }
            from = page.next;
            if from == 0 {
                return Ok(meant);
            }
        }
    }
}
