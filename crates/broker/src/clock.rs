//! The clock of scripts: the server's, or a manual one for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

    /// Returns the time argument of a script; `0` means the server's time.
    pub(crate) fn argument(&self) -> u64 {
        match self {
            Self::Server => 0,
            Self::Manual(hand) => hand.load(Ordering::SeqCst),
        }
    }
}
