//! log: keep what a run prints while it runs.

use std::time::Duration;

use super::{Claimed, MAX_ITEMS, at_most, word};
use crate::script::Verb;
use crate::{Broker, Error};

/// The most lines kept of one job, more or less: the newest.
const MOST_LINES: usize = 1000;
/// How long they are kept after the last one.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// What became of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logged {
    /// They are in the job's log.
    Logged,
    /// The job is not this worker's any more.
    Stale,
}

/// One line, and which of the run's streams it came from: `stdout`, `stderr` …
pub type Line<'a> = (&'a str, &'a [u8]);

impl Broker {
    /// Appends lines to the job's log, `hero:q:log:{id}`, and notes how far it is, if the fencing token is
    /// still the one in force. A call that is repeated after a broken connection may repeat lines.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`] lines, or the server does not take the call.
    pub async fn log(
        &self,
        claimed: &Claimed,
        lines: &[Line<'_>],
        progress: Option<&str>,
    ) -> Result<Logged, Error> {
        at_most("log", MAX_ITEMS, lines.len())?;
        let mut call = self
            .scripts
            .call(Verb::Log)
            .key(claimed.key(&self.keys))
            .arg(self.clock.argument())
            .arg(&claimed.job.id)
            .arg(&claimed.token)
            .arg(progress.unwrap_or_default())
            .arg(MOST_LINES)
            .arg(KEPT.as_millis() as u64);
        for (stream, line) in lines {
            call.push_arg(*stream);
            call.push_arg(*line);
        }
        let answer = call.run(&self.conn).await?;
        word(
            "log",
            answer,
            &[("logged", Logged::Logged), ("stale", Logged::Stale)],
        )
    }
}
