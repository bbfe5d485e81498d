//! Outages: log lines for changes of state, not for tries. Loops that repeat their calls report each failure and each
//! success. Logged are the first failure of each kind, a count once a minute, and the recovery.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;

/// Time without a failed call after which an outage is over. It doubles each time that the outage begins again.
const SETTLED: Duration = Duration::from_secs(2);
/// Greatest such time: an operator waits for the line about the recovery.
const SETTLED_MOST: Duration = Duration::from_secs(30);
/// Time after the end of an outage in which a failure continues it. A server that comes and goes is one outage, and
/// so is a call that fails sometimes while others succeed.
const AGAIN: Duration = Duration::from_secs(15);
/// Interval of log lines about an outage that continues.
const REMIND: Duration = Duration::from_secs(60);
/// Time without reports after which a loop has ended, and does not keep an outage open.
const SILENT: Duration = Duration::from_secs(60);
/// Greatest number of error kinds that are counted separately in an outage; others count as one.
const MOST: usize = 16;
/// Greatest number of loops that are tracked: a process has about twenty.
const MOST_LOOPS: usize = 100;
/// Kind of all further errors.
const OTHERS: &str = "others";
/// Number of characters of a message that identify its kind.
const KIND: usize = 200;

/// The failures of the loops that share a connection. Reporting a success costs one read of a flag.
#[derive(Debug, Default)]
pub struct Outages {
    open: AtomicBool,
    outage: Mutex<Option<Outage>>,
    /// Number of calls that keys with another type have failed.
    wrong_types: AtomicU64,
    /// Errors of keys with another type that were logged, since what is shown lacks them.
    left_out: Mutex<BTreeSet<String>>,
}

/// The state since the first failure.
#[derive(Debug)]
struct Outage {
    began: Instant,
    failed: Instant,
    logged: Instant,
    errors: u64,
    /// Number of errors of each kind.
    kinds: BTreeMap<String, u64>,
    /// The loops whose last call failed, with its time.
    loops: BTreeMap<&'static str, Instant>,
    /// Time without a failure after which the outage is over.
    settles: Duration,
    /// Time at which the outage ended.
    over: Option<Instant>,
}

impl Outages {
    fn outage(&self) -> MutexGuard<'_, Option<Outage>> {
        // No code under the lock can panic.
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a key with another type whose value is left out where it would be shown. Logs each once.
    pub(crate) fn left_out(&self, error: &Error) {
        let mut seen = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() < MOST && seen.insert(error.to_string()) {
            tracing::warn!(%error, "left out what a key holds");
        }
    }

    /// Reports a failed call of the loop `operation`, which will be repeated. Logs the first failure of each kind,
    /// and the count once a minute.
    pub fn failed(&self, operation: &'static str, error: &Error) {
        self.failed_at(Instant::now(), operation, error);
    }

    /// Returns the number of calls that keys with another type have failed.
    #[must_use]
    pub fn wrong_types(&self) -> u64 {
        self.wrong_types.load(Ordering::Relaxed)
    }

    fn failed_at(&self, now: Instant, operation: &'static str, error: &Error) {
        if error.is_wrong_type() {
            self.wrong_types.fetch_add(1, Ordering::Relaxed);
        }
        let mut outage = self.outage();
        self.open.store(true, Ordering::Relaxed);
        if outage.as_ref().is_none_or(|last| last.is_past(now)) {
            *outage = Some(Outage::new(now));
        }
        let Some(outage) = outage.as_mut() else {
            return;
        };
        if outage.over.take().is_some() {
            outage.settles = SETTLED_MOST.min(outage.settles * 2);
        }
        (outage.failed, outage.errors) = (now, outage.errors + 1);
        if outage.loops.len() < MOST_LOOPS || outage.loops.contains_key(operation) {
            outage.loops.insert(operation, now);
        }
        let kind = outage.kind(error);
        let of_kind = outage.kinds.entry(kind).or_default();
        *of_kind += 1;
        if *of_kind == 1 {
            outage.logged = now;
            tracing::warn!(operation, %error, "server call failed; retrying");
        } else if now - outage.logged >= REMIND {
            outage.logged = now;
            let (errors, seconds) = (outage.errors, (now - outage.began).as_secs());
            tracing::warn!(operation, %error, errors, seconds, "server calls still failing");
        } else {
            tracing::debug!(operation, %error, "server call failed again; retrying");
        }
    }

    /// Reports a successful call of the loop. Logs the recovery when no loop fails any more.
    pub fn succeeded(&self, operation: &'static str) {
        if self.open.load(Ordering::Relaxed) {
            self.succeeded_at(Instant::now(), operation);
        }
    }

    fn succeeded_at(&self, now: Instant, operation: &'static str) {
        let mut open = self.outage();
        let Some(outage) = open.as_mut().filter(|outage| outage.over.is_none()) else {
            return;
        };
        outage.loops.remove(operation);
        outage.loops.retain(|_, failed| now - *failed < SILENT);
        if !outage.loops.is_empty() || now - outage.failed < outage.settles {
            return;
        }
        let seconds = (outage.failed - outage.began).as_secs_f64();
        let (errors, kinds) = (outage.errors, outage.kinds.len());
        tracing::warn!(errors, kinds, seconds, "server calls recovered");
        outage.over = Some(now);
        self.open.store(false, Ordering::Relaxed);
    }

    /// Reports the outcome of a call of the loop, and returns its answer.
    ///
    /// # Errors
    /// That of the call.
    pub fn observe<T>(
        &self,
        operation: &'static str,
        answer: Result<T, Error>,
    ) -> Result<T, Error> {
        match &answer {
            Ok(_) => self.succeeded(operation),
            Err(error) => self.failed(operation, error),
        }
        answer
    }
}

impl Outage {
    fn new(now: Instant) -> Self {
        Self {
            began: now,
            failed: now,
            logged: now,
            errors: 0,
            kinds: BTreeMap::new(),
            loops: BTreeMap::new(),
            settles: SETTLED,
            over: None,
        }
    }

    /// Returns whether the outage ended so long ago that the next failure begins another one.
    fn is_past(&self, now: Instant) -> bool {
        self.over.is_some_and(|over| now - over >= AGAIN)
    }

    fn kind(&self, error: &Error) -> String {
        let kind = kind(error);
        match self.kinds.len() < MOST || self.kinds.contains_key(&kind) {
            true => kind,
            false => OTHERS.to_owned(),
        }
    }
}

/// Returns the kind of an error. Errors with one cause have one kind, whichever call meets it.
fn kind(error: &Error) -> String {
    match error {
        Error::Call { source, .. } if source.is_io_error() || source.is_connection_dropped() => {
            "connection".to_owned()
        }
        Error::Call { source, .. } if source.code().is_some_and(|code| code != "ERR") => {
            source.code().unwrap_or_default().to_owned()
        }
        Error::Call { source, .. } => source.to_string().chars().take(KIND).collect(),
        _ => error.to_string().chars().take(KIND).collect(),
    }
}

#[cfg(test)]
mod tests;
