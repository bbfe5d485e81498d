//! tidy: cleanup after actions that have ended, which no caller waits for, and their trace.

use meshwork_macros::boxed;
use meshwork_model::nooble::TraceEvent;

use super::report::tries_of;
use super::{Nooble, Received};
use crate::error::Error;
use crate::verb::inspect::stream::Entry;
use crate::verb::{MAX_ITEMS, at_most};

/// Approximate number of entries that are kept: some megabytes.
const MOST_TRACED: usize = 50_000;
/// Time to live of the trace after the last action, in milliseconds (1 day).
const TRACED_FOR_MS: u64 = 86_400_000;
/// Field of an entry. One field costs the server less than one for each value.
const ENTRY: &str = "entry";

/// The cleanup for an ended action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckCleanup {
    /// Key of its count of failures.
    tries: String,
    /// Its entry in the trace.
    entry: String,
}

impl AckCleanup {
    /// Returns the cleanup for the message, with its entry in the trace.
    #[must_use]
    pub fn new(received: &Received, event: &TraceEvent<'_>) -> Self {
        Self {
            tries: tries_of(received),
            entry: event.write(),
        }
    }

    /// Returns its length, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tries.len() + self.entry.len()
    }
}

impl Nooble {
    /// Adds ended actions to the trace, the earliest first, and deletes their counts of failures. Without this call,
    /// the counts expire after a day.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], the trace's key has another type, or the server refuses the call. A part
    /// may be done then.
    #[boxed]
    pub async fn clean_up(&self, over: &[AckCleanup]) -> Result<(), Error> {
        at_most("tidy", MAX_ITEMS, over.len())?;
        if over.is_empty() {
            return Ok(());
        }
        let trace = self.keys.trace();
        let (mut all, mut forget) = (redis::pipe(), redis::cmd("DEL"));
        for one in over {
            all.cmd("XADD").arg(&trace);
            all.arg("MAXLEN").arg("~").arg(MOST_TRACED);
            all.arg("*").arg(ENTRY).arg(&one.entry).ignore();
            forget.arg(&one.tries);
        }
        all.cmd("PEXPIRE").arg(&trace).arg(TRACED_FOR_MS).ignore();
        all.add_command(forget).ignore();
        let tidied = all.query_async(&mut self.conn.clone()).await;
        tidied.map_err(|source| Error::of_pipeline("tidy", &all, source))
    }

    /// Returns entries of the trace with their ids, before `before`, or from the latest one on, the latest first. An
    /// unreadable entry is `None`.
    ///
    /// # Errors
    /// `most` exceeds [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
    pub async fn traced(
        &self,
        before: Option<&str>,
        most: usize,
    ) -> Result<Vec<(String, Option<TraceEvent<'static>>)>, Error> {
        at_most("traced", MAX_ITEMS, most)?;
        let end = before.map_or_else(|| "+".to_owned(), |id| format!("({id}"));
        let mut cmd = redis::cmd("XREVRANGE");
        cmd.arg(self.keys.trace()).arg(end).arg("-");
        let found: Vec<_> = self.ask("traced", cmd.arg("COUNT").arg(most)).await?;
        let read = |entry| {
            let entry = Entry::read(entry);
            let id = entry.id.clone();
            let field = entry.fields().find(|(name, _)| name == ENTRY.as_bytes());
            (id, field.and_then(|(_, value)| TraceEvent::read(&value)))
        };
        Ok(found.into_iter().map(read).collect())
    }
}
