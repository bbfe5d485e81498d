//! note and traced: the trace of actions that are over. It only helps: no answer waits for it.

use meshwork_model::nooble::Traced;

use super::Nooble;
use crate::error::Error;
use crate::verb::stream::Entry;
use crate::verb::{MAX_ITEMS, at_most};

/// Entries kept, more or less: some megabytes.
const MOST_TRACED: usize = 50_000;
/// How long the trace stays after the last action, in milliseconds (one day).
const TRACED_FOR_MS: u64 = 86_400_000;

/// The field of an entry: one costs the server less than one for each name.
const ENTRY: &str = "entry";

impl Nooble {
    /// Notes runs in the trace, the earliest first; each as [`Traced::write`] writes it.
    ///
    /// # Errors
    /// If more than [`MAX_ITEMS`] are given, the key holds something else, or the server does not take the call. Some of
    /// them may be in the trace then.
    pub async fn note(&self, entries: &[String]) -> Result<(), Error> {
        at_most("note", MAX_ITEMS, entries.len())?;
        let trace = self.names.trace();
        let mut all = redis::pipe();
        for entry in entries {
            all.cmd("XADD").arg(&trace);
            all.arg("MAXLEN").arg("~").arg(MOST_TRACED);
            all.arg("*").arg(ENTRY).arg(entry).ignore();
        }
        all.cmd("PEXPIRE").arg(&trace).arg(TRACED_FOR_MS).ignore();
        let noted = all.query_async(&mut self.conn.clone()).await;
        noted.map_err(|source| Error::Call {
            verb: "note",
            source,
        })
    }

    /// What the trace was told of actions, the latest first, and each entry's id: those before `before`, or from the
    /// latest on. None of what says nothing.
    ///
    /// # Errors
    /// If more than [`MAX_ITEMS`] are wanted, or the server does not take the call.
    pub async fn traced(
        &self,
        before: Option<&str>,
        most: usize,
    ) -> Result<Vec<(String, Option<Traced<'static>>)>, Error> {
        at_most("traced", MAX_ITEMS, most)?;
        let end = before.map_or_else(|| "+".to_owned(), |id| format!("({id}"));
        let mut cmd = redis::cmd("XREVRANGE");
        cmd.arg(self.names.trace()).arg(end).arg("-");
        let found: Vec<_> = self.ask("traced", cmd.arg("COUNT").arg(most)).await?;
        let read = |entry| {
            let entry = Entry::read(entry);
            let id = entry.id.clone();
            let told = entry.fields().find(|(name, _)| name == ENTRY.as_bytes());
            (id, told.and_then(|(_, told)| Traced::read(&told)))
        };
        Ok(found.into_iter().map(read).collect())
    }
}
