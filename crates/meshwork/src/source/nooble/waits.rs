//! Waits under way on one connection, one behind the other: when the first ends, the server has the next one already, and
//! what comes never waits for one to be sent. So who waits need not give way to others before it waits again, which would
//! wake another thread of the runtime each time.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use meshwork_broker::nooble::Nooble;
use meshwork_broker::{Error, Parking};

/// How long a wait that is told to end may take before the server is asked once more.
const UNPARK_AGAIN: Duration = Duration::from_millis(20);

/// What has been asked for on one connection, in its order.
pub(super) struct Waits<T> {
    broker: Nooble,
    parking: Parking,
    sent: FuturesOrdered<BoxFuture<'static, Result<T, Error>>>,
}

impl<T> Waits<T> {
    /// None yet, over a connection of their own.
    pub(super) async fn open(broker: &Nooble) -> Result<Self, Error> {
        Ok(Self {
            broker: broker.clone(),
            parking: broker.parking().await?,
            sent: FuturesOrdered::new(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.sent.len()
    }

    /// Waits once more, behind the others. It is sent when [`Self::next`] is polled.
    pub(super) fn push<F>(&mut self, wait: impl FnOnce(Nooble, Parking) -> F)
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let wait = wait(self.broker.clone(), self.parking.clone());
        self.sent.push_back(Box::pin(wait));
    }

    /// What the first of them brings; where there is none, nothing ever. It may be dropped and called again.
    pub(super) async fn next(&mut self) -> Result<T, Error> {
        match self.sent.next().await {
            Some(came) => came,
            None => std::future::pending().await,
        }
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
