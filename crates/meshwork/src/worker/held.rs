//! The jobs that a worker holds at the moment, for those who renew and stop them.

use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use meshwork_broker::Claimed;

use crate::runner::{StopReason, StopSignal};

/// Held jobs by the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Held {
    jobs: Mutex<Jobs>,
}

#[derive(Debug, Default)]
struct Jobs {
    added: u64,
    by_place: HashMap<u64, Job>,
}

#[derive(Debug)]
struct Job {
    claimed: Arc<Claimed>,
    stop: StopSignal,
    /// Its run is over, and its result on the way: the server may know it already.
    ended: bool,
    /// It is to be handed back, and is held until that is done, however its run ends.
    given_up: bool,
}

impl Held {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        // No code that can panic runs under the lock.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a job; the signal returned is given when its run is to stop. The number is its place.
    pub(super) fn add(&self, claimed: &Arc<Claimed>) -> (StopSignal, u64) {
        let stop = StopSignal::default();
        let job = Job {
            claimed: Arc::clone(claimed),
            stop: stop.clone(),
            ended: false,
            given_up: false,
        };
        let mut jobs = self.jobs();
        jobs.added += 1;
        let place = jobs.added;
        jobs.by_place.insert(place, job);
        (stop, place)
    }

    /// Its run is over; it is held until the server knows.
    pub(super) fn ended(&self, place: u64) {
        if let Some(job) = self.jobs().by_place.get_mut(&place) {
            job.ended = true;
        }
    }

    /// Holds it no longer, unless it is to be handed back.
    pub(super) fn remove(&self, place: u64) {
        let mut jobs = self.jobs();
        match jobs.by_place.get_mut(&place) {
            Some(job) if job.given_up => job.ended = true,
            _ => drop(jobs.by_place.remove(&place)),
        }
    }

    /// What is held now.
    pub(super) fn all(&self) -> Vec<Claimed> {
        let jobs = self.jobs();
        let held = jobs.by_place.values();
        held.map(|job| (*job.claimed).clone()).collect()
    }

    /// Ends all runs, whose jobs are to be handed back; they stay held, so that their leases last until then. Gives
    /// them, the newest first: handed back in this order, each to the front of its queue, the oldest is the next one
    /// again.
    pub(super) fn give_up(&self) -> Vec<Arc<Claimed>> {
        let mut jobs = self.jobs();
        let mut all: Vec<_> = jobs.by_place.iter_mut().collect();
        all.sort_unstable_by_key(|(place, _)| std::cmp::Reverse(**place));
        let give_up = |(_, job): (_, &mut Job)| {
            job.given_up = true;
            job.stop.stop(StopReason::Lost);
            Arc::clone(&job.claimed)
        };
        all.into_iter().map(give_up).collect()
    }

    /// The ids of what is held now.
    pub(super) fn ids(&self) -> Vec<String> {
        let jobs = self.jobs();
        let held = jobs.by_place.values();
        held.map(|job| job.claimed.job.id.clone()).collect()
    }

    /// How many are held now.
    pub(super) fn len(&self) -> usize {
        self.jobs().by_place.len()
    }

    /// Ends the runs of jobs that are this worker's no more, and says how many they are. Only those that were asked about
    /// are meant: the same job may have been claimed anew since, with another token. What has ended by itself is no loss:
    /// its report came before the question.
    pub(super) fn lose(&self, asked: &[Claimed], gone: &[String]) -> usize {
        if gone.is_empty() {
            return 0;
        }
        let meant: HashSet<_> = asked
            .iter()
            .filter(|claimed| gone.contains(&claimed.job.id))
            .map(|claimed| (&claimed.token, &claimed.job.id))
            .collect();
        let mut lost = 0;
        for job in self.jobs().by_place.values() {
            let id = &job.claimed.job.id;
            if meant.contains(&(&job.claimed.token, id)) {
                job.stop.stop(StopReason::Lost);
                if !job.ended {
                    tracing::warn!(job = id, "the job was stopped, or its lease was lost");
                    lost += 1;
                }
            }
        }
        lost
    }

    /// Asks the run of a job to stop, if it is held here. It ends in its own report.
    pub(super) fn request_stop(&self, id: &str) -> bool {
        let mut found = false;
        for job in self.jobs().by_place.values() {
            if job.claimed.job.id == id {
                job.stop.stop(StopReason::Requested);
                found = true;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use meshwork_model::job::Job;

    use super::*;

    fn claimed(id: &str) -> Arc<Claimed> {
        Arc::new(Claimed {
            job: Arc::new(Job::from_fields(id, [])),
            queue: "q".to_owned(),
            token: "t".to_owned(),
        })
    }

    #[test]
    fn what_has_ended_is_not_lost_when_the_server_knows_it() {
        let held = Held::default();
        let (_, ended) = held.add(&claimed("ended"));
        let (stop, _) = held.add(&claimed("runs"));
        held.ended(ended);
        let gone = ["ended".to_owned(), "runs".to_owned()];
        assert_eq!(held.lose(&held.all(), &gone), 1);
        assert_eq!(stop.reason(), Some(StopReason::Lost));
    }

    #[test]
    fn what_is_to_be_handed_back_is_held_until_it_is() {
        let held = Held::default();
        let (stop, place) = held.add(&claimed("old"));
        held.add(&claimed("new"));
        let left = held.give_up();
        let left: Vec<_> = left.iter().map(|one| one.job.id.as_str()).collect();
        assert_eq!(left, ["new", "old"]);
        assert_eq!(stop.reason(), Some(StopReason::Lost));
        held.remove(place);
        assert_eq!(held.len(), 2);
        // Its run has ended: that it is another's by then is no loss.
        assert_eq!(held.lose(&held.all(), &["old".to_owned()]), 0);
    }
}
