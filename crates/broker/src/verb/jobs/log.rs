//! log: stores the output of a run while it runs.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::sandbox::RunUsage;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{Claimed, MAX_ITEMS, at_most, word};

/// Approximate number of lines that are kept of a job, the newest.
const MOST_LINES: usize = 1000;
/// Retention of a log after its last line.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// The result of appending lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logged {
    /// The lines are in the job's log.
    Logged,
    /// This worker has lost the lease.
    Stale,
}

/// A line and its stream: `stdout`, `stderr` …
pub type Line<'a> = (&'a str, &'a [u8]);

impl Broker {
    /// Appends lines to the job's log, `hero:q:log:{id}`, and stores its progress, if the fencing token is current. A
    /// call that is repeated after a broken connection may duplicate lines.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`] lines, or the server refuses the call.
    #[boxed]
    pub async fn log(
        &self,
        claimed: &Claimed,
        lines: &[Line<'_>],
        progress: Option<&str>,
    ) -> Result<Logged, Error> {
        at_most("log", MAX_ITEMS, lines.len())?;
        self.store_log(claimed, lines, (progress.unwrap_or_default(), ""))
            .await
    }

    /// Stores the sandbox and the resources of a run in its record, and adds an event, if the fencing token is current.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn record_usage(&self, claimed: &Claimed, usage: &RunUsage) -> Result<Logged, Error> {
        self.store_log(claimed, &[], ("", &usage.to_string())).await
    }

    async fn store_log(
        &self,
        claimed: &Claimed,
        lines: &[Line<'_>],
        (progress, usage): (&str, &str),
    ) -> Result<Logged, Error> {
        let mut call = self
            .scripts
            .call(Verb::Log)
            .key(claimed.key(&self.keys))
            .arg(self.clock.argument())
            .arg(&claimed.job.id)
            .arg(&claimed.token)
            .arg(progress)
            .arg(usage)
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
