//! Refused requests, counted by author and minute beside the audit trail, which they could otherwise fill.

use meshwork_broker::context::{Commit, Database, RecordFields};
use meshwork_macros::boxed;
use meshwork_model::access::{Object, Operation};
use meshwork_model::context::limits::{MAX_AUDIT_VALUE, MAX_REFUSED};
use serde::Serialize;

use super::{Acting, ContextError, ContextHandle, Node};

/// Refused requests of an author in one minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusals {
    /// Begin of the minute, in seconds since 1970.
    pub at: u32,
    /// Author: `actor 12`, `stranger` for one without a trusted key, or the sender of a message.
    pub who: String,
    /// Number of refused requests.
    pub count: u64,
    /// Reason of the last one.
    pub last: String,
}

impl Refusals {
    fn read(row: &str, value: &[u8]) -> Option<Self> {
        let (at, who) = row.split_once(' ')?;
        let value = String::from_utf8_lossy(value);
        let (count, last) = value.split_once(' ')?;
        Some(Self {
            at: at.parse().ok()?,
            who: who.to_owned(),
            count: count.parse().ok()?,
            last: last.to_owned(),
        })
    }
}

/// Returns the latest `most` rows, oldest first. Rows that cannot be read are left out.
fn latest(rows: RecordFields, most: usize) -> Vec<Refusals> {
    let rows = rows.iter();
    let mut rows: Vec<_> = rows
        .filter_map(|(row, value)| Refusals::read(row, value))
        .collect();
    rows.sort_by(|a, b| (a.at, &a.who).cmp(&(b.at, &b.who)));
    rows.split_off(rows.len().saturating_sub(most))
}

fn counted(key: &str, who: &str, why: &str) -> Commit {
    let why = &why[..why.floor_char_boundary(MAX_AUDIT_VALUE)];
    Commit::default().count(key, MAX_REFUSED, who, why)
}

impl ContextHandle {
    /// Counts a refused request.
    pub(crate) async fn count_refused(&self, who: &str, why: &str) -> Result<(), ContextError> {
        let _ = self
            .commit(&counted(&self.keys().refused(), who, why))
            .await?;
        Ok(())
    }

    /// Returns the latest `most` rows of refused requests, one for each author and minute, oldest first. About 1,000 rows are
    /// kept.
    ///
    /// # Errors
    /// [`ContextError::Denied`], or a call to the server fails.
    pub async fn refusals(
        &self,
        me: &impl Acting,
        most: usize,
    ) -> Result<Vec<Refusals>, ContextError> {
        self.allow_caller(me, Object::Audit, Operation::Read)
            .await?;
        let key = self.keys().refused();
        Ok(latest(
            self.store().hash(self.database(), &key).await?,
            most,
        ))
    }
}

impl Node {
    /// Counts a refused message for a context that does not exist.
    pub(crate) async fn count_refused(&self, who: &str, why: &str) -> Result<(), ContextError> {
        let commit = counted(&self.keys().refused(), who, why);
        let _ = self.store().commit(Database::Node, &commit).await?;
        Ok(())
    }

    /// Returns the latest `most` rows of refused messages of other nodes that went to no context.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn refusals(&self, most: usize) -> Result<Vec<Refusals>, ContextError> {
        let key = self.keys().refused();
        Ok(latest(self.store().hash(Database::Node, &key).await?, most))
    }
}
