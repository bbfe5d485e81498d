//! Report of an import or export: moved jobs, and skipped jobs with the reason.

use meshwork_model::bananas::Bucket;

/// Greatest number of skipped jobs in a report. Further ones are only counted.
pub const MAX_SKIPPED: usize = 10_000;

/// A job that was not moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedJob {
    /// Id, as text.
    pub id: String,
    /// Key of its list.
    pub place: String,
    /// Reason.
    pub reason: String,
}

/// Progress of an import or export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MigrationReport {
    /// Number of checked jobs. A job that was checked twice counts twice.
    pub checked: usize,
    /// Number of moved jobs that wait for a worker.
    pub waiting: usize,
    /// Number of moved delayed jobs.
    pub scheduled: usize,
    /// Number of moved dead letters.
    pub dead: usize,
    /// Number of removed duplicate entries of jobs that were moved before.
    pub twice: usize,
    /// Skipped jobs, at most [`MAX_SKIPPED`].
    pub skipped: Vec<SkippedJob>,
    /// Number of further skipped jobs.
    pub unlisted: usize,
}

impl MigrationReport {
    /// Returns the number of moved jobs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.waiting + self.scheduled + self.dead
    }

    /// Returns the number of skipped jobs.
    #[must_use]
    pub fn skipped_count(&self) -> usize {
        self.skipped.len() + self.unlisted
    }

    /// Counts a moved job.
    pub(super) fn count_moved(&mut self, place: &Bucket) {
        match place {
            Bucket::List(_) => self.waiting += 1,
            Bucket::Later => self.scheduled += 1,
            Bucket::Dead => self.dead += 1,
        }
    }

    /// Adds skipped jobs.
    pub(super) fn skip(&mut self, skipped: SkippedJobs) {
        let room = MAX_SKIPPED - self.skipped.len();
        let over = skipped.listed.len().saturating_sub(room);
        self.skipped.extend(skipped.listed.into_iter().take(room));
        self.unlisted += skipped.unlisted + over;
    }
}

/// Jobs that one scan of a list skipped.
#[derive(Debug, Default)]
pub(super) struct SkippedJobs {
    listed: Vec<SkippedJob>,
    unlisted: usize,
}

impl SkippedJobs {
    pub(super) fn add(&mut self, id: &[u8], place: &str, reason: impl Into<String>) {
        if self.listed.len() == MAX_SKIPPED {
            self.unlisted += 1;
            return;
        }
        self.listed.push(SkippedJob {
            id: String::from_utf8_lossy(id).into_owned(),
            place: place.to_owned(),
            reason: reason.into(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_jobs_are_listed_up_to_a_bound() {
        let mut moved = MigrationReport::default();
        for many in [MAX_SKIPPED + 2, 3] {
            let mut skipped = SkippedJobs::default();
            for _ in 0..many {
                skipped.add(b"j", "list", "why");
            }
            moved.skip(skipped);
        }
        assert_eq!((moved.skipped.len(), moved.unlisted), (MAX_SKIPPED, 5));
        assert_eq!(moved.skipped_count(), MAX_SKIPPED + 5);
    }
}
