//! isolate: notes that a job runs alone in its worker.

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::Claimed;
use meshwork_macros::boxed;

impl Broker {
    /// Notes that a job runs alone in its worker, if the fencing token is current, so that the end of the worker counts
    /// against it ([`Broker::reclaim`]). Returns false if the worker has lost the lease.
    ///
    /// # Errors
    /// The server refuses the call; it can be repeated.
    #[boxed]
    pub async fn isolate(&self, claimed: &Claimed) -> Result<bool, Error> {
        let call = self.scripts.call(Verb::Isolate);
        let call = call.key(claimed.key(&self.keys));
        let call = call.arg(self.clock.argument()).arg(&claimed.token);
        call.run(&self.conn).await
    }
}
