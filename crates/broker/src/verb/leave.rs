//! leave: a listener goes away in order.

use meshwork_model::keys::hero::Hero;

use super::Listener;
use crate::script::Verb;
use crate::{Broker, Error};

impl Broker {
    /// Takes a listener off the list and hands the ids that came to it meanwhile back to their queues.
    /// Returns their number. Nothing may be parked on its feed lists any more
    /// ([`BlockingConn`](super::BlockingConn)).
    ///
    /// # Errors
    /// If the server does not take the call; the listener then counts as gone after a while, and
    /// [`Broker::reclaim`] does the same.
    pub async fn leave(&self, listener: Listener<'_>) -> Result<usize, Error> {
        let mut handed_back = 0;
        loop {
            let mut call = self.scripts.call(Verb::Leave).arg(self.clock.argument());
            for queue in listener.queues {
                call.push_key(queue);
                call.push_key(self.keys.feed(listener.worker, queue));
                call.push_arg(Hero::feed_member(listener.worker, queue));
            }
            let mut answer = call.answer(&self.conn).await?;
            handed_back += answer.next::<usize>("moved")?;
            if !answer.flag("more")? {
                return Ok(handed_back);
            }
        }
    }
}
