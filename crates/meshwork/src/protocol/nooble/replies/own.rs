//! Private lists of single calls, as Nooble4's clients use them. A bounded number of connections reads them in turns;
//! calls without a connection poll.

use std::sync::PoisonError;
use std::time::Duration;

use meshwork_broker::nooble::Nooble;
use meshwork_broker::{Backoff, BlockingConn};
use meshwork_model::nooble::Response;
use tokio::sync::SemaphorePermit;
use tokio::time::Instant;

use super::{CallAnswer, Error, Replies, correlation, fresh, reading};

/// Longest read of one call on a connection while other calls need one.
const TURN: Duration = Duration::from_secs(1);

/// First pause of a call without a connection or memory on the server. It doubles, up to [`TURN`].
const SOON: Duration = Duration::from_millis(16);

/// Extra time after a call's timeout, for a stalled server.
const LATE: Duration = Duration::from_secs(2);

/// A connection that one call has reserved.
struct Space<'a> {
    blocking: BlockingConn,
    _permit: SemaphorePermit<'a>,
}

/// Returns the next pause.
fn longer(pause: Duration) -> Duration {
    (pause * 2).clamp(SOON, TURN)
}

/// Returns the remaining time of a wait, at least 1 ms, since 0 would wait for ever.
fn left(until: Instant) -> Duration {
    let left = until.saturating_duration_since(Instant::now());
    left.max(Duration::from_millis(1))
}

impl Replies {
    /// Returns a connection until the given time. Returns `None` if none is free after `pause`, or it cannot be made in
    /// time.
    async fn space(
        &self,
        broker: &Nooble,
        pause: Duration,
        until: Instant,
    ) -> Result<Option<Space<'_>>, Error> {
        let free = until.min(Instant::now() + pause);
        let Ok(Ok(permit)) = tokio::time::timeout_at(free, self.spaces.acquire()).await else {
            return Ok(None);
        };
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let blocking = match idle {
            Some(blocking) => blocking,
            None => match tokio::time::timeout_at(until, broker.blocking_conn()).await {
                Ok(made) => made?,
                Err(_) => return Ok(None),
            },
        };
        Ok(Some(Space {
            blocking,
            _permit: permit,
        }))
    }

    /// Returns a working connection to the pool.
    fn vacate(&self, space: Space<'_>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(space.blocking);
    }

    /// Returns the oldest message of a list, and leaves it there. Waits up to one turn on a connection. If none is free
    /// after `pause`, or the server has no memory for blocking reads, it only reads the list.
    async fn look(
        &self,
        broker: &Nooble,
        list: &str,
        pause: &mut Duration,
        until: Instant,
    ) -> Result<Option<Vec<u8>>, Error> {
        let turn = until.min(Instant::now() + TURN);
        let Some(space) = self.space(broker, *pause, turn).await? else {
            *pause = longer(*pause);
            return Ok(broker.peek(list, None).await?);
        };
        let parked = Some((&space.blocking, left(turn)));
        match broker.peek(list, parked).await {
            // The server refuses the command, since it could move a message. Reads are never refused.
            Err(error) if error.is_out_of_memory() => {
                self.vacate(space);
                *pause = longer(*pause);
                tokio::time::sleep_until(turn.min(Instant::now() + *pause)).await;
                Ok(broker.peek(list, None).await?)
            }
            came => {
                let came = came?;
                self.vacate(space);
                Ok(came)
            }
        }
    }

    /// Waits for a message of a private list that `reads` accepts, and leaves it there. Removes other messages. Returns
    /// `None` at the timeout.
    async fn first<T>(
        &self,
        broker: &Nooble,
        list: &str,
        until: Instant,
        reads: impl Fn(&[u8]) -> Result<T, String>,
    ) -> Result<Option<(Vec<u8>, T)>, Error> {
        let mut pause = Duration::ZERO;
        loop {
            let Some(message) = self.look(broker, list, &mut pause, until).await? else {
                if Instant::now() >= until {
                    return Ok(None);
                }
                continue;
            };
            match reads(&message) {
                Ok(read) => return Ok(Some((message, read))),
                Err(why) => {
                    tracing::warn!(why, "reply dropped: not a valid message");
                    broker.drop_reply(list, &message).await?;
                }
            }
        }
    }

    /// Waits for a reply on a private list, and leaves it there. Returns `None` if none arrives in time.
    pub(in crate::protocol::nooble) async fn peek(
        &self,
        broker: &Nooble,
        list: &str,
        wait: Duration,
    ) -> Result<Option<(String, Response)>, Error> {
        let dialect = broker.names().dialect();
        let read = |message: &[u8]| reading(|| Response::read(message, dialect, fresh));
        let found = self
            .first(broker, list, Instant::now() + wait, read)
            .await?;
        // Readable messages are text.
        let text = |message: Vec<u8>| String::from_utf8_lossy(&message).into_owned();
        Ok(found.map(|(message, response)| (text(message), response)))
    }

    /// Waits for the reply with this correlation id on a private list, and leaves it there. Returns `None` if none
    /// arrives in time. The server may be unreachable meanwhile.
    pub(super) async fn of_one(
        &self,
        broker: &Nooble,
        (list, id): (&str, &str),
        wait: Duration,
    ) -> Result<Option<CallAnswer>, Error> {
        let until = Instant::now() + wait;
        let dialect = broker.names().dialect();
        let read = |message: &[u8]| match reading(|| Response::read(message, dialect, fresh)) {
            Err(why) if correlation(message).as_deref() != Some(id) => Err(why),
            answer => Ok(answer),
        };
        let found = async {
            let mut backoff = Backoff::new();
            loop {
                match self.first(broker, list, until, read).await {
                    Err(Error::Broker(error)) if error.is_temporary() => {
                        broker.outages().failed("replies", &error);
                        if Instant::now() >= until {
                            return Ok(None);
                        }
                        backoff.wait().await;
                    }
                    found => return found,
                }
            }
        };
        let found = tokio::time::timeout_at(until + LATE, found).await;
        Ok(found.unwrap_or(Ok(None))?.map(|(_, answer)| answer))
    }
}
