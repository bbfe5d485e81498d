//! Whose time counts: the server's, or one that a test sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::conn::Conn;
use crate::error::Error;

/// The clock that the scripts go by.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The server's: a host with a wrong clock takes nobody's lease.
    #[default]
    Server,
    /// One that is set by hand, in milliseconds since 1970.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// A clock that stands at `now_ms` until it is moved.
    #[must_use]
    pub fn manual(now_ms: u64) -> (Self, Arc<AtomicU64>) {
        let hand = Arc::new(AtomicU64::new(now_ms));
        (Self::Manual(Arc::clone(&hand)), hand)
    }

    /// What time it is, in milliseconds since 1970.
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

    /// What a script is given: `0` asks it to take the server's time.
    pub(crate) fn argument(&self) -> u64 {
        match self {
            Self::Server => 0,
            Self::Manual(hand) => hand.load(Ordering::SeqCst),
        }
    }
}
