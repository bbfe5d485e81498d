//! A batch of rows, in steps after each of which the process may be killed.
//!
//! 1. Claim: marks the rows as attempted, and commits. So the next relay knows that the store may have the jobs.
//! 2. Lock: locks the rows that no other relay has claimed since.
//! 3. Send: enqueues the jobs ([`send`](super::send)).
//! 4. Settle: deletes the rows that the store has, writes the errors of the others, and commits.
//!
//! The locks end with the process, so the next relay takes the rows at once. The store leaves an id that it has alone.

use std::collections::HashMap;

use meshwork_broker::Retained;
use sqlx::{AssertSqlSafe, Postgres, Row, Transaction};

use super::Relay;
use super::row::{Claimed, Locked, Refused, Sent};
use crate::Error;

/// Most rows of a batch: their locks are held during one call to the store.
const MAX_ROWS: i64 = 500;
/// Most bytes of a batch, unless a single row has more: a bound on memory.
const MAX_BYTES: i64 = 16 * 1024 * 1024;

impl Relay {
    /// Moves a batch. Returns true if there may be more.
    pub(crate) async fn batch(&self) -> Result<bool, Error> {
        let retained = self.retained().await?;
        let claimed = self.claim(retained.now_ms).await?;
        if claimed.is_empty() {
            return Ok(false);
        }
        let mut bytes = 0;
        let within = claimed.iter().take_while(|row| {
            bytes += row.bytes;
            bytes <= MAX_BYTES
        });
        let count = within.count().max(1);
        let mut tx = self.pool.begin().await?;
        let locked = self.lock(&mut tx, &claimed[..count]).await?;
        let sent = self.send(locked).await?;
        self.settle(&mut tx, &sent).await?;
        tx.commit().await?;
        Ok(count < claimed.len() || claimed.len() as i64 == MAX_ROWS)
    }

    pub(crate) async fn retained(&self) -> Result<Retained, Error> {
        let retained = self.client.broker().retained().await;
        Ok(retained.map_err(meshwork::Error::from)?)
    }

    /// Marks the rows that are due as attempted at this time of the store, and returns them in order.
    pub(crate) async fn claim(&self, now_ms: u64) -> Result<Vec<Claimed>, Error> {
        let rows = sqlx::query(AssertSqlSafe(self.outbox.tables.claim.clone()))
            .bind(MAX_ROWS)
            .bind(now_ms.cast_signed())
            .fetch_all(&self.pool)
            .await
            .map_err(|error| Error::of(error, &self.outbox.tables.outbox))?;
        let read = |row: sqlx::postgres::PgRow| -> Result<Claimed, sqlx::Error> {
            Ok(Claimed {
                seq: row.try_get("seq")?,
                id: row.try_get("id")?,
                claims: row.try_get("claims")?,
                attempts: row.try_get("attempts")?,
                bytes: row.try_get("bytes")?,
                earlier_ms: row
                    .try_get::<Option<i64>, _>("earlier_ms")?
                    .map(i64::cast_unsigned),
            })
        };
        let mut claimed = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        claimed.sort_by_key(|row| row.seq);
        Ok(claimed)
    }

    /// Locks claimed rows until the end of the transaction, without those that another relay has claimed since.
    pub(crate) async fn lock(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        claimed: &[Claimed],
    ) -> Result<Vec<Locked>, Error> {
        let ids: Vec<_> = claimed.iter().map(|row| row.id.as_str()).collect();
        let claims: Vec<_> = claimed.iter().map(|row| row.claims).collect();
        let rows = sqlx::query(AssertSqlSafe(self.outbox.tables.lock.clone()))
            .bind(&ids)
            .bind(&claims)
            .fetch_all(&mut **tx)
            .await?;
        let texts = rows.into_iter().map(|row| {
            let (id, job): (String, String) = (row.try_get("id")?, row.try_get("job")?);
            Ok((id, job))
        });
        let mut texts: HashMap<_, _> = texts.collect::<Result<_, sqlx::Error>>()?;
        let locked = claimed.iter().filter_map(|row| {
            let job = texts.remove(&row.id)?;
            Some(Locked {
                claimed: row.clone(),
                job,
            })
        });
        Ok(locked.collect())
    }

    /// Deletes the rows whose jobs the store has, and writes the errors of the others.
    pub(crate) async fn settle(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        sent: &Sent,
    ) -> Result<(), Error> {
        if !sent.stored.is_empty() {
            sqlx::query(AssertSqlSafe(self.outbox.tables.delete.clone()))
                .bind(&sent.stored)
                .execute(&mut **tx)
                .await?;
        }
        if sent.refused.is_empty() {
            return Ok(());
        }
        let column = |of: fn(&Refused) -> String| sent.refused.iter().map(of).collect::<Vec<_>>();
        let pauses: Vec<Option<i64>> = sent.refused.iter().map(|row| row.pause_ms).collect();
        let uncertain: Vec<bool> = sent.refused.iter().map(|row| row.uncertain).collect();
        sqlx::query(AssertSqlSafe(self.outbox.tables.refuse.clone()))
            .bind(column(|row| row.id.clone()))
            .bind(column(|row| row.error.clone()))
            .bind(pauses)
            .bind(uncertain)
            .execute(&mut **tx)
            .await?;
        Ok(())
    }
}
