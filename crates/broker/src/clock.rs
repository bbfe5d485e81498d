//! The clock of scripts: the server's, or a manual one for tests. If it goes back, scripts go on from the latest time, at
//! half speed until it has caught up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(doc)]
use meshwork_model::keys::hero::JobKeys;

use crate::conn::Conn;
use crate::error::Error;

/// The clock that scripts use.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The server's clock: a host with a wrong clock cannot expire others' leases.
    #[default]
    Server,
    /// A manual clock, in milliseconds since 1970.
    Manual(Arc<AtomicU64>),
}

/// Steps back of the server's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steps {
    /// Latest time since the last step, in milliseconds since 1970.
    latest: u64,
    /// Milliseconds by which scripts were ahead of the clock at `since`.
    ahead: u64,
    since: u64,
    /// Number of steps.
    pub(crate) count: u64,
}

/// Steps back of at most this many milliseconds change nothing.
const BACK: u64 = 2000;

impl Steps {
    /// Parses the value of [`JobKeys::clock`].
    pub(crate) fn read(seen: &str) -> Option<Self> {
        let words: Result<Vec<u64>, _> = seen.split(' ').map(str::parse).collect();
        let (latest, ahead, since, count) = match *words.ok()? {
            [latest] => (latest, 0, 0, 0),
            [latest, ahead, since, count] => (latest, ahead, since, count),
            _ => return None,
        };
        Some(Self {
            latest,
            ahead,
            since,
            count,
        })
    }

    /// Returns the milliseconds by which scripts are ahead of a clock that shows this time.
    pub(crate) fn ahead(&self, shown: u64) -> u64 {
        let at = |ms: u64| self.ahead.saturating_sub(ms.saturating_sub(self.since) / 2);
        match shown + BACK < self.latest {
            true => self.latest + at(self.latest) - shown,
            false => at(shown),
        }
    }

    fn time(&self, shown: u64) -> u64 {
        shown + self.ahead(shown)
    }
}

impl Clock {
    /// Returns a clock that shows `now_ms`, and the handle that sets it.
    #[must_use]
    pub fn manual(now_ms: u64) -> (Self, Arc<AtomicU64>) {
        let hand = Arc::new(AtomicU64::new(now_ms));
        (Self::Manual(Arc::clone(&hand)), hand)
    }

    /// Returns the time, in milliseconds since 1970.
    pub(crate) async fn now(&self, conn: &Conn) -> Result<u64, Error> {
        match self.argument() {
            0 => {
                let time = redis::cmd("TIME").query_async(&mut conn.clone()).await;
                let (seconds, micros): (u64, u64) = time.map_err(|source| Error::Call {
                    verb: "time",
                    source,
                })?;
                Ok(seconds * 1000 + micros / 1000)
            }
            given => Ok(given),
        }
    }

    /// Returns the time of scripts in a namespace whose key [`JobKeys::clock`] has this value: see `lua/lib/base.lua`.
    pub(crate) fn of_scripts(shown: u64, seen: &str) -> u64 {
        Steps::read(seen).map_or(shown, |steps| steps.time(shown))
    }

    /// Returns the time argument of a script; `0` means the server's time.
    pub(crate) fn argument(&self) -> u64 {
        match self {
            Self::Server => 0,
            Self::Manual(hand) => hand.load(Ordering::SeqCst),
        }
    }
}
