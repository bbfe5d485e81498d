//! forward: moves jobs from a list without a route to the lists of their routes.

use meshwork_macros::boxed;
use meshwork_model::name::RoutingKey;

use super::Bananas;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// A job on a list without a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reroute {
    /// Its id, any bytes.
    pub id: Vec<u8>,
    /// The route of its record.
    pub route: RoutingKey,
}

impl Bananas {
    /// Moves jobs from `list`, which has no route, to the ends of the lists of their routes in the same priority, in
    /// this order. A job moves only if it is among the next `depth` ones, and while a Meshwork worker claims from its
    /// destination. Returns the number of moved jobs; the others stay.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
    pub async fn reroute(
        &self,
        list: &str,
        depth: usize,
        jobs: &[Reroute],
    ) -> Result<usize, Error> {
        at_most("forward", MAX_ITEMS, jobs.len())?;
        let Some((_, priority)) = self.keys.parse_list(list) else {
            return Ok(0);
        };
        let mut call = self.call(Verb::BananasReroute).key(list);
        call.push_arg(depth);
        for job in jobs {
            call.push_key(self.keys.routed(&job.route, priority));
            call.push_arg(job.id.as_slice());
            call.push_arg(job.route.as_str());
        }
        call.run(&self.conn).await
    }
}
