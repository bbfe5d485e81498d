//! renew: renews the leases and the registration of a worker.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::keys::bananas::BananasKeys as Keys;
use meshwork_model::name::RoutingKey;

use super::{Bananas, Claimed};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// A request for renewal.
#[derive(Debug, Clone, Copy)]
pub struct Renewal<'a> {
    /// Jobs that the worker runs.
    pub in_flight: &'a [Claimed],
    /// Duration of their leases from now on.
    pub lease: Duration,
    /// Name of the worker with its incarnation.
    pub worker: &'a str,
    /// Lists that it waits on.
    pub lists: &'a [String],
    /// Routes that it serves. Jobs are moved to a route only while a worker serves it.
    pub routes: &'a [RoutingKey],
    /// Time for which it counts as alive from now on.
    pub alive: Duration,
}

impl Bananas {
    /// Renews the leases that this worker still has, its prefetch lists, and its routes. Returns the lease identities
    /// of lost jobs.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
    pub async fn renew(&self, renewal: Renewal<'_>) -> Result<Vec<Vec<u8>>, Error> {
        at_most("renew", MAX_ITEMS, renewal.in_flight.len())?;
        let mut call = self
            .call(Verb::BananasRenew)
            .arg(renewal.lease.as_millis() as u64)
            .arg(renewal.alive.as_millis() as u64)
            .arg(renewal.lists.len());
        for list in renewal.lists {
            call.push_arg(Keys::prefetch_member(renewal.worker, list));
        }
        call.push_arg(renewal.routes.len());
        for route in renewal.routes {
            call.push_arg(route.as_str());
        }
        for held in renewal.in_flight {
            call.push_arg(held.hold.as_slice());
            call.push_arg(&held.token);
        }
        call.run(&self.conn).await
    }
}
