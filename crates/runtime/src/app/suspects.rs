//! Jobs beside which a process has died. Each of them runs again alone, once and for a short time, so that the one that ends its
//! process is found.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest wait of a suspect for a process without other runs. As long it is alone there; then others run beside it.
pub(super) const ALONE: Duration = Duration::from_secs(5);
/// Time after which a suspect is forgotten that has not run here again.
const FORGOTTEN: Duration = Duration::from_secs(600);
/// Greatest number of suspects. Further jobs fail with their process, as those that were alone in it.
const MAX_SUSPECTS: usize = 10_000;

/// Ids of the jobs, with the time of the end of the process.
#[derive(Debug, Default)]
pub(super) struct Suspects(Mutex<HashMap<String, Instant>>);

impl Suspects {
    pub(super) fn contains(&self, id: &str) -> bool {
        self.known(Instant::now()).contains_key(id)
    }

    /// Adds a job. Returns false if it was one, or no room is left: it has failed.
    pub(super) fn add(&self, id: &str) -> bool {
        self.add_at(id, Instant::now())
    }

    fn add_at(&self, id: &str, now: Instant) -> bool {
        let mut known = self.known(now);
        known.len() < MAX_SUSPECTS && known.insert(id.to_owned(), now).is_none()
    }

    pub(super) fn remove(&self, id: &str) {
        self.known(Instant::now()).remove(id);
    }

    /// Returns the suspects that are not forgotten.
    fn known(&self, now: Instant) -> MutexGuard<'_, HashMap<String, Instant>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, since| now.saturating_duration_since(*since) < FORGOTTEN);
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspect_fails_with_its_second_process() {
        let suspects = Suspects::default();
        assert!(suspects.add("one") && suspects.contains("one"));
        assert!(!suspects.add("one"));
        suspects.remove("one");
        assert!(!suspects.contains("one"));
    }

    #[test]
    fn a_suspect_that_does_not_come_back_is_forgotten() {
        let suspects = Suspects::default();
        let start = Instant::now();
        assert!(suspects.add_at("one", start));
        assert!(suspects.add_at("two", start + FORGOTTEN / 2));
        assert!(suspects.add_at("one", start + FORGOTTEN));
        assert!(!suspects.add_at("two", start + FORGOTTEN));
    }
}
