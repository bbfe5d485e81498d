//! Jobs that a worker has claimed and not yet reported, for the parts that renew and cancel them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use meshwork_runtime::lease::{Lease, Moment};
use meshwork_runtime::{StopReason, StopSignal};

/// Jobs in flight, by the sequence numbers of their claims.
#[derive(Debug)]
pub struct InFlight<J> {
    jobs: Mutex<Jobs<J>>,
}

impl<J> Default for InFlight<J> {
    fn default() -> Self {
        let (added, by_seq) = (0, HashMap::new());
        Self {
            jobs: Mutex::new(Jobs { added, by_seq }),
        }
    }
}

#[derive(Debug)]
struct Jobs<J> {
    added: u64,
    by_seq: HashMap<u64, Entry<J>>,
}

#[derive(Debug)]
struct Entry<J> {
    job: Arc<J>,
    lease: Lease,
    cancel: StopSignal,
    /// True if the job has a slot.
    runs: bool,
    /// True if the run has ended and its result is being sent; the server may have it already.
    ended: bool,
    /// True if the job is being released. It stays in flight until then, however its run ends.
    releasing: bool,
}

/// The jobs in flight at one moment, oldest first.
#[derive(Debug)]
pub(crate) struct Snapshot<J> {
    seqs: Vec<u64>,
    pub(crate) jobs: Vec<J>,
}

impl<J> InFlight<J> {
    fn jobs(&self) -> MutexGuard<'_, Jobs<J>> {
        // No code that can panic runs under the lock.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job that waits for a slot. Returns its cancel signal and its sequence number.
    pub(crate) fn add(&self, job: &Arc<J>, lease: &Lease) -> (StopSignal, u64) {
        let cancel = StopSignal::default();
        let entry = Entry {
            job: Arc::clone(job),
            lease: lease.clone(),
            cancel: cancel.clone(),
            runs: false,
            ended: false,
            releasing: false,
        };
        let mut jobs = self.jobs();
        jobs.added += 1;
        let seq = jobs.added;
        jobs.by_seq.insert(seq, entry);
        (cancel, seq)
    }

    /// Marks a job as running.
    pub(crate) fn begun(&self, seq: u64) {
        if let Some(job) = self.jobs().by_seq.get_mut(&seq) {
            job.runs = true;
        }
    }

    /// Marks a run as ended. The job stays in flight until its report is stored.
    pub(crate) fn ended(&self, seq: u64) {
        if let Some(job) = self.jobs().by_seq.get_mut(&seq) {
            job.ended = true;
        }
    }

    /// Removes a job, unless it is being released.
    pub(crate) fn remove(&self, seq: u64) {
        let mut jobs = self.jobs();
        match jobs.by_seq.get_mut(&seq) {
            Some(job) if job.releasing => job.ended = true,
            _ => drop(jobs.by_seq.remove(&seq)),
        }
    }

    /// Ends all runs to release their jobs, which stay in flight so that their leases last until then. Returns the
    /// jobs, newest first: released in this order, each to the front of its queue, they keep their order.
    pub(crate) fn release_all(&self) -> Vec<Arc<J>> {
        let mut jobs = self.jobs();
        let mut all: Vec<_> = jobs.by_seq.iter_mut().collect();
        all.sort_unstable_by_key(|(seq, _)| std::cmp::Reverse(**seq));
        let release = |(_, job): (_, &mut Entry<J>)| {
            job.releasing = true;
            job.cancel.stop(StopReason::Lost);
            Arc::clone(&job.job)
        };
        all.into_iter().map(release).collect()
    }

    /// Returns the number of jobs in flight that have a slot.
    #[must_use]
    pub fn count(&self) -> usize {
        let jobs = self.jobs();
        jobs.by_seq.values().filter(|job| job.runs).count()
    }

    /// Calls `each` with every job.
    pub fn each(&self, mut each: impl FnMut(&J)) {
        for entry in self.jobs().by_seq.values() {
            each(&entry.job);
        }
    }

    /// Ends the runs of jobs that do not belong to this worker any more, and returns their number. `gone` has their
    /// indexes in the snapshot, since a job may have been claimed again. An ended run does not count: its report was
    /// sent before this snapshot.
    pub(crate) fn lose(
        &self,
        snapshot: &Snapshot<J>,
        gone: &[usize],
        id: impl Fn(&J) -> String,
    ) -> usize {
        let mut lost = 0;
        let jobs = self.jobs();
        for seq in gone.iter().filter_map(|at| snapshot.seqs.get(*at)) {
            let Some(job) = jobs.by_seq.get(seq) else {
                continue;
            };
            job.cancel.stop(StopReason::Lost);
            if !job.ended {
                tracing::warn!(job = id(&job.job), "job aborted: its lease is lost");
                lost += 1;
            }
        }
        lost
    }

