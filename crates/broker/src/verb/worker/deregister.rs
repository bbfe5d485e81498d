//! deregister: deregisters a worker's prefetch lists at shutdown.

use meshwork_macros::boxed;
use meshwork_model::keys::hero::JobKeys;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::Listener;

impl Broker {
    /// Deregisters a worker's prefetch lists, and releases their ids to the queues. Returns the number of released
    /// ids. No blocked call may wait for these lists any more ([`BlockingConn`](crate::verb::BlockingConn)).
    ///
    /// # Errors
    /// The server refuses the call. The worker then counts as dead after a while, and [`Broker::reclaim`] does the
    /// same.
    #[boxed]
    pub async fn deregister_prefetch(&self, listener: Listener<'_>) -> Result<usize, Error> {
        let mut released = 0;
        loop {
            let mut call = self
                .scripts
                .call(Verb::Deregister)
                .arg(self.clock.argument());
            for queue in listener.queues {
                call.push_key(queue);
                call.push_key(self.keys.feed(listener.worker, queue));
                call.push_arg(JobKeys::prefetch_member(listener.worker, queue));
            }
            let mut answer = call.answer(&self.conn).await?;
            released += answer.next::<usize>("moved")?;
            if !answer.flag("more")? {
                return Ok(released);
            }
        }
    }
}
