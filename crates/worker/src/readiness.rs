//! Readiness of runtimes. A runtime that cannot start runs here, for want of an interpreter, a folder or a process, is
//! paused: the worker claims none of its jobs, so that they wait for a worker that can run them. After each pause the
//! runtime is checked; the next claims show whether runs start again.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork_model::outcome::Failure;
use tokio::sync::watch;
use tokio::time::Instant;

/// First pause of a runtime. Most faults of a host last longer; a shorter one would claim jobs only to release them.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause: after the end of a fault, jobs wait this long.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Faults by runtime, with their reasons.
pub type Faults = BTreeMap<String, String>;

/// Runtimes that could not start a run, by name.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    faults: watch::Sender<BTreeMap<String, Fault>>,
}

/// State of a runtime that could not start a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fault {
    /// End of the pause; `None` if claims are tried again.
    until: Option<Instant>,
    /// Number of pauses in a row.
    pauses: u32,
    /// `None` if the last check found none.
    reason: Option<String>,
}

impl Readiness {
    /// Pauses a runtime that could not start a run. Runs that were claimed together count once.
    pub(super) fn failed(&self, runtime: &str, reason: &str) {
        self.pause(runtime, reason, false);
    }

    /// Pauses a runtime; `again` if the pause that ends now is followed by another.
    fn pause(&self, runtime: &str, reason: &str, again: bool) {
        self.faults.send_if_modified(|faults| {
            let fault = faults.entry(runtime.to_owned()).or_default();
            if fault.until.is_some() && !again {
                return false;
            }
            let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(fault.pauses));
            fault.pauses += 1;
            fault.until = Some(Instant::now() + pause.min(LONGEST_PAUSE));
            if fault.reason.is_none() {
                tracing::error!(
                    runtime,
                    error = reason,
                    "runtime paused: it cannot start runs"
                );
            }
            fault.reason = Some(reason.to_owned());
            true
        });
    }

    /// Ends a pause: the check found no fault, or one for which the pause begins again.
    pub(super) fn checked(&self, runtime: &str, found: Result<(), Failure>) {
        if let Err(failure) = found {
            // At once: a claim between two pauses would take jobs that cannot run.
            return self.pause(runtime, &failure.message, true);
        }
        self.faults.send_modify(|faults| {
            if let Some(fault) = faults.get_mut(runtime) {
                (fault.until, fault.reason) = (None, None);
            }
        });
        tracing::info!(runtime, "runtime resumed");
    }

    /// Records that a run has started.
    pub(super) fn started(&self, runtime: impl FnOnce() -> String) {
        if self.faults.borrow().is_empty() {
            return;
        }
        let runtime = runtime();
        // A run that started before the fault proves nothing.
        self.faults.send_if_modified(|faults| {
            let is_over = faults.get(&runtime).is_some_and(|it| it.until.is_none());
            is_over && faults.remove(&runtime).is_some()
        });
    }

    /// Returns true if the jobs of a runtime are not claimed.
    pub(super) fn is_paused(&self, runtime: &str) -> bool {
        let faults = self.faults.borrow();
        faults.get(runtime).is_some_and(|it| it.until.is_some())
    }

    /// Returns true if no runtime has failed.
    pub(super) fn is_whole(&self) -> bool {
        self.faults.borrow().is_empty()
    }

    /// Returns a receiver that is notified of changes.
    pub(super) fn changes(&self) -> watch::Receiver<BTreeMap<String, Fault>> {
        self.faults.subscribe()
    }

    /// Returns the known faults.
    pub(super) fn faults(&self) -> Faults {
        let faults = self.faults.borrow();
        let known = faults.iter();
        known
            .filter_map(|(runtime, fault)| Some((runtime.clone(), fault.reason.clone()?)))
            .collect()
    }

    /// Returns the pause that ends next.
    pub(super) fn next(&self) -> Option<(String, Instant)> {
        let faults = self.faults.borrow();
        let paused = faults.iter();
        paused
            .filter_map(|(runtime, fault)| Some((runtime.clone(), fault.until?)))
            .min_by_key(|(_, until)| *until)
    }
}

#[cfg(test)]
mod tests {
    use meshwork_model::outcome::FailureKind;

    use super::*;

    /// Returns true if a call sets a pause of this length. The clock is read before and after the call.
    fn pauses(readiness: &Readiness, expected: Duration, act: impl FnOnce(&Readiness)) -> bool {
        let before = Instant::now();
        act(readiness);
        let after = Instant::now();
        let (_, until) = readiness.next().unwrap();
        (before + expected..=after + expected).contains(&until)
    }

    #[test]
    fn pauses_grow_up_to_a_limit_and_begin_anew_after_a_run() {
        let readiness = Readiness::default();
        let fails = |it: &Readiness| it.failed("python", "no room");
        let check_fails = |it: &Readiness| {
            it.checked(
                "python",
                Err(Failure::new(FailureKind::NotStarted, "no room")),
            );
        };
        assert!(pauses(&readiness, FIRST_PAUSE, |it| {
            fails(it);
            it.failed("python", "of the same claim");
        }));
        assert!(readiness.is_paused("python") && !readiness.is_paused("exec"));
        assert!(pauses(&readiness, FIRST_PAUSE * 2, check_fails));
        readiness.checked("python", Ok(()));
        assert!(!readiness.is_paused("python") && readiness.faults().is_empty());
        // No run has started.
        assert!(pauses(&readiness, FIRST_PAUSE * 4, fails));
        assert_eq!(readiness.faults()["python"], "no room");
        for _ in 0..40 {
            check_fails(&readiness);
        }
        assert!(pauses(&readiness, LONGEST_PAUSE, check_fails));
        readiness.started(|| "python".to_owned());
        assert!(readiness.is_paused("python"), "it started before");
        readiness.checked("python", Ok(()));
        readiness.started(|| "python".to_owned());
        assert!(pauses(&readiness, FIRST_PAUSE, fails));
    }
}
