//! Lease: the time for which a claimed job certainly belongs to this worker. It counts from before the call that granted
//! or renewed it was sent, by a clock that also runs while the process or the host is suspended.

use std::fmt;
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment of a [`LeaseClock`], in nanoseconds since the host has booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, more: Duration) -> Self {
        let more = u64::try_from(more.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(more))
    }
}

/// A clock that is read instead of the host's.
pub trait ReadClock: fmt::Debug + Send + Sync {
    /// Returns the time in nanoseconds, from any beginning.
    fn nanos(&self) -> u64;
}

/// The clock of leases.
#[derive(Debug, Clone, Default)]
pub enum LeaseClock {
    /// The time since the host has booted. `Instant` would stand still while the host is suspended.
    #[default]
    Host,
    /// Another clock, as in tests: nanoseconds.
    Custom(Arc<dyn ReadClock>),
}

impl LeaseClock {
    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Moment {
        match self {
            Self::Host => {
                let since = clock_gettime(ClockId::Boottime);
                // Neither is negative.
                let [seconds, nanos] =
                    [since.tv_sec, since.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
                Moment(seconds * 1_000_000_000 + nanos)
            }
            Self::Custom(clock) => Moment(clock.nanos()),
        }
    }
}

/// The lease of a job; clones share it. The default has no end.
#[derive(Debug, Clone, Default)]
pub struct Lease(Option<Arc<State>>);

#[derive(Debug)]
struct State {
    clock: LeaseClock,
    until: AtomicU64,
    refused: AtomicBool,
}

impl Lease {
    /// Creates a lease that ends then.
    #[must_use]
    pub fn until(until: Moment, clock: &LeaseClock) -> Self {
        Self(Some(Arc::new(State {
            clock: clock.clone(),
            until: AtomicU64::new(until.0),
            refused: AtomicBool::new(false),
        })))
    }

    /// Records a renewal.
    pub fn renewed(&self, until: Moment) {
        if let Some(state) = &self.0 {
            state.until.fetch_max(until.0, Ordering::SeqCst);
        }
    }

    /// Returns true if the job may start now. Call it last before each start. With false, another worker may have run
    /// the job: it must not start, and the worker releases it.
    pub fn allows_start(&self) -> bool {
        let Some(state) = &self.0 else { return true };
        let holds = state.clock.now().0 < state.until.load(Ordering::SeqCst);
        if !holds {
            state.refused.store(true, Ordering::SeqCst);
        }
        holds
    }

    /// Returns true if a start was refused.
    pub fn has_refused(&self) -> bool {
        let refused = |state: &Arc<State>| state.refused.load(Ordering::SeqCst);
        self.0.as_ref().is_some_and(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Hand(AtomicU64);

    impl Hand {
        fn forward(&self, seconds: u64) {
            self.0.fetch_add(seconds * 1_000_000_000, Ordering::SeqCst);
        }
    }

    impl ReadClock for Hand {
        fn nanos(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }
    }

    fn manual() -> (LeaseClock, Arc<Hand>) {
        let hand = Arc::new(Hand::default());
        (LeaseClock::Custom(Arc::clone(&hand) as _), hand)
    }

    const LEASE: Duration = Duration::from_secs(10);

    #[test]
    fn a_job_starts_only_before_the_end_of_its_lease() {
        let (clock, hand) = manual();
        let lease = Lease::until(clock.now() + LEASE, &clock);
        hand.forward(9);
        assert!(lease.allows_start() && !lease.has_refused());
        hand.forward(1);
        assert!(!lease.allows_start() && lease.has_refused());
        // A renewal that comes after the refusal changes nothing for this run: the job is being released.
        let same = lease.clone();
        lease.renewed(clock.now() + LEASE);
        assert!(same.has_refused());
    }

    #[test]
    fn a_renewal_moves_the_end_forward_only() {
        let (clock, hand) = manual();
        let lease = Lease::until(clock.now() + LEASE, &clock);
        let earlier = clock.now() + Duration::from_secs(1);
        hand.forward(9);
        lease.renewed(clock.now() + LEASE);
        // The answer to an earlier renewal came late.
        lease.renewed(earlier);
        hand.forward(9);
        assert!(lease.allows_start());
        assert!(Lease::default().allows_start());
    }

    #[test]
    fn the_clock_of_the_host_goes_on() {
        let clock = LeaseClock::default();
        let (before, longest) = (clock.now(), clock.now() + Duration::MAX);
        assert!(clock.now() >= before && longest > clock.now());
        assert!(Lease::until(before + LEASE, &clock).allows_start());
        assert!(!Lease::until(before, &clock).allows_start());
    }
}
