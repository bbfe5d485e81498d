//! Calls of the protocol to the broker: stores results and claims jobs, in one script if there are both.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{
    Arrived, BlockingConn, Claim, Claimed, ClaimedJobs, Error, PrefetchLists, WaitingClaim,
    complete,
};

use super::state::HeroProtocol;
use super::subscription::ClaimOrder;
use meshwork_runtime::{ActionCaller, Runtime};
use meshwork_worker::Completion;
use meshwork_worker::Config;
use meshwork_worker::Fetched;
use meshwork_worker::Waited;
use meshwork_worker::{Completed, FetchRequest};

impl HeroProtocol {
    /// Returns the runtime of a queue's jobs. The queue names the type; a foreign record may not.
    pub(super) fn runtime_of_queue(&self, queue: &str) -> Option<&Arc<dyn Runtime>> {
        let prefix = self.broker.keys().work_prefix();
        let script_type = queue.strip_prefix(&prefix)?.split(':').next()?;
        self.runtimes.get(script_type)
    }

    /// Calls actions for a run.
    pub(super) fn caller(&self) -> ActionCaller {
        match self.broker.keys().context() {
            Some(_) => ActionCaller::InContext,
            None => ActionCaller::new(&self.calls),
        }
    }

    /// Stores results and claims jobs, in one script if there are both.
    pub(super) async fn call(
        &self,
        results: &[complete::Completion<'_>],
        lease: Duration,
        request: &FetchRequest,
    ) -> Result<(Vec<complete::Completed>, ClaimedJobs), Error> {
        let lists = Arc::clone(&self.lists.borrow());
        let order = ClaimOrder::of(request.round, self.places.routes());
        let (mut queues, mut old) = (lists.queues_in(order), Cow::Borrowed(lists.old()));
        if !request.skipped.is_empty() {
            let skipped = &request.skipped;
            queues.to_mut().retain(|list| !skipped.contains(list));
            old.to_mut().retain(|old| !skipped.contains(&old.list));
        }
        let claim = Claim {
            queues: &queues,
            old: &old,
            reverse: order.reverse,
            prefetch: if request.sweep {
                PrefetchLists::All
            } else {
                PrefetchLists::Of(&request.arrivals)
            },
            want: request.want,
            ahead: request.ahead,
            lease,
            worker: self.identity.worker(),
            token: &self.identity.token(),
        };
        if results.is_empty() {
            return Ok((Vec::new(), self.broker.claim(claim).await?));
        }
        let answer = self.broker.complete_and_claim(results, claim).await?;
        Ok((answer.finished, answer.taken))
    }

    /// Waits for a job of a queue, and claims it in the same trip.
    pub(super) async fn wait_and_claim(
        &self,
        config: &Config,
        conn: &BlockingConn,
        queue: &str,
        wait: Duration,
    ) -> Result<Waited<Claimed>, Error> {
        let worker = self.identity.worker();
        if self.broker.has_manual_clock() {
            // A claim has the time of its sending, which may be long ago when a job arrives.
            let came = self.broker.wait_for_job(conn, worker, queue, wait).await?;
            return Ok(Waited::hint(came));
        }
        let lists = Arc::clone(&self.lists.borrow());
        let old = lists.old().iter().find(|old| old.list == queue);
        let waiting = WaitingClaim {
            list: queue,
            requeue_to: old.map_or(queue, |old| &old.requeue_to),
            wait,
            lease: config.lease,
            worker,
            token: &self.identity.token(),
        };
        Ok(match self.broker.wait_and_claim(conn, &waiting).await? {
            Arrived::Nothing => Waited::Nothing,
            Arrived::Id => Waited::Hint,
            Arrived::Jobs(taken) => Waited::Claimed(fetched(taken)),
        })
    }
}

/// Returns a result in the form of the broker.
pub(super) fn result(completion: &Completion<Claimed>) -> complete::Completion<'_> {
    complete::Completion {
        claimed: completion.job(),
        output: &completion.output,
        stdout: &completion.stdout,
        stderr: &completion.stderr,
    }
}

pub(super) fn completed(finished: Vec<complete::Completed>) -> Vec<Completed> {
    let each = |finished| match finished {
        complete::Completed::Finished => Completed::Stored,
        complete::Completed::Stale => Completed::Stale,
    };
    finished.into_iter().map(each).collect()
}

pub(super) fn fetched(taken: ClaimedJobs) -> Fetched<Claimed> {
    Fetched {
        jobs: taken.jobs,
        dropped: taken.dropped,
        more: taken.more,
        blocked: taken.blocked,
        at_ms: taken.at_ms,
    }
}
