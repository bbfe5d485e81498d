//! move: moves a claimed job from a list without a route to the list of its route.

use meshwork_macros::boxed;
use meshwork_model::name::RoutingKey;
use meshwork_model::route::Priority;

use super::{Bananas, Claimed};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::word;

/// The result of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// The job is the last one in the list of its route.
    Moved,
    /// No Meshwork worker claims from that list; this worker keeps the job.
    Nobody,
    /// This worker has lost the lease.
    Stale,
}

impl Bananas {
    /// Moves a job under this worker's lease to the list of `route`, if a Meshwork worker claims from there. Bananas'
    /// own workers may not claim from it, and the job would wait forever.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn move_to(
        &self,
        claimed: &Claimed,
        route: &RoutingKey,
        priority: Priority,
    ) -> Result<Moved, Error> {
        let answer: String = self
            .call(Verb::BananasMoveToRoute)
            .key(self.keys.routed(route, priority))
            .arg(claimed.hold.as_slice())
            .arg(&claimed.token)
            .arg(route.as_str())
            .run(&self.conn)
            .await?;
        let known = [
            ("moved", Moved::Moved),
            ("nobody", Moved::Nobody),
            ("stale", Moved::Stale),
        ];
        word("move", answer, &known)
    }
}
