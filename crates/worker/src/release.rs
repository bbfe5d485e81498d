//! Release: returns claimed jobs that a worker does not run to their queues.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::maybe_done;
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
/// worker. All calls run concurrently, since each may wait for the server. The total time is at most a lease, after
/// which other workers reclaim the jobs.
pub(crate) async fn release_all<J, F>(
    jobs: impl IntoIterator<Item = J>,
    lease: Duration,
    release: impl Fn(J) -> F,
) -> usize
where
    F: Future<Output = Result<bool, Error>>,
{
    let until = Instant::now() + lease;
    let calls = jobs.into_iter().map(|job| timeout_at(until, release(job)));
    let (mut released_jobs, mut failed) = (0, Vec::new());
    for released in all_in_order(calls).await {
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

/// Waits for all futures, and polls them in their order. `join_all` polls many of them in the order of their wakeups, which
/// an engine in this process gives in reverse.
async fn all_in_order<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut all: Vec<_> = futures.map(|future| Box::pin(maybe_done(future))).collect();
    poll_fn(|context| {
        let pending = all
            .iter_mut()
            .map(|future| future.as_mut().poll(context).is_pending());
        match pending.filter(|pending| *pending).count() {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    })
    .await;
    all.iter_mut()
        .filter_map(|future| future.as_mut().take_output())
        .collect()
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

    #[tokio::test]
    async fn many_jobs_keep_their_order_whichever_call_is_woken_first() {
        let released = RefCell::new(Vec::new());
        let release = |job: usize| {
            let released = &released;
            async move {
                tokio::task::yield_now().await;
                released.borrow_mut().push(job);
                Ok(true)
            }
        };
        let jobs: Vec<_> = (0..100).collect();
        assert_eq!(
            release_all(jobs.clone(), Duration::from_secs(60), release).await,
            100
        );
        assert_eq!(*released.borrow(), jobs);
    }
}
