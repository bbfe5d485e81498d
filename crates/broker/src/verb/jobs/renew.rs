//! renew: renews the leases and the prefetch registration of a worker.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::keys::hero::JobKeys;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{Claimed, MAX_ITEMS, at_most};

/// A worker and its queues.
#[derive(Debug, Clone, Copy)]
pub struct Listener<'a> {
    /// Name of the worker with its incarnation.
    pub worker: &'a str,
    /// Lists that it claims from.
    pub queues: &'a [String],
}

/// A request for renewal.
#[derive(Debug, Clone, Copy)]
pub struct Renewal<'a> {
    /// Jobs that the worker runs.
    pub held: &'a [Claimed],
    /// Duration of their leases from now on.
    pub lease: Duration,
    /// Prefetch registration of the worker.
    pub listener: Listener<'a>,
    /// Time for which the worker counts as alive from now on.
    pub alive: Duration,
}

/// The result of a renewal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Jobs that this worker has lost: they were cancelled by force, or reclaimed after a lease expired.
    pub gone: Vec<String>,
    /// Jobs of this worker with a request for cancellation.
    pub stop: Vec<String>,
}

impl Broker {
    /// Renews the leases that this worker still has, and its prefetch registration.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
    pub async fn renew(&self, renewal: Renewal<'_>) -> Result<Renewed, Error> {
        at_most("renew", MAX_ITEMS, renewal.held.len())?;
        let Listener { worker, queues } = renewal.listener;
        let mut call = self
            .scripts
            .call(Verb::Renew)
            .arg(self.clock.argument())
            .arg(renewal.lease.as_millis() as u64)
            .arg(renewal.alive.as_millis() as u64)
            .arg(queues.len());
        for queue in queues {
            call.push_arg(JobKeys::prefetch_member(worker, queue));
        }
        for held in renewal.held {
            call.push_key(held.key(&self.keys));
            call.push_arg(&held.job.id);
            call.push_arg(&held.token);
        }
        let mut answer = call.answer(&self.conn).await?;
        Ok(Renewed {
            gone: answer.next("gone")?,
            stop: answer.next("stop")?,
        })
    }
}
