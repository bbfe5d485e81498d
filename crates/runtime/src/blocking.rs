//! Work that blocks a thread, on a host that may have none left.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs work with files on a thread for blocking calls.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    // Tokio panics if the host has no thread left.
    let started = catch_unwind(AssertUnwindSafe(|| tokio::task::spawn_blocking(work)));
    let started = started.map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
    started.await.map_err(io::Error::other)?
}
