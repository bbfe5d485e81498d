//! The clock of an engine. No other module reads the system's.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Milliseconds since 1970, of the system or of a manual clock for tests.
#[derive(Debug, Clone, Default)]
pub struct Clock(Option<Arc<AtomicU64>>);

impl Clock {
    /// Returns the clock of the system.
    #[must_use]
    pub fn system() -> Self {
        Self(None)
    }

    /// Returns a manual clock that shows `start_ms`. Clones share it.
    #[must_use]
    pub fn manual(start_ms: u64) -> Self {
        Self(Some(Arc::new(AtomicU64::new(start_ms))))
    }

    /// Advances a manual clock. Does nothing to the system's clock.
    pub fn advance(&self, ms: u64) {
        if let Some(now) = &self.0 {
            now.fetch_add(ms, Ordering::SeqCst);
        }
    }

    /// Returns microseconds since 1970.
    #[must_use]
    pub fn now_us(&self) -> u64 {
        self.0
            .as_ref()
            .map_or_else(system_us, |now| now.load(Ordering::SeqCst) * 1_000)
    }

    /// Returns milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.now_us() / 1_000
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the one clock that the engine's time comes from"
)]
fn system_us() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}
