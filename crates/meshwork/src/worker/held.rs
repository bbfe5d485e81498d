//! The jobs that a worker holds at the moment, for those who renew and stop them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use meshwork_broker::Claimed;
use tokio_util::sync::CancellationToken;

/// Held jobs by their token and id; a job that was lost and claimed again has another token.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<HashMap<(String, String), (Claimed, CancellationToken)>>);

impl Held {
    fn jobs(&self) -> MutexGuard<'_, HashMap<(String, String), (Claimed, CancellationToken)>> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a job; the token returned is cancelled when the job is this worker's no more.
    pub(super) fn add(&self, claimed: &Claimed) -> CancellationToken {
        let stop = CancellationToken::new();
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

    /// Stops the runs of jobs that are this worker's no more. Only those that were asked about are meant:
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
                stop.cancel();
            }
        }
    }

    /// Stops all runs.
    pub(super) fn stop_all(&self) {
        for (_, stop) in self.jobs().values() {
            stop.cancel();
        }
    }
}
