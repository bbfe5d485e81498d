//! State of batches.

use meshwork_macros::boxed;
use meshwork_model::batch::Callback;
use meshwork_model::job::text;
use meshwork_model::name::BatchId;

use super::super::{Fields, at_most};
use crate::broker::Broker;
use crate::error::Error;

/// Greatest number of batches in a listing.
pub const MAX_BATCHES: usize = 1000;

/// State of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchState {
    /// Jobs may be added.
    Open,
    /// Clients can add no more jobs, and some have not ended.
    Sealed,
    /// The batch was cancelled, and some jobs have not ended.
    Cancelling,
    /// All its jobs have finished.
    Succeeded,
    /// All its jobs have ended, some with failures; or the batch expired before it was sealed, or has lost jobs.
    Failed,
    /// The batch was cancelled, and all its jobs have ended.
    Cancelled,
}

impl BatchState {
    /// Returns the word for the state.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Sealed => "sealed",
            Self::Cancelling => "cancelling",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns whether the state is final.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// A batch as stored in its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchStatus {
    /// Its id.
    pub id: BatchId,
    /// Name for people.
    pub name: String,
    /// State of the batch.
    pub state: BatchState,
    /// Number of jobs that were added.
    pub total: u64,
    /// Number of jobs that have finished.
    pub succeeded: u64,
    /// Number of jobs that have failed.
    pub failed: u64,
    /// Id of a failed job: the first one, or one of those that failed in the same call.
    pub first_failed: Option<String>,
    /// Time of creation, in milliseconds since 1970.
    pub created_ms: u64,
    /// Time of its end, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// Time until which it stays open when no job is added, in milliseconds since 1970; `None` if it is sealed.
    pub open_until_ms: Option<u64>,
    /// True if it was sealed because its open time was over.
    pub expired: bool,
    /// Reason of a cancellation.
    pub cancelled: Option<String>,
    /// Ids of its callbacks.
    pub callbacks: Vec<(Callback, String)>,
    /// Digest of the request that it was made from, if its client gave one.
    pub request_digest: Option<String>,
}

impl BatchStatus {
    /// Returns the number of jobs that have not ended; after the end of the batch, of those that were never counted, since
    /// their entries were lost.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.total.saturating_sub(self.succeeded + self.failed)
    }

    fn read(id: BatchId, fields: Fields) -> Option<Self> {
        let mut fields: std::collections::HashMap<String, String> = fields
            .into_iter()
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let number = |name: &str| fields.get(name).and_then(|n| n.parse::<u64>().ok());
        let (total, failed) = (number("total")?, number("failed").unwrap_or(0));
        let (succeeded, ended_ms) = (number("succeeded").unwrap_or(0), number("ended"));
        let (created_ms, open_until_ms) = (number("created").unwrap_or(0), number("open_until"));
        let [sealed, expired, cancelled] =
            ["sealed", "expired", "cancelled"].map(|name| fields.contains_key(name));
        let state = match (ended_ms.is_some(), cancelled) {
            (true, true) => BatchState::Cancelled,
            (true, false) if succeeded != total || expired => BatchState::Failed,
            (true, false) => BatchState::Succeeded,
            (false, true) => BatchState::Cancelling,
            (false, false) if sealed => BatchState::Sealed,
            (false, false) => BatchState::Open,
        };
        let callback = |kind: Callback| Some((kind, fields.get(&format!("on_{kind}"))?.clone()));
        Some(Self {
            callbacks: Callback::ALL.into_iter().filter_map(callback).collect(),
            name: fields.remove("name").unwrap_or_default(),
            first_failed: fields.remove("failing").filter(|id| !id.is_empty()),
            cancelled: fields.remove("cancelled"),
            request_digest: fields.remove("request"),
            open_until_ms: open_until_ms.filter(|_| !sealed),
            id,
            state,
            total,
            succeeded,
            failed,
            created_ms,
            ended_ms,
            expired,
        })
    }
}

impl Broker {
    /// Returns the state of a batch, if it exists.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn batch_status(&self, id: &BatchId) -> Result<Option<BatchStatus>, Error> {
        let get = redis::cmd("HGETALL").arg(self.keys.batch(id)).to_owned();
        let fields: Fields = self.ask("inspect", &get).await?;
        Ok(BatchStatus::read(id.clone(), fields))
    }

    /// Returns up to `limit` batches without the first `from`, and whether more may follow: first those that have not
    /// ended, then the others, the latest end first.
    ///
    /// # Errors
    /// `limit` exceeds [`MAX_BATCHES`], or the server refuses a call.
    #[boxed]
    pub async fn batches(
        &self,
        from: usize,
        limit: usize,
    ) -> Result<(Vec<BatchStatus>, bool), Error> {
        at_most("batches", MAX_BATCHES, limit)?;
        if limit == 0 {
            return Ok((Vec::new(), false));
        }
        let open = redis::cmd("ZCARD").arg(self.keys.batches_open()).to_owned();
        let open: usize = self.or_nothing(self.ask("batches", &open).await)?;
        let mut ids: Vec<Vec<u8>> = Vec::new();
        for (command, key) in [
            ("ZRANGE", self.keys.batches_open()),
            ("ZREVRANGEBYSCORE", self.keys.batches_ended()),
        ] {
            let mut cmd = redis::cmd(command);
            cmd.arg(key);
            match command {
                "ZRANGE" => cmd.arg(from).arg(from + limit - 1),
                _ => {
                    let skip = from.saturating_sub(open);
                    cmd.arg("+inf")
                        .arg("-inf")
                        .arg("LIMIT")
                        .arg(skip)
                        .arg(limit)
                }
            };
            ids.extend(self.or_nothing(self.ask::<Vec<Vec<u8>>>("batches", &cmd).await)?);
        }
        let is_full = ids.len() >= limit;
        ids.truncate(limit);
        let ids = ids.into_iter().map(|id| BatchId::foreign(text(id)));
        Ok((self.statuses_of(ids.collect()).await?, is_full))
    }

    async fn statuses_of(&self, ids: Vec<BatchId>) -> Result<Vec<BatchStatus>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for id in &ids {
            pipe.cmd("HGETALL").arg(self.keys.batch(id));
        }
        let hashes: Vec<Fields> = self.seen_all("inspect", &mut pipe).await?;
        let read = |(id, fields)| BatchStatus::read(id, fields);
        Ok(ids.into_iter().zip(hashes).filter_map(read).collect())
    }
}
