//! logs: reads the output of a run, line by line, and waits for more.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::name::JobId;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::inspect::stream::{BEGINNING, Entry, Wanted};
use crate::verb::{BlockingConn, MAX_ITEMS, text};

/// A line of a run's output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogLine {
    /// Position in the job's log.
    pub id: String,
    /// Time at which the line was stored, in milliseconds since 1970.
    pub at_ms: u64,
    /// Stream of the line: `stdout`, `stderr` …
    pub stream: String,
    /// The line without its line break.
    pub line: Vec<u8>,
}

fn lines(entries: Vec<Entry>) -> Vec<LogLine> {
    let lines = entries.into_iter().flat_map(|entry| {
        let (id, at_ms) = (entry.id.clone(), entry.at_ms());
        entry.fields().map(move |(stream, line)| LogLine {
            id: id.clone(),
            at_ms,
            stream: text(stream),
            line,
        })
    });
    lines.collect()
}

impl Broker {
    /// Returns up to [`MAX_ITEMS`] lines of the job's log after the line `after`, or from the first stored one.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn log_lines(&self, id: &JobId, after: Option<&str>) -> Result<Vec<LogLine>, Error> {
        let wanted = Wanted::After(after.unwrap_or(BEGINNING));
        let entries = self.entries(&self.keys.log(id), wanted, MAX_ITEMS).await?;
        Ok(lines(entries))
    }

    /// Returns the ids of the oldest and the newest stored line; `None` if there is none.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn log_bounds(&self, id: &JobId) -> Result<Option<(String, String)>, Error> {
        self.bounds(&self.keys.log(id)).await
    }

    /// Waits for lines of the job's log after the line `after`. Returns none after the timeout, which is at most 30
    /// seconds.
    ///
    /// # Errors
    /// The connection breaks, or the server refuses the call.
    #[boxed]
    pub async fn next_log_lines(
        &self,
        blocking: &BlockingConn,
        id: &JobId,
        after: Option<&str>,
        wait: Duration,
    ) -> Result<Vec<LogLine>, Error> {
        let (stream, after) = (self.keys.log(id), after.unwrap_or(BEGINNING));
        let entries = self.next_entries(blocking, &stream, after, MAX_ITEMS, wait);
        Ok(lines(entries.await?))
    }
}
