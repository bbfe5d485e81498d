//! renew: stay alive, and keep what runs.

use std::time::Duration;

use meshwork_model::keys::hero::Hero;

use super::{Claimed, MAX_ITEMS, at_most};
use crate::script::Verb;
use crate::{Broker, Error};

/// Who listens to which queue.
#[derive(Debug, Clone, Copy)]
pub struct Listener<'a> {
    /// The worker's name with its incarnation.
    pub worker: &'a str,
    /// The lists it takes from.
    pub queues: &'a [String],
}

/// What a worker wants to keep.
#[derive(Debug, Clone, Copy)]
pub struct Renewal<'a> {
    /// The jobs it runs.
    pub held: &'a [Claimed],
    /// From now on, how long they stay this worker's.
    pub lease: Duration,
    /// Its place among the listeners.
    pub listener: Listener<'a>,
    /// From now on, how long the listener counts as alive.
    pub alive: Duration,
}

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Jobs that are this worker's no more: they were ended by force, or taken back after a lease ended.
    pub gone: Vec<String>,
    /// Jobs that are still its own and that somebody wants stopped.
    pub stop: Vec<String>,
}

impl Broker {
    /// Extends the leases of the jobs that are still this worker's, and its place among the listeners.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`], or the server does not take the call.
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
            call.push_arg(Hero::feed_member(worker, queue));
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
