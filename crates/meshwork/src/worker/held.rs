//! The jobs that a worker holds at the moment, for those who renew and stop them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use meshwork_broker::Claimed;

use crate::runner::{StopReason, StopSignal};

/// Held jobs by their token and id; a job that was lost and claimed again has another token.
#[derive(Debug, Default)]
pub(super) struct Held {
    jobs: Mutex<HashMap<(String, String), Job>>,
    added: AtomicU64,
}

#[derive(Debug)]
struct Job {
    claimed: Claimed,
    stop: StopSignal,
    /// How many came before it.
    before: u64,
}

impl Held {
    fn jobs(&self) -> MutexGuard<'_, HashMap<(String, String), Job>> {
        // No code that can panic runs under the lock.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a job; the signal returned is given when its run is to stop.
    pub(super) fn add(&self, claimed: &Claimed) -> StopSignal {
        let stop = StopSignal::default();
        let key = (claimed.token.clone(), claimed.job.id.clone());
        let job = Job {
            claimed: claimed.clone(),
            stop: stop.clone(),
            before: self.added.fetch_add(1, Ordering::Relaxed),
        };
        self.jobs().insert(key, job);
        stop
    }

    /// Holds it no longer.
    pub(super) fn remove(&self, claimed: &Claimed) {
        self.jobs()
            .remove(&(claimed.token.clone(), claimed.job.id.clone()));
    }

    /// What is held now.
    pub(super) fn all(&self) -> Vec<Claimed> {
        self.jobs()
            .values()
            .map(|job| job.claimed.clone())
            .collect()
    }

    /// What is held now, the newest first: handed back in this order, each to the front of its queue, the
    /// oldest is the next one again.
    pub(super) fn newest_first(&self) -> Vec<Claimed> {
        let mut all: Vec<_> = self
            .jobs()
            .values()
            .map(|job| (job.before, job.claimed.clone()))
            .collect();
        all.sort_unstable_by_key(|(before, _)| std::cmp::Reverse(*before));
        all.into_iter().map(|(_, claimed)| claimed).collect()
    }

    /// The ids of what is held now.
    pub(super) fn ids(&self) -> Vec<String> {
        let jobs = self.jobs();
        jobs.values()
            .map(|job| job.claimed.job.id.clone())
            .collect()
    }

    /// How many are held now.
    pub(super) fn len(&self) -> usize {
        self.jobs().len()
    }

    /// Ends the runs of jobs that are this worker's no more. Only those that were asked about are meant:
    /// the same job may have been claimed anew since.
    pub(super) fn lose(&self, asked: &[Claimed], gone: &[String]) {
        let jobs = self.jobs();
        for claimed in asked
            .iter()
            .filter(|claimed| gone.contains(&claimed.job.id))
        {
            let key = (claimed.token.clone(), claimed.job.id.clone());
            if let Some(job) = jobs.get(&key) {
                tracing::warn!(
                    job = claimed.job.id,
                    "the job was stopped, or its lease was lost"
                );
                job.stop.stop(StopReason::Lost);
            }
        }
    }

    /// Asks the run of a job to stop, if it is held here. It ends in its own report.
    pub(super) fn request_stop(&self, id: &str) -> bool {
        let mut found = false;
        for job in self.jobs().values() {
            if job.claimed.job.id == id {
                job.stop.stop(StopReason::Requested);
                found = true;
            }
        }
        found
    }

    /// Ends all runs: their jobs were handed back.
    pub(super) fn lose_all(&self) {
        for job in self.jobs().values() {
            job.stop.stop(StopReason::Lost);
        }
    }
}
