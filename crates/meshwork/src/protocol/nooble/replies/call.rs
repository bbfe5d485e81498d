//! A call under way, and what is to be ended of it, however it ends: answered, not in time, or dropped by its caller.

use std::collections::hash_map::Entry;
use std::time::Duration;

use meshwork_broker::nooble::Nooble;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{CallAnswer, END, Error, MAX_CALLS, Replies, Waits, give_up};

/// One call that waits. When this is dropped its id is free again, and an answer that comes later has an end.
pub(in crate::protocol::nooble) struct Call<'a> {
    replies: &'a Replies,
    broker: &'a Nooble,
    id: &'a str,
    list: String,
    comes: Comes,
    /// Its answer may still come.
    open: bool,
}

/// Source of a call's answer.
enum Comes {
    /// From who reads the lists of many calls.
    Shared(oneshot::Receiver<CallAnswer>),
    /// On a list of its own.
    Own,
}

impl Replies {
    /// Begins to wait for the answer to the call of this id on a list, which is of that call alone if it is `own`.
    pub(in crate::protocol::nooble) fn begin<'a>(
        &'a self,
        broker: &'a Nooble,
        (id, list): (&'a str, String),
        own: bool,
    ) -> Result<Call<'a>, Error> {
        let mut calls = self.calls();
        if self.closed.is_cancelled() {
            return Err(Error::Closed);
        }
        if calls.len() >= MAX_CALLS {
            return Err(Error::TooMany { most: MAX_CALLS });
        }
        let Entry::Vacant(entry) = calls.entry(id.to_owned()) else {
            return Err(Error::UnderWay {
                correlation_id: id.to_owned(),
            });
        };
        let (waits, comes) = match own {
            true => (Waits::Own(list.clone()), Comes::Own),
            false => {
                let (sender, receiver) = oneshot::channel();
                (Waits::Shared(Some(sender)), Comes::Shared(receiver))
            }
        };
        entry.insert(waits);
        Ok(Call {
            replies: self,
            broker,
            id,
            list,
            comes,
            open: true,
        })
    }
}

impl Call<'_> {
    /// The answer; None if none comes in time.
    pub(in crate::protocol::nooble) async fn answer(
        mut self,
        wait: Duration,
    ) -> Result<Option<CallAnswer>, Error> {
        let Comes::Shared(receiver) = &mut self.comes else {
            return Box::pin(self.own_answer(wait)).await;
        };
        match tokio::time::timeout(wait, receiver).await {
            Ok(Ok(answer)) => {
                self.open = false;
                Ok(Some(answer))
            }
            Ok(Err(_)) => Err(Error::Closed),
            Err(_) => Ok(None),
        }
    }

    async fn own_answer(mut self, wait: Duration) -> Result<Option<CallAnswer>, Error> {
        let place = (self.list.as_str(), self.id);
        let came = self.replies.of_one(self.broker, place, wait);
        let came = self.replies.closed.run_until_cancelled(came).await;
        let came = came.ok_or(Error::Closed)??;
        let ends = async {
            match came {
                Some(_) => {
                    let list = [self.list.clone()];
                    let forgotten = self.broker.forget_replies(&list).await;
                    self.open = forgotten.is_err();
                }
                None => {
                    if let Some(given_up) = self.give_up() {
                        // It goes on whether or not it is waited for.
                        let _ = given_up.await;
                    }
                }
            }
        };
        // What a server that stands still leaves of it is for who drops this.
        let _ = tokio::time::timeout(END, ends).await;
        Ok(came)
    }

    /// Gives up its own list. None if there is no runtime any more.
    fn give_up(&mut self) -> Option<JoinHandle<()>> {
        self.open = false;
        let runtime = Handle::try_current().ok()?;
        let (broker, list) = (self.broker.clone(), std::mem::take(&mut self.list));
        let gives_up = async move { give_up(&broker, &list).await };
        Some(self.replies.endings.spawn_on(gives_up, &runtime))
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        match self.comes {
            Comes::Own if self.open => drop(self.give_up()),
            // Before its entry is gone: who closes the client finds the one or the other.
            Comes::Shared(_) if self.open => self.replies.miss(std::mem::take(&mut self.list)),
            _ => {}
        }
        self.replies.calls().remove(self.id);
    }
}
