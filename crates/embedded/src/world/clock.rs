//! The clock of an engine. The only place that reads the system's.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Milliseconds since 1970: the system's, or one that a test moves.
#[derive(Debug, Clone, Default)]
pub struct Clock(Option<Arc<AtomicU64>>);

impl Clock {
    /// The clock of the system.
    #[must_use]
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that stands at `start_ms` until it is moved. Clones share it.
    #[must_use]
    pub fn manual(start_ms: u64) -> Self {
        Self(Some(Arc::new(AtomicU64::new(start_ms))))
    }

    /// Moves a manual clock on. The system's clock stays as it is.
    pub fn advance(&self, ms: u64) {
        if let Some(now) = &self.0 {
            now.fetch_add(ms, Ordering::SeqCst);
        }
    }

    /// Microseconds since 1970.
    #[must_use]
    pub fn now_us(&self) -> u64 {
        self.0
            .as_ref()
            .map_or_else(system_us, |now| now.load(Ordering::SeqCst) * 1_000)
    }

    /// Milliseconds since 1970.
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
