//! tidy: what is left to do when actions are over, of which nobody waits for anything. And the trace that it tells.

use meshwork_model::nooble::Traced;

use super::report::tries_of;
use super::{Nooble, Received};
use crate::error::Error;
use crate::verb::stream::Entry;
use crate::verb::{MAX_ITEMS, at_most};

/// Entries kept, more or less: some megabytes.
const MOST_TRACED: usize = 50_000;
/// How long the trace stays after the last action, in milliseconds (one day).
const TRACED_FOR_MS: u64 = 86_400_000;
/// The field of an entry: one costs the server less than one for each name.
const ENTRY: &str = "entry";

/// What is left to do for an action that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    /// The key of what its failures are.
    tries: String,
    /// What the trace is told.
    entry: String,
}

impl Over {
    /// Of the message, and what the trace is told of it.
    #[must_use]
    pub fn new(received: &Received, told: &Traced<'_>) -> Self {
        Self {
            tries: tries_of(received),
            entry: told.write(),
        }
    }

    /// How long it is, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tries.len() + self.entry.len()
    }
}

impl Nooble {
    /// Tells the trace of actions that are over, the earliest first, and forgets how often they have failed. Without it,
    /// that is forgotten after a day.
    ///
    /// # Errors
    /// If more than [`MAX_ITEMS`] are given, the trace's key holds something else, or the server does not take the call.
    /// Some of it may be done then.
    pub async fn tidy(&self, over: &[Over]) -> Result<(), Error> {
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
        cmd.arg(self.keys.trace()).arg(end).arg("-");
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
