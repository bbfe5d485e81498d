//! Waits under way on one connection, one behind the other: when the first ends, the server has the next one already, and
//! what comes never waits for one to be sent. So who waits need not give way to others before it waits again, which would
//! wake another thread of the runtime each time.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, MaybeDone, maybe_done};
use meshwork_broker::nooble::Nooble;
use meshwork_broker::{Error, Parking};

/// How long a wait that is told to end may take before the server is asked once more.
const UNPARK_AGAIN: Duration = Duration::from_millis(20);

/// What has been asked for on one connection, in its order.
pub(super) struct Waits<T> {
    broker: Nooble,
    parking: Parking,
    /// Those that are not over. They end in this order, since their connection answers so: only the first is looked at.
    waits: VecDeque<MaybeDone<BoxFuture<'static, Result<T, Error>>>>,
    /// How many of them, the last ones, are not sent yet.
    unsent: usize,
}

impl<T> Waits<T> {
    /// None yet, over a connection of their own.
    pub(super) async fn open(broker: &Nooble) -> Result<Self, Error> {
        Ok(Self {
            broker: broker.clone(),
            parking: broker.parking().await?,
            waits: VecDeque::new(),
            unsent: 0,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.waits.len()
    }

    /// Waits once more, behind the others. It is sent when [`Self::next`] is polled.
    pub(super) fn push<F>(&mut self, wait: impl FnOnce(Nooble, Parking) -> F)
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let wait = wait(self.broker.clone(), self.parking.clone());
        self.waits.push_back(maybe_done(wait.boxed()));
        self.unsent += 1;
    }

    /// What the first of them brings; where there is none, nothing ever. It may be dropped and called again.
    pub(super) async fn next(&mut self) -> Result<T, Error> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<T, Error>> {
        let sent = self.waits.len() - std::mem::take(&mut self.unsent);
        for wait in self.waits.range_mut(sent..) {
            // Should it be over at once, it keeps what it brought.
            let _ = wait.poll_unpin(context);
        }
        let Some(first) = self.waits.front_mut() else {
            return Poll::Pending;
        };
        ready!(first.poll_unpin(context));
        let came = Pin::new(first).take_output();
        self.waits.pop_front();
        came.map_or(Poll::Pending, Poll::Ready)
    }

    /// Ends them; what came until then is given to `came`.
    pub(super) async fn end(&mut self, mut came: impl FnMut(T)) -> Result<(), Error> {
        while self.len() > 0 {
            if let Err(error) = self.broker.unpark(&self.parking).await {
                tracing::debug!(%error, "the wait ends by itself");
            }
            // The wait may have reached the server only after the word to end it.
            if let Ok(ended) = tokio::time::timeout(UNPARK_AGAIN, self.next()).await {
                came(ended?);
            }
        }
        Ok(())
    }
}
