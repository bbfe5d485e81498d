//! Identity of a worker: its name and its incarnation, unique to one process.

use std::sync::atomic::{AtomicU64, Ordering};

/// Identity of a worker, and source of its fencing tokens.
#[derive(Debug)]
pub struct Identity {
    worker: String,
    claims: AtomicU64,
}

impl Identity {
    /// Creates a new incarnation of the worker `name`. A restart under the same name is another worker.
    pub fn new(name: &str) -> Self {
        let incarnation: u64 = rand::random();
        let pid = std::process::id();
        Self {
            worker: format!("{name}.{pid}.{incarnation:016x}"),
            claims: AtomicU64::new(0),
        }
    }

    /// Returns the name with the incarnation, without blanks.
    pub fn worker(&self) -> &str {
        &self.worker
    }

    /// Returns a new fencing token.
    pub fn token(&self) -> String {
        format!(
            "{}.{}",
            self.worker,
            self.claims.fetch_add(1, Ordering::Relaxed)
        )
    }
}
