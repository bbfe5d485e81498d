//! move: bring a job that stands on a list without a route to the list of its route.

use meshwork_model::name::RoutingKey;
use meshwork_model::route::Priority;

use super::{Bananas, Claimed};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::word;

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// It is the last one in the list of its route.
    Moved,
    /// No worker of ours takes from there; it is still this worker's.
    Nobody,
    /// It is not this worker's any more.
    Stale,
}

impl Bananas {
    /// Moves a job that is still this worker's to the list of `route`, while a worker of ours takes from there:
    /// Bananas' own workers may not, and the job would wait for ever.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn move_to(
        &self,
        claimed: &Claimed,
        route: &RoutingKey,
        priority: Priority,
    ) -> Result<Moved, Error> {
        let answer: String = self
            .call(Verb::BananasMove)
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
