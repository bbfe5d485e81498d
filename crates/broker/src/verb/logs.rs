//! logs: what a run has printed so far, line by line, and what it prints next.

use std::time::Duration;

use meshwork_model::name::JobId;

use super::stream::{BEGINNING, Entry, Wanted};
use super::{BlockingConn, MAX_ITEMS, text};
use crate::{Broker, Error};

/// One line that a run printed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogLine {
    /// Its place in the job's log.
    pub id: String,
    /// When it was kept, in milliseconds since 1970.
    pub at_ms: u64,
    /// Where it was printed: `stdout`, `stderr` …
    pub stream: String,
    /// The line without its end.
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
    /// The lines in the job's log after the line `after`, or from the first one that is kept; up to
    /// [`MAX_ITEMS`].
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn log_lines(&self, id: &JobId, after: Option<&str>) -> Result<Vec<LogLine>, Error> {
        let wanted = Wanted::After(after.unwrap_or(BEGINNING));
        let entries = self.entries(&self.keys.log(id), wanted, MAX_ITEMS).await?;
        Ok(lines(entries))
    }

    /// Waits for lines in the job's log after the line `after`; none if none came in time, which is 30
    /// seconds at the longest.
    ///
    /// # Errors
    /// If the connection breaks, or the server does not take the call.
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
