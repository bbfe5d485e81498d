//! The answer to `/readyz` of a server that works on the store: true while the store answers.

use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Time that the store has to answer a probe.
const READY_WITHIN: Duration = Duration::from_secs(2);
/// Time for which that answer is cached, however many probes come.
const READY_FOR: Duration = Duration::from_secs(1);

/// Last answer to a probe: its time, and true if the store answered.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, bool)>>);

impl Readiness {
    /// Answers a probe by the last answer, or else by `ping`.
    pub(crate) async fn answer<T, E>(
        &self,
        ping: impl Future<Output = Result<T, E>>,
    ) -> (StatusCode, &'static str) {
        // Concurrent probes wait for the same answer.
        let mut last = self.0.lock().await;
        let known = last.filter(|(at, _)| at.elapsed() < READY_FOR);
        let (_, ready) = match known {
            Some(known) => known,
            None => {
                let ping = tokio::time::timeout(READY_WITHIN, ping);
                let ready = ping.await.is_ok_and(|pinged| pinged.is_ok());
                *last.insert((Instant::now(), ready))
            }
        };
        match ready {
            true => (StatusCode::OK, "ready\n"),
            false => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the store does not answer\n",
            ),
        }
    }
}