    /// Records that the leases of a snapshot, except those at the indexes of `others`, last until this moment.
    pub(crate) fn renewed(&self, snapshot: &Snapshot<J>, others: &HashSet<usize>, until: Moment) {
        let jobs = self.jobs();
        let renewed = snapshot.seqs.iter().enumerate();
        for (_, seq) in renewed.filter(|(at, _)| !others.contains(at)) {
            if let Some(job) = jobs.by_seq.get(seq) {
                job.lease.renewed(until);
            }
        }
    }

    /// Requests cancellation of the runs at these indexes of a snapshot.
    pub(super) fn cancel_all(&self, snapshot: &Snapshot<J>, places: &[usize]) {
        let jobs = self.jobs();
        for seq in places.iter().filter_map(|at| snapshot.seqs.get(*at)) {
            if let Some(job) = jobs.by_seq.get(seq) {
                job.cancel.stop(StopReason::Requested);
            }
        }
    }

    /// Requests cancellation of the runs of matching jobs. Each run then reports. Returns false if no job matches.
    #[must_use]
    pub fn cancel(&self, is_meant: impl Fn(&J) -> bool) -> bool {
        let mut found = false;
        for job in self.jobs().by_seq.values() {
            if is_meant(&job.job) {
                job.cancel.stop(StopReason::Requested);
                found = true;
            }
        }
        found
    }
}

impl<J: Clone> InFlight<J> {
    /// Returns the jobs that are in flight now.
    pub(crate) fn snapshot(&self) -> Snapshot<J> {
        let jobs = self.jobs();
        let mut all: Vec<_> = jobs.by_seq.iter().collect();
        all.sort_unstable_by_key(|(seq, _)| **seq);
        let pair = |(seq, entry): (&u64, &Entry<J>)| (*seq, (*entry.job).clone());
        let (seqs, jobs) = all.into_iter().map(pair).unzip();
        Snapshot { seqs, jobs }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use meshwork_runtime::lease::LeaseClock;

    fn lose(in_flight: &InFlight<&'static str>, gone: &[usize]) -> usize {
        in_flight.lose(&in_flight.snapshot(), gone, |job| (*job).to_owned())
    }

    #[test]
    fn what_has_ended_is_not_lost_when_the_server_knows_it() {
        let in_flight = InFlight::default();
        let (_, ended) = in_flight.add(&Arc::new("ended"), &Lease::default());
        let (cancel, _) = in_flight.add(&Arc::new("runs"), &Lease::default());
        in_flight.ended(ended);
        assert_eq!(lose(&in_flight, &[0, 1]), 1);
        assert_eq!(cancel.reason(), Some(StopReason::Lost));
    }

    #[test]
    fn a_job_that_was_claimed_anew_is_not_lost_with_its_old_lease() {
        let in_flight = InFlight::default();
        let (old, seq) = in_flight.add(&Arc::new("job"), &Lease::default());
        let snapshot = in_flight.snapshot();
        in_flight.remove(seq);
        let (new, _) = in_flight.add(&Arc::new("job"), &Lease::default());
        let lost = in_flight.lose(&snapshot, &[0], |job| (*job).to_owned());
        assert_eq!((lost, old.reason(), new.reason()), (0, None, None));
    }

    #[test]
    fn what_is_to_be_released_stays_until_it_is() {
        let in_flight = InFlight::default();
        let (cancel, seq) = in_flight.add(&Arc::new("old"), &Lease::default());
        let (_, waits) = in_flight.add(&Arc::new("new"), &Lease::default());
        in_flight.begun(seq);
        assert_eq!(in_flight.count(), 1);
        in_flight.begun(waits);
        let left = in_flight.release_all();
        assert_eq!(left, [Arc::new("new"), Arc::new("old")]);
        assert_eq!(cancel.reason(), Some(StopReason::Lost));
        in_flight.remove(seq);
        assert_eq!(in_flight.count(), 2);
        // The run has ended, so this is no loss.
        assert_eq!(lose(&in_flight, &[0]), 0);
    }

    #[test]
    fn a_renewal_prolongs_the_leases_that_are_not_gone() {
        let clock = LeaseClock::default();
        let (over, later) = (clock.now(), clock.now() + Duration::from_secs(60));
        let (in_flight, lease) = (InFlight::default(), || Lease::until(over, &clock));
        let (kept, gone, unsent) = (lease(), lease(), lease());
        in_flight.add(&Arc::new("kept"), &kept);
        in_flight.add(&Arc::new("gone"), &gone);
        let snapshot = in_flight.snapshot();
        in_flight.add(&Arc::new("unsent"), &unsent);
        in_flight.renewed(&snapshot, &HashSet::from([1]), later);
        let starts = [kept, gone, unsent].map(|lease| lease.allows_start());
        assert_eq!(starts, [true, false, false]);
    }
}
