//! The jobs that a worker holds at the moment, for those who renew and stop them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use meshwork_broker::Claimed;

use crate::runner::{StopReason, StopSignal};

/// Held jobs by their token and id; a job that was lost and claimed again has another token.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<HashMap<(String, String), (Claimed, StopSignal)>>);

impl Held {
    fn jobs(&self) -> MutexGuard<'_, HashMap<(String, String), (Claimed, StopSignal)>> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a job; the signal returned is given when its run is to stop.
    pub(super) fn add(&self, claimed: &Claimed) -> StopSignal {
        let stop = StopSignal::default();
        let key = (claimed.token.clone(), claimed.job.id.clone());
        self.jobs().insert(key, (claimed.clone(), stop.clone()));
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
            .map(|(claimed, _)| claimed.clone())
            .collect()
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
            if let Some((_, stop)) = jobs.get(&key) {
                tracing::warn!(
                    job = claimed.job.id,
                    "the job was stopped, or its lease was lost"
                );
                stop.stop(StopReason::Lost);
            }
        }
    }

    /// Asks the run of a job to stop, if it is held here. It ends in its own report.
    pub(super) fn request_stop(&self, id: &str) -> bool {
        let mut found = false;
        for (claimed, stop) in self.jobs().values() {
            if claimed.job.id == id {
                stop.stop(StopReason::Requested);
                found = true;
            }
        }
        found
    }

    /// Ends all runs: their jobs were handed back.
    pub(super) fn lose_all(&self) {
        for (_, stop) in self.jobs().values() {
            stop.stop(StopReason::Lost);
        }
    }
}
