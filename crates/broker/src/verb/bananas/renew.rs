//! renew: stay alive, and keep what runs.

use std::time::Duration;

use meshwork_model::keys::bananas::Bananas as Keys;
use meshwork_model::name::RoutingKey;

use super::{Bananas, Claimed};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// What a worker wants to keep.
#[derive(Debug, Clone, Copy)]
pub struct Renewal<'a> {
    /// The jobs it runs.
    pub held: &'a [Claimed],
    /// From now on, how long they stay this worker's.
    pub lease: Duration,
    /// The worker's name with its incarnation.
    pub worker: &'a str,
    /// The lists it listens to.
    pub lists: &'a [String],
    /// The routes it takes jobs of: others are moved there only while somebody does.
    pub routes: &'a [RoutingKey],
    /// From now on, how long it counts as alive.
    pub alive: Duration,
}

impl Bananas {
    /// Extends the leases of the jobs that are still this worker's, its place among the listeners, and its routes.
    /// Gives under what those were held that are its own no more.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`], or the server does not take the call.
    pub async fn renew(&self, renewal: Renewal<'_>) -> Result<Vec<Vec<u8>>, Error> {
        at_most("renew", MAX_ITEMS, renewal.held.len())?;
        let mut call = self
            .call(Verb::BananasRenew)
            .arg(renewal.lease.as_millis() as u64)
            .arg(renewal.alive.as_millis() as u64)
            .arg(renewal.lists.len());
        for list in renewal.lists {
            call.push_arg(Keys::feed_member(renewal.worker, list));
        }
        call.push_arg(renewal.routes.len());
        for route in renewal.routes {
            call.push_arg(route.as_str());
        }
        for held in renewal.held {
            call.push_arg(held.hold.as_slice());
            call.push_arg(&held.token);
        }
        call.run(&self.conn).await
    }
}
