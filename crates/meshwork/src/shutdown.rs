//! The signals that end a program.

use meshwork_macros::boxed;
use tokio::signal::unix::{SignalKind, signal};

/// Returns when the program shall end: at Ctrl-C (SIGINT) or SIGTERM. On a system without signals it never
/// returns.
///
/// [`Worker`](crate::Worker) has an example.
#[boxed]
pub async fn shutdown_signal() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
