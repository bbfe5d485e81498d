//! Purge of a queue: deletes the jobs that wait in it.

use futures_util::StreamExt;
use meshwork_broker::{Deleted, MAX_ITEMS};
use meshwork_macros::boxed;
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::state::Status;

use super::Client;
use crate::Error;

/// Greatest number of concurrent calls.
const AT_ONCE: usize = 64;

/// One step of a purge.
#[derive(Debug, Default)]
struct Step {
    deleted: Vec<JobId>,
    /// Ids whose job does not exist or has ended.
    without_record: Vec<JobId>,
    /// Number of jobs that stay: they run, or wait for other jobs.
    left: usize,
}

impl Client {
    /// Returns the number of jobs that [`Client::purge`] would delete now: those in the lists of the queue, and those
    /// that wait for a slot of their key. A name with a priority selects that list only.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn purgeable(&self, queue: &str) -> Result<usize, Error> {
        let mut count = self.broker.set_aside_count(queue).await?;
        for list in self.broker.lists_of_queue(queue) {
            count += self.broker.list_length(&list).await?;
        }
        Ok(count)
    }

    /// Deletes at most `most` of the jobs that wait in a queue, the next one to run first, in steps of 1,000. Reports
    /// each, and returns their number. Running and delayed jobs, and jobs with prerequisites, stay.
    ///
    /// # Errors
    /// A call to the server fails. Some jobs may be deleted then; repeat the call.
    pub async fn purge(
        &self,
        queue: &str,
        most: usize,
        mut report: impl FnMut(&JobId),
    ) -> Result<usize, Error> {
        let mut deleted = 0;
        for list in self.broker.lists_of_queue(queue) {
            let mut skip = 0;
            loop {
                let count = MAX_ITEMS.min(most - deleted);
                let ids = self.broker.waiting_ids(&list, skip, count).await?;
                if ids.is_empty() {
                    break;
                }
                let step = self.purge_ids(&ids).await?;
                step.deleted.iter().for_each(&mut report);
                deleted += step.deleted.len();
                self.broker
                    .drop_ids(&list, &step.without_record, &step.deleted)
                    .await?;
                skip += step.left;
            }
        }
        // Last, since a job that waits for its key may enter a list meanwhile.
        while deleted < most {
            let mut ids = self.broker.set_aside_ids(queue).await?;
            ids.truncate(most - deleted);
            let step = self.purge_ids(&ids).await?;
            if step.deleted.is_empty() {
                break;
            }
            step.deleted.iter().for_each(&mut report);
            deleted += step.deleted.len();
        }
        Ok(deleted)
    }

    async fn purge_ids(&self, ids: &[JobId]) -> Result<Step, Error> {
        let jobs = self.broker.summaries(ids).await?;
        let mut step = Step::default();
        let mut waiting = Vec::with_capacity(ids.len());
        for (id, job) in ids.iter().zip(jobs) {
            match job.as_ref().and_then(meshwork_model::job::Job::status) {
                Some(Status::Dispatched) => waiting.extend(job),
                Some(status) if !status.is_final() => step.left += 1,
                None if job.is_some() => step.left += 1,
                _ => step.without_record.push(id.clone()),
            }
        }
        let delete = |job| async move { (Job::job_id(job), self.broker.delete(job).await) };
        // Futures in a list keep the whole call `Send`, as a closure of the stream would not.
        let deletions: Vec<_> = waiting.iter().map(delete).collect();
        let mut deletions = futures_util::stream::iter(deletions).buffered(AT_ONCE);
        while let Some((id, deleted)) = deletions.next().await {
            match deleted? {
                Deleted::Deleted => step.deleted.push(id),
                Deleted::Running | Deleted::OfFlow => step.left += 1,
                Deleted::Missing => step.without_record.push(id),
            }
        }
        Ok(step)
    }
}
