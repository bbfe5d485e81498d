//! Export of imported jobs back to Bananas.

use meshwork_broker::bananas::{ExportItem, Exported};
use meshwork_model::bananas::{Bucket, Return};

use super::Migrator;
use super::report::{MigrationReport, SkippedJobs};
use crate::Error;

/// Decision about a job.
enum Decision {
    Goes(Return),
    /// The job has ended, or is not selected.
    Done,
    Stays(&'static str),
}

impl Migrator {
    /// Exports imported jobs that have not completed. Each returns to its list, its delay or the dead letters, with its
    /// record and the changes to it. Calls `progress` after each step.
    ///
    /// # Errors
    /// A call to the server fails. Jobs that have moved before stay moved.
    pub async fn export(
        &self,
        mut progress: impl FnMut(&MigrationReport),
    ) -> Result<MigrationReport, Error> {
        let all = self.count_export().await?;
        let (mut moved, mut skipped, mut behind) =
            (MigrationReport::default(), SkippedJobs::default(), 0);
        // Jobs that are imported meanwhile remain for the next export.
        while moved.checked < all && moved.count() < self.limit {
            let mut jobs = self.broker.imported(behind).await?;
            jobs.truncate(self.limit - moved.count());
            let Some(last) = jobs.last() else { break };
            behind = last.number;
            moved.checked += jobs.len();
            let mut going = Vec::new();
            for job in &jobs {
                match self.decide_export(job) {
                    Decision::Goes(to) => going.push((job, to)),
                    Decision::Done => {}
                    Decision::Stays(why) => {
                        skipped.add(job.id.as_str().as_bytes(), place(job), why);
                    }
                }
            }
            self.export_jobs(&going, &mut moved, &mut skipped).await?;
            progress(&moved);
        }
        moved.skip(skipped);
        Ok(moved)
    }

    fn decide_export(&self, job: &ExportItem) -> Decision {
        let keys = self.bananas.keys();
        let Some((origin, record)) = &job.was else {
            return Decision::Stays("what it was cannot be read any more");
        };
        let from = match keys.parse_list(&origin.place) {
            Some(_) => Bucket::List(origin.place.clone()),
            None => Bucket::Later,
        };
        let (route, priority) = from.way(keys, record);
        if origin.record != keys.job(job.id.as_str()) || !self.wants(&route) {
            return Decision::Done;
        }
        if job.runs {
            return Decision::Stays("a worker runs it");
        }
        let Some(stands) = &job.stands else {
            return Decision::Done;
        };
        let list = self.peer.list(keys, &route, priority);
        Decision::Goes(record.exported_record(keys, stands, origin, &list))
    }

    async fn export_jobs(
        &self,
        going: &[(&ExportItem, Return)],
        moved: &mut MigrationReport,
        skipped: &mut SkippedJobs,
    ) -> Result<(), Error> {
        if self.dry_run {
            going
                .iter()
                .for_each(|(_, to)| moved.count_moved(&to.place));
            return Ok(());
        }
        let exported = self.broker.export(self.bananas.keys(), going).await?;
        for ((job, to), exported) in going.iter().zip(exported) {
            let why = match exported {
                Exported::Given => {
                    moved.count_moved(&to.place);
                    continue;
                }
                Exported::Gone => continue,
                Exported::Runs => "a worker runs it",
                Exported::Changed => "it has changed meanwhile: repeat the command",
                Exported::Awaited => "other jobs here wait for it",
                Exported::Odd => "a key there is of another kind",
            };
            skipped.add(job.id.as_str().as_bytes(), place(job), why);
        }
        Ok(())
    }
}

/// Returns the list from which a job was imported.
fn place(job: &ExportItem) -> &str {
    job.was.as_ref().map_or("", |(origin, _)| &origin.place)
}
