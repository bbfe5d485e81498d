//! The clock of an engine. No other module reads the system's.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Milliseconds since 1970, of the system or of a clock for tests.
#[derive(Debug, Clone, Default)]
pub struct Clock(Kind);

#[derive(Debug, Clone, Default)]
enum Kind {
    #[default]
    System,
    /// Shows this time.
    Manual(Arc<AtomicU64>),
    /// Is ahead of the system by this time.
    Ahead(Arc<AtomicU64>),
}

impl Clock {
    /// Returns the clock of the system.
    #[must_use]
    pub fn system() -> Self {
        Self(Kind::System)
    }

    /// Returns a manual clock that shows `start_ms`. Clones share it.
    #[must_use]
    pub fn manual(start_ms: u64) -> Self {
        Self(Kind::Manual(Arc::new(AtomicU64::new(start_ms))))
    }

    /// Returns a clock that goes as the system's and can be advanced. Clones share it.
    #[must_use]
    pub fn ahead() -> Self {
        Self(Kind::Ahead(Arc::default()))
    }

    /// Advances a clock for tests. Does nothing to the system's clock.
    pub fn advance(&self, ms: u64) {
        match &self.0 {
            Kind::System => {}
            Kind::Manual(hand) | Kind::Ahead(hand) => {
                hand.fetch_add(ms, Ordering::SeqCst);
            }
        }
    }

    /// Returns microseconds since 1970.
    #[must_use]
    pub fn now_us(&self) -> u64 {
        match &self.0 {
            Kind::System => system_us(),
            Kind::Manual(now) => now.load(Ordering::SeqCst) * 1_000,
            Kind::Ahead(by) => system_us() + by.load(Ordering::SeqCst) * 1_000,
        }
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
