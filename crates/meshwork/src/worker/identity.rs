//! Identity of a worker: its name and its incarnation, unique to one process.

use std::sync::atomic::{AtomicU64, Ordering};

/// A worker's identity, and the source of its fencing tokens.
#[derive(Debug)]
pub(crate) struct Identity {
    worker: String,
    claims: AtomicU64,
}

impl Identity {
    /// A new incarnation of the worker `name`: a restart under the same name is somebody else.
    pub(crate) fn new(name: &str) -> Self {
        let incarnation: u64 = rand::random();
        let pid = std::process::id();
        Self {
            worker: format!("{name}.{pid}.{incarnation:016x}"),
            claims: AtomicU64::new(0),
        }
    }

    /// The name with the incarnation; it holds no blank.
    pub(crate) fn worker(&self) -> &str {
        &self.worker
    }

    /// A fencing token that was never used before.
    pub(crate) fn token(&self) -> String {
        format!(
            "{}.{}",
            self.worker,
            self.claims.fetch_add(1, Ordering::Relaxed)
        )
    }
}
