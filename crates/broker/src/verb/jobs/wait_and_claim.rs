//! wait_and_claim: waits for an id of one queue, and claims its job in the same trip to the server.

use meshwork_macros::boxed;
use std::time::Duration;

use redis::Value;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::{Answer, Verb};
use crate::verb::jobs::blocking::{BlockingConn, MAX_WAIT, move_id};
use crate::verb::jobs::claim::{Claim, ClaimedJobs, LegacyList, PrefetchLists};

/// Name of the call in errors.
const NAME: &str = "wait_and_claim";

/// A claim that waits at one queue.
#[derive(Debug, Clone, Copy)]
pub struct WaitingClaim<'a> {
    /// The list.
    pub list: &'a str,
    /// The queue to which its jobs return: the list, unless that is a legacy one.
    pub requeue_to: &'a str,
    /// Longest wait, at most 30 seconds.
    pub wait: Duration,
    /// Lease duration, from the arrival on.
    pub lease: Duration,
    /// Name of the worker with its incarnation, as in [`Claim::worker`].
    pub worker: &'a str,
    /// Fencing token, unique for each call.
    pub token: &'a str,
}

/// The outcome of a claim that waits.
#[derive(Debug)]
pub enum Arrived {
    /// Nothing arrived in time.
    Nothing,
    /// An id is in the worker's prefetch list, where [`Broker::claim`] finds it.
    Id,
    /// The job that arrived. If [`ClaimedJobs::more`] is true, the list or the worker's prefetch list has more ids.
    Jobs(ClaimedJobs),
}

impl Broker {
    /// Waits like [`Broker::wait_for_job`] and then claims the id that arrived like [`Broker::claim`]. Both commands are
    /// sent together, so a job arrives with its record. It claims at most one job, and none of a queue that is paused or
    /// has a limit: those need to know the free slots at the arrival.
    ///
    /// # Errors
    /// The connection breaks, or the queue is not a list. If the claim fails, the answer is [`Arrived::Id`].
    #[boxed]
    pub async fn wait_and_claim(
        &self,
        blocking: &BlockingConn,
        waiting: &WaitingClaim<'_>,
    ) -> Result<Arrived, Error> {
        let list = LegacyList {
            list: waiting.list.to_owned(),
            requeue_to: waiting.requeue_to.to_owned(),
        };
        let claim = Claim {
            queues: &[],
            old: &[list],
            reverse: false,
            prefetch: PrefetchLists::All,
            want: 1,
            ahead: 0,
            lease: waiting.lease,
            worker: waiting.worker,
            token: waiting.token,
        };
        let mut call = self.scripts.call(Verb::Claim);
        call.push_arg(self.clock.argument());
        self.push_claim_of(&mut call, &claim, "arrived");
        let wait = waiting.wait.min(MAX_WAIT);
        let prefetch = self.keys.feed(waiting.worker, waiting.list);
        let mut both = redis::pipe();
        both.add_command(move_id(waiting.list, &prefetch, wait))
            .add_command(call.command());
        let mut answers = blocking.call_all(NAME, &both, wait).await?;
        let came = answers.next() != Some(Value::Nil);
        let taken = answers.next().unwrap_or(Value::Nil).extract_error();
        let taken = taken.ok().and_then(|answer| {
            let answer = Answer::new(NAME, answer);
            answer
                .and_then(|answer| ClaimedJobs::read(answer, &self.keys, &claim))
                .ok()
        });
        Ok(match taken {
            Some(taken) if !taken.jobs.is_empty() || taken.dropped > 0 => Arrived::Jobs(taken),
            // The script is not loaded, the call was refused, or the queue has a limit: the next claim tells.
            _ if came => Arrived::Id,
            _ => Arrived::Nothing,
        })
    }
}
