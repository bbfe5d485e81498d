//! Release: returns claimed jobs that a worker does not run to their queues.

use std::time::Duration;

use futures_util::future::join_all;
use meshwork_broker::Error;
use tokio::time::{Instant, timeout, timeout_at};

/// Time after which a cancelled run is aborted: a little longer than its grace and its last lines.
pub(crate) const ENDED: Duration = Duration::from_secs(12);

/// Waits until cancelled runs have ended or were aborted. A handler that blocks its thread cannot be aborted; neither
/// shutdown nor other jobs wait for it. Returns false if there is such a run.
pub(crate) async fn ended_or_cut_off(runs: impl Future<Output = ()>, cut_off: Duration) -> bool {
    let ended = timeout(cut_off, runs).await.is_ok();
    if !ended {
        tracing::error!("handler still blocks its thread: its job is released meanwhile");
    }
    ended
}

/// Releases jobs in this order, each to the front of its queue. Returns the number of jobs that still belonged to this
/// worker. All calls but the first run concurrently, since each may wait for the server. The total time is at most a
/// lease, after which other workers reclaim the jobs.
pub(crate) async fn release_all<J, F>(
    jobs: impl IntoIterator<Item = J>,
    lease: Duration,
    release: impl Fn(J) -> F,
) -> usize
where
    F: Future<Output = Result<bool, Error>>,
{
    let until = Instant::now() + lease;
    let mut calls = jobs.into_iter().map(|job| timeout_at(until, release(job)));
    // The server may lack the script: calls that are repeated for that reason would lose their order.
    let mut released = match calls.next() {
        Some(first) => vec![first.await],
        None => Vec::new(),
    };
    released.extend(join_all(calls).await);
    let (mut released_jobs, mut failed) = (0, Vec::new());
    for released in released {
        match released.unwrap_or_else(|_| Err(Error::timed_out("release"))) {
            Ok(released) => released_jobs += usize::from(released),
            Err(error) => failed.push(error),
        }
    }
    if let Some(error) = failed.first() {
        tracing::warn!(jobs = failed.len(), %error, "jobs not released: their leases will expire");
    }
    released_jobs
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test]
    async fn a_job_that_is_not_released_delays_the_others_by_no_more_than_a_lease() {
        let released = RefCell::new(Vec::new());
        let release = |job: u8| {
            released.borrow_mut().push(job);
            async move {
                match job {
                    1 => std::future::pending().await,
                    2 => Err(Error::timed_out("release")),
                    _ => Ok(job != 3),
                }
            }
        };
        let lease = Duration::from_millis(10);
        assert_eq!(release_all([5, 4, 3, 2, 1], lease, release).await, 2);
        assert_eq!(*released.borrow(), [5, 4, 3, 2, 1]);
    }
}
