//! Pipelined blocking reads on one connection. When the first one ends, the server has the next one already, so a message
//! that arrives never waits for a read to be sent. The reader also needs no turn of the runtime between two reads, which
//! would wake another thread each time.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, MaybeDone, maybe_done};
use meshwork_broker::Error;

/// Pause before the call that unblocks a read is repeated.
const END_AGAIN: Duration = Duration::from_millis(20);

/// Most calls to unblock a read that succeed without effect: six seconds, as in the broker. After that the read counts as
/// open on another server, for example before a failover.
const ENDS: u32 = 300;

/// The blocking reads that are open on one connection, in the order of their sending.
pub struct PipelinedReads<C, T> {
    conn: C,
    waits: InOrder<Result<T, Error>>,
}

impl<C: Clone, T: Send + 'static> PipelinedReads<C, T> {
    /// Creates an empty pipeline over a connection.
    pub fn over(conn: C) -> Self {
        let waits = InOrder::default();
        Self { conn, waits }
    }

    /// Returns the number of open reads.
    pub fn len(&self) -> usize {
        self.waits.all.len()
    }

    /// Returns true if no read is open.
    pub fn is_empty(&self) -> bool {
        self.waits.all.is_empty()
    }

    /// Adds a read behind the others. It is sent when [`Self::next`] is polled.
    pub fn push<F>(&mut self, wait: impl FnOnce(C) -> F)
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.waits.push(wait(self.conn.clone()));
    }

    /// Returns the result of the first read; never returns without a read. Cancel safe.
    pub async fn next(&mut self) -> Result<T, Error> {
        poll_fn(|context| self.waits.poll_next(context)).await
    }

    /// Ends all reads. `end` asks the server to unblock one read; results that arrive until then are passed to `came`.
    ///
    /// # Errors
    /// A read fails. Or the server answers but ends no read: it has replaced the server on which the reads are open.
    pub async fn end<E>(
        &mut self,
        end: impl Fn(C) -> E,
        mut came: impl FnMut(T),
    ) -> Result<(), Error>
    where
        E: Future<Output = Result<(), Error>>,
    {
        let mut answered = 0;
        while !self.is_empty() {
            match end(self.conn.clone()).await {
                Ok(()) => answered += 1,
                Err(error) => tracing::debug!(%error, "read not unblocked: it ends by its timeout"),
            }
            // The read may have reached the server after the call to unblock it.
            match tokio::time::timeout(END_AGAIN, self.next()).await {
                Ok(ended) => {
                    came(ended?);
                    answered = 0;
                }
                Err(_) if answered < ENDS => {}
                Err(_) => return Err(Error::timed_out("unblock")),
            }
        }
        Ok(())
    }
}

/// Futures that start and complete in order, as calls over one connection do: only the first is polled.
struct InOrder<T> {
    all: VecDeque<MaybeDone<BoxFuture<'static, T>>>,
    /// Number of futures at the end that have not started.
    new: usize,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self {
            all: VecDeque::new(),
            new: 0,
        }
    }
}

impl<T> InOrder<T> {
    fn push(&mut self, future: impl Future<Output = T> + Send + 'static) {
        self.all.push_back(maybe_done(future.boxed()));
        self.new += 1;
    }

    /// Starts new futures, and returns the output of the first one.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<T> {
        let begun = self.all.len() - std::mem::take(&mut self.new);
        for future in self.all.range_mut(begun..) {
            // A future that completes at once keeps its output until it is the first.
            let _ = future.poll_unpin(context);
        }
        let Some(first) = self.all.front_mut() else {
            return Poll::Pending;
        };
        ready!(first.poll_unpin(context));
        let gives = Pin::new(first).take_output();
        self.all.pop_front();
        gives.map_or(Poll::Pending, Poll::Ready)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures_util::task::noop_waker;
    use meshwork_broker::BlockingConn;
    use meshwork_broker::conn::Conn;
    use meshwork_broker::nooble::Nooble;
    use meshwork_conformance::agreeing::FakeAgreeing;
    use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
    use meshwork_model::name::Namespace;
    use tokio::sync::oneshot;

    use super::*;

    /// Futures that record their start.
    #[derive(Default)]
    struct Begun(Arc<Mutex<Vec<u8>>>);

    impl Begun {
        fn future<F: Future>(
            &self,
            number: u8,
            then: F,
        ) -> impl Future<Output = F::Output> + use<F> {
            let begun = Arc::clone(&self.0);
            async move {
                begun.lock().unwrap().push(number);
                then.await
            }
        }

        fn all(&self) -> Vec<u8> {
            self.0.lock().unwrap().clone()
        }
    }

    /// Another server answers instead of the one on which the read is open, and the connection of the read is silent.
    #[tokio::test]
    async fn a_wait_on_a_server_that_was_replaced_ends() {
        let names = NoobleKeys::new(Namespace::nooble(), None, Dialect::Lists);
        let broker = Nooble::new(Conn::new(FakeAgreeing), names);
        let mut waits = PipelinedReads::<_, ()>::over(broker.blocking_conn().await.unwrap());
        waits.push(|_| std::future::pending());
        let end = async |conn: BlockingConn| broker.unblock(&conn).await;
        let ended = tokio::time::timeout(Duration::from_secs(60), waits.end(end, |()| {}));
        assert!(ended.await.unwrap().unwrap_err().is_connection_lost());
    }

    fn next<T>(waits: &mut InOrder<T>) -> Poll<T> {
        waits.poll_next(&mut Context::from_waker(&noop_waker()))
    }

    #[test]
    fn all_begin_at_once_and_give_what_they_do_in_their_order() {
        let (begun, mut waits) = (Begun::default(), InOrder::default());
        let (first, hears) = oneshot::channel();
        waits.push(begun.future(1, async { hears.await.unwrap() }));
        waits.push(begun.future(2, async { "over at once" }));
        assert!(begun.all().is_empty());
        assert_eq!(next(&mut waits), Poll::Pending);
        assert_eq!(begun.all(), [1, 2]);

        waits.push(begun.future(3, std::future::pending()));
        first.send("first").unwrap();
        assert_eq!(next(&mut waits), Poll::Ready("first"));
        assert_eq!(begun.all(), [1, 2, 3], "each begins once");
        assert_eq!(next(&mut waits), Poll::Ready("over at once"));
        assert_eq!(next(&mut waits), Poll::Pending);
        assert_eq!(waits.all.len(), 1);
    }

    #[test]
    fn where_there_is_none_nothing_comes() {
        assert_eq!(next(&mut InOrder::<()>::default()), Poll::Pending);
    }
}
