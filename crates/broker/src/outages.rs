//! Outages: log lines for changes of state, not for tries. Loops that repeat their calls report each failure and each
//! success. Logged are the first failure of each kind, a count once a minute, and the recovery.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::Error;

/// An outage is over when no call has failed for this long; each time that it begins again, for twice as long.
const SETTLED: Duration = Duration::from_secs(2);
/// The longest such time: who mended the server waits for the line that says so.
const SETTLED_MOST: Duration = Duration::from_secs(30);
/// Calls that fail so soon after an outage is over begin it again: a server that comes and goes is one outage, and so is a
/// call that fails now and then beside others that succeed.
const AGAIN: Duration = Duration::from_secs(15);
/// Between two lines about an outage that goes on.
const REMIND: Duration = Duration::from_secs(60);
/// A loop that has told nothing for so long has ended, and holds no outage open.
const SILENT: Duration = Duration::from_secs(60);
/// The most kinds of errors that are told apart in one outage; others count as one.
const MOST: usize = 16;
/// The most loops that are told apart: a process has about twenty.
const MOST_LOOPS: usize = 100;
/// The kind of the errors beyond them.
const OTHERS: &str = "others";
/// The most characters of a message that tells a kind.
const KIND: usize = 200;

/// The failures of the loops that share a connection. A success costs a look at a flag.
#[derive(Debug, Default)]
pub struct Outages {
    open: AtomicBool,
    outage: Mutex<Option<Outage>>,
}

/// Since the first failure.
#[derive(Debug)]
struct Outage {
    began: Instant,
    failed: Instant,
    told: Instant,
    errors: u64,
    /// How many of each kind.
    kinds: BTreeMap<String, u64>,
    /// The loops whose last call failed, and when that was.
    loops: BTreeMap<&'static str, Instant>,
    /// After how long without a failure it is over.
    settles: Duration,
    /// Since when it is over.
    over: Option<Instant>,
}

impl Outages {
    fn outage(&self) -> MutexGuard<'_, Option<Outage>> {
        // No code that can panic runs under the lock.
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call of the loop `operation` failed, and is going to be repeated. Logs the first failure of its kind, and
    /// the count once a minute.
    pub fn failed(&self, operation: &'static str, error: &Error) {
        self.failed_at(Instant::now(), operation, error);
    }

    fn failed_at(&self, now: Instant, operation: &'static str, error: &Error) {
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
            outage.told = now;
            tracing::warn!(operation, %error, "server call failed; retrying");
        } else if now - outage.told >= REMIND {
            outage.told = now;
            let (errors, seconds) = (outage.errors, (now - outage.began).as_secs());
            tracing::warn!(operation, %error, errors, seconds, "server calls still failing");
        } else {
            tracing::debug!(operation, %error, "server call failed again; retrying");
        }
    }

    /// A call of the loop succeeded. Logs the recovery when none of the loops fails any more.
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

    /// Tells how a call of the loop went, and gives its answer back.
    ///
    /// # Errors
    /// That of the call.
    pub fn told<T>(&self, operation: &'static str, answer: Result<T, Error>) -> Result<T, Error> {
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
            told: now,
            errors: 0,
            kinds: BTreeMap::new(),
            loops: BTreeMap::new(),
            settles: SETTLED,
            over: None,
        }
    }

    /// Whether it is over for so long that the next failure is of another one.
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

/// What errors have in common that come of one cause, whichever call meets it.
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
