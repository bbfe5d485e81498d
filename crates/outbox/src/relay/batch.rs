//! A batch of rows, in steps after each of which the process may be killed.
//!
//! 1. Claim: marks the rows as attempted, and commits. So the next relay knows that the store may have the jobs.
//! 2. Hold: holds the rows that no other relay has claimed since ([`Dialect`](crate::database::Dialect)).
//! 3. Send: enqueues the jobs ([`send`](super::send)).
//! 4. Settle: deletes the rows that the store has, writes the errors of the others, and commits.
//!
//! The hold ends with the process: at once in PostgreSQL, and after 10 s in SQLite. The store leaves an id that it has alone.

use std::collections::HashMap;

use meshwork_broker::Retained;

use super::Relay;
use super::refusals::Refusals;
use crate::database::{Claimed, Claims, Held};
use crate::{Database, Error};

impl<D: Database> Relay<D> {
    /// Moves a batch, and counts the rows that the store refused. Returns true if there may be more.
    pub(crate) async fn batch(&self, refusals: &mut Refusals) -> Result<bool, Error> {
        let retained = self.retained().await?;
        let Claims { rows, more } = self.claim(retained.now_ms).await?;
        if rows.is_empty() {
            return Ok(false);
        }
        let (mut hold, held) = self.hold(&rows).await?;
        let sent = tokio::select! {
            sent = self.send(held) => sent,
            never = D::keep(&mut hold) => match never {},
        };
        match sent {
            Ok(sent) => {
                D::settle(hold, &sent).await?.commit().await?;
                refusals.add(sent.refused);
            }
            Err(error) => {
                D::release(hold).await;
                return Err(error);
            }
        }
        Ok(more)
    }

    pub(crate) async fn retained(&self) -> Result<Retained, Error> {
        let retained = self.client.broker().retained().await;
        Ok(retained.map_err(meshwork::Error::from)?)
    }

    /// Marks the rows that are due as attempted at this time of the store.
    pub(crate) async fn claim(&self, now_ms: u64) -> Result<Claims, Error> {
        let claims = D::claim(&self.pool, &self.outbox.tables, now_ms.cast_signed()).await;
        claims.map_err(|error| self.outbox.error::<D>(error))
    }

    /// Holds claimed rows, without those that another relay has claimed since.
    pub(crate) async fn hold(&self, claimed: &[Claimed]) -> Result<(D::Held, Vec<Held>), Error> {
        let (hold, jobs) = D::hold(&self.pool, &self.outbox.tables, claimed).await?;
        let mut jobs: HashMap<_, _> = jobs.into_iter().collect();
        let held = claimed.iter().filter_map(|row| {
            let job = jobs.remove(&row.id)?;
            Some(Held {
                claimed: row.clone(),
                job,
            })
        });
        Ok((hold, held.collect()))
    }
}
