//! forward: bring jobs that wait on a list without a route to the lists of their routes.

use meshwork_model::name::RoutingKey;

use super::Bananas;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// A job that waits on a list without a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// Its id, any bytes.
    pub id: Vec<u8>,
    /// The route of its record.
    pub route: RoutingKey,
}

impl Bananas {
    /// Moves jobs from `list`, one without a route, to the lists of their routes in the same priority, as the last ones
    /// there, in this order; each if it stands among the `depth` next ones, and while a worker of ours takes from where
    /// it goes. Gives how many were moved; the others stay where they are.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`], or the server does not take the call.
    pub async fn forward(
        &self,
        list: &str,
        depth: usize,
        jobs: &[Forward],
    ) -> Result<usize, Error> {
        at_most("forward", MAX_ITEMS, jobs.len())?;
        let Some((_, priority)) = self.keys.parse_list(list) else {
            return Ok(0);
        };
        let mut call = self.call(Verb::BananasForward).key(list);
        call.push_arg(depth);
        for job in jobs {
            call.push_key(self.keys.routed(&job.route, priority));
            call.push_arg(job.id.as_slice());
            call.push_arg(job.route.as_str());
        }
        call.run(&self.conn).await
    }
}
