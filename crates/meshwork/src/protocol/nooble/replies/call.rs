//! A call in flight, and its cleanup: after a reply, at its timeout, and when its caller drops it.

use std::collections::hash_map::Entry;
use std::time::Duration;

use meshwork_broker::nooble::Nooble;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{CallAnswer, END, Error, MAX_CALLS, PendingReply, Replies, give_up};

/// A waiting call. When it is dropped, its id is free again, and a late reply gets an expiry.
pub(in crate::protocol::nooble) struct Call<'a> {
    replies: &'a Replies,
    broker: &'a Nooble,
    id: &'a str,
    list: String,
    comes: Comes,
    /// True while its reply may still arrive.
    open: bool,
}

/// Source of a call's reply.
enum Comes {
    /// The reader of shared lists.
    Shared(oneshot::Receiver<CallAnswer>),
    /// A private list.
    Own,
}

impl Replies {
    /// Begins a call with this id on a list, which is private if `own` is true.
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
            true => (PendingReply::Own(list.clone()), Comes::Own),
            false => {
                let (sender, receiver) = oneshot::channel();
                (PendingReply::Shared(Some(sender)), Comes::Shared(receiver))
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
    /// Waits for the reply. Returns `None` if none arrives in time.
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
                    let forgotten = self.broker.delete_replies(&list).await;
                    self.open = forgotten.is_err();
                }
                None => {
                    if let Some(given_up) = self.give_up() {
                        // The task continues without this wait.
                        let _ = given_up.await;
                    }
                }
            }
        };
        // If the server does not answer, the cleanup is left to the drop.
        let _ = tokio::time::timeout(END, ends).await;
        Ok(came)
    }

    /// Gives up its private list. Returns `None` without a runtime.
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
            // Before its entry is removed, so that closing the client finds one of both.
            Comes::Shared(_) if self.open => self.replies.miss(std::mem::take(&mut self.list)),
            _ => {}
        }
        self.replies.calls().remove(self.id);
    }
}
