//! Helpers of the programs that run trials instead of tests: the number of concurrent trials, and the slowest ones.

use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// Default number of concurrent trials for each processor: most of them wait for a server.
const AT_ONCE: usize = 4;

/// Variable with the number of concurrent trials, as for other tests.
const THREADS: &str = "RUST_TEST_THREADS";

/// Number of trials that are reported as the slowest.
const SLOWEST: usize = 5;

/// Returns the number of concurrent trials.
///
/// # Panics
/// `RUST_TEST_THREADS` is not a number.
#[must_use]
pub fn at_once() -> usize {
    match std::env::var(THREADS) {
        Ok(number) => number.parse().expect("RUST_TEST_THREADS is a number"),
        Err(_) => AT_ONCE * available_parallelism().map_or(2, usize::from),
    }
}

/// Durations of trials by name, the slowest first.
#[derive(Debug, Default)]
pub struct Slowest(Mutex<Vec<(Duration, String)>>);

impl Slowest {
    /// Runs the work of a trial, and records its duration.
    pub fn timed<T>(&self, name: &str, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let done = work();
        let mut all = self.all();
        all.push((started.elapsed(), name.to_owned()));
        all.sort_unstable_by(|one, other| other.cmp(one));
        all.truncate(SLOWEST);
        done
    }

    /// Writes a line for each of the slowest to stdout, as `cargo xtask` reads them: `slow: 1.234s name`.
    pub fn say(&self) {
        let mut out = std::io::stdout();
        for (took, name) in &*self.all() {
            // The reader may have ended.
            let _ = writeln!(out, "slow: {:.3}s {name}", took.as_secs_f64());
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<(Duration, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
