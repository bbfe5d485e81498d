//! Lists of single calls, as Nooble4's clients have them: each is waited on over a connection of its own, of which there
//! is a bounded number. Lists of many calls are not here.

use std::sync::PoisonError;
use std::time::Duration;

use meshwork_broker::Parking;
use meshwork_broker::nooble::Nooble;
use meshwork_model::nooble::Response;
use tokio::sync::SemaphorePermit;
use tokio::time::Instant;

use super::{Error, Replies, Told, correlation, fresh, reading};

/// How long one wait for an answer that stays has a connection for itself, while others may wait for it.
const TURN: Duration = Duration::from_secs(1);

/// How long a server that stands still is waited for past the time of a call.
const LATE: Duration = Duration::from_secs(2);

/// A connection that one wait has for itself.
struct Space<'a> {
    parking: Parking,
    _permit: SemaphorePermit<'a>,
}

/// What is left of a wait; 0 would be for ever.
fn left(until: Instant) -> Duration {
    let left = until.saturating_duration_since(Instant::now());
    left.max(Duration::from_millis(1))
}

impl Replies {
    /// A connection to wait on. None if none is free in time.
    async fn space(&self, broker: &Nooble, until: Instant) -> Result<Option<Space<'_>>, Error> {
        let Ok(Ok(permit)) = tokio::time::timeout_at(until, self.spaces.acquire()).await else {
            return Ok(None);
        };
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let parking = match idle {
            Some(parking) => parking,
            None => broker.parking().await?,
        };
        Ok(Some(Space {
            parking,
            _permit: permit,
        }))
    }

    /// A wait is over, and its connection sound.
    fn vacate(&self, space: Space<'_>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(space.parking);
    }

    /// Waits for the answer on a list of one call, and leaves it there. Whoever finds no connection free looks once
    /// in each turn. None if none came in time.
    pub(in crate::source::nooble) async fn peek(
        &self,
        broker: &Nooble,
        list: &str,
        wait: Duration,
    ) -> Result<Option<(String, Response)>, Error> {
        let until = Instant::now() + wait;
        let dialect = broker.names().dialect();
        let mut came = broker.peek(list, None).await?;
        loop {
            if let Some(message) = came {
                match reading(|| Response::read(&message, dialect, fresh)) {
                    // What can be read is text.
                    Ok(response) => {
                        let text = String::from_utf8_lossy(&message).into_owned();
                        return Ok(Some((text, response)));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "dropped an answer that is none");
                        broker.drop_reply(list, &message).await?;
                    }
                }
            }
            let now = Instant::now();
            if now >= until {
                return Ok(None);
            }
            let turn = until.min(now + TURN);
            came = match self.space(broker, turn).await? {
                None => broker.peek(list, None).await?,
                Some(space) => {
                    let parked = Some((&space.parking, left(turn)));
                    let came = broker.peek(list, parked).await?;
                    self.vacate(space);
                    came
                }
            };
        }
    }

    /// Waits for the answer on a list of the call with this correlation id. None if none came in time.
    pub(in crate::source::nooble) async fn of_one(
        &self,
        broker: &Nooble,
        (list, id): (&str, &str),
        wait: Duration,
    ) -> Result<Option<Told>, Error> {
        let until = Instant::now() + wait;
        let Some(space) = self.space(broker, until).await? else {
            return Ok(None);
        };
        let one = [list.to_owned()];
        let dialect = broker.names().dialect();
        let read = |message: &Vec<u8>| {
            let read = reading(|| Response::read(message, dialect, fresh));
            if let Err(why) = &read
                && correlation(message).as_deref() != Some(id)
            {
                tracing::warn!(why, "dropped an answer that is none");
                return None;
            }
            Some(read)
        };
        loop {
            let waits = broker.replies(&space.parking, &one, left(until), Duration::ZERO);
            // Nobody else waits on this list.
            let Ok(came) = tokio::time::timeout_at(until + LATE, waits).await else {
                return Ok(None);
            };
            let came = came?;
            let answer = came.iter().find_map(read);
            if answer.is_some() || Instant::now() >= until {
                self.vacate(space);
                return Ok(answer);
            }
        }
    }
}
