//! Handing jobs back that a worker was given and does not run, whatever they are jobs of.

use std::time::Duration;

use meshwork_broker::Error;
use tokio::time::{Instant, timeout, timeout_at};

/// By when a run that was told to stop is cut off: a little longer than it may go on, and than its last words take.
pub(crate) const ENDED: Duration = Duration::from_secs(12);

/// Waits until runs that were told to stop are over, or cut off. A handler that holds its thread cannot be: neither what the
/// others have in hand waits for it, nor whoever stops the process. False if there is one.
pub(crate) async fn ended_or_cut_off(runs: impl Future<Output = ()>, cut_off: Duration) -> bool {
    let ended = timeout(cut_off, runs).await.is_ok();
    if !ended {
        tracing::error!(
            "a handler holds its thread: what it was given is handed back while it goes on"
        );
    }
    ended
}

/// Hands jobs back as long as a lease lasts: then they are others' in any case. Where the server is gone, each would wait
/// for it, so the first that meets that is the last. Each is the next one of its list then: the last one first keeps their
/// order.
pub(crate) async fn hand_back<J, T, F>(
    mut jobs: Vec<J>,
    lease: Duration,
    id: impl Fn(&J) -> String,
    release: impl Fn(J) -> F,
) where
    F: Future<Output = Result<T, Error>>,
{
    let until = Instant::now() + lease;
    while let Some(one) = jobs.pop() {
        let job = id(&one);
        let released = timeout_at(until, release(one)).await;
        match released.unwrap_or_else(|_| Err(Error::timed_out("release"))) {
            Ok(_) => {}
            Err(error) if error.is_temporary() => {
                let jobs = jobs.len() + 1;
                tracing::warn!(jobs, %error, "not handed back; their leases will end");
                return;
            }
            Err(error) => tracing::warn!(job, %error, "not handed back; its lease will end"),
        }
    }
}
