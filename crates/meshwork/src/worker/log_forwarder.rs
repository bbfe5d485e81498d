//! Log forwarder: sends output and progress of a run to the store while it runs, in batches. It delays neither the run nor,
//! for long, its report.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Backoff, Line, Logged};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use super::protocol::Protocol;
use crate::runner::log::{Batch, Entry, LogDrain, Progress};

/// The most lines that wait to be sent: as many as the store keeps of one job.
pub(super) const CAPACITY: usize = 1000;
/// Between two batches, so that a run that prints line by line costs ten calls a second at most.
const PACE: Duration = Duration::from_millis(100);
/// Timeout of a call.
const CALL: Duration = Duration::from_secs(2);
/// Longest wait of the report for the last lines.
const LAST: Duration = Duration::from_secs(1);
/// Stream name of the count of dropped lines.
const DROPPED: &str = "dropped";

/// A run's log on its way. Most runs say nothing, so a task for it begins with the first line.
#[derive(Debug)]
pub(super) enum LogForwarder {
    /// Nothing was said yet.
    Silent(Option<LogDrain>),
    /// The task, and what tells it that the run is over.
    Begun(JoinHandle<()>, CancellationToken),
}

impl LogForwarder {
    /// For what comes out of `drain`.
    pub(super) fn new(drain: LogDrain) -> Self {
        Self::Silent(Some(drain))
    }

    /// Returns when something was said and is on its way from now on.
    pub(super) async fn begins<P: Protocol>(&mut self, engine: &Arc<Engine<P>>, job: &Arc<P::Job>) {
        if let Self::Silent(Some(drain)) = self {
            drain.filled().await;
        }
        self.begin(engine, job);
    }

    fn begin<P: Protocol>(&mut self, engine: &Arc<Engine<P>>, job: &Arc<P::Job>) {
        if let Self::Silent(drain) = self
            && let Some(drain) = drain.take()
        {
            let (over, engine, job) = (
                CancellationToken::new(),
                Arc::clone(engine),
                Arc::clone(job),
            );
            let forward = forward(engine, job, drain, over.clone());
            *self = Self::Begun(tokio::spawn(forward), over);
        }
    }

    /// The run is over: returns when the rest is in the log, or the report cannot wait for it any more.
    pub(super) async fn ended<P: Protocol>(mut self, engine: &Arc<Engine<P>>, job: &Arc<P::Job>) {
        if let Self::Silent(Some(drain)) = &self
            && drain.is_filled()
        {
            self.begin(engine, job);
        }
        let Self::Begun(mut task, over) = self else {
            return;
        };
        over.cancel();
        if tokio::time::timeout(LAST, &mut task).await.is_err() {
            tracing::warn!("the end of a job's log is not kept");
            task.abort();
        }
    }
}

async fn forward<P: Protocol>(
    engine: Arc<Engine<P>>,
    job: Arc<P::Job>,
    mut drain: LogDrain,
    over: CancellationToken,
) {
    let protocol = &engine.protocol;
    while let Some(batch) = drain.next().await {
        let mut backoff = Backoff::new();
        loop {
            match send(protocol, &job, &batch).await {
                Ok(Logged::Logged) => {
                    protocol.outages().succeeded("log");
                    break;
                }
                // The job is another's, or is over; nobody wants to know any more.
                Ok(Logged::Stale) => return,
                Err(error) if error.is_temporary() => {
                    protocol.outages().failed("log", &error);
                    backoff.wait().await;
                }
                Err(error) => {
                    tracing::warn!(job = %P::id(&job), %error, "log lines lost");
                    break;
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PACE) => {}
            () = over.cancelled() => {}
        }
    }
}

async fn send<P: Protocol>(
    protocol: &P,
    job: &P::Job,
    batch: &Batch,
) -> Result<Logged, meshwork_broker::Error> {
    let dropped: Vec<_> = batch.entries.iter().filter_map(dropped).collect();
    let mut dropped = dropped.iter();
    let mut lines: Vec<Line<'_>> = Vec::with_capacity(batch.entries.len());
    for entry in &batch.entries {
        match entry {
            Entry::Line { stream, text } => lines.push((stream.as_str(), text.as_bytes())),
            Entry::Dropped(_) => {
                lines.extend(dropped.next().map(|text| (DROPPED, text.as_bytes())));
            }
        }
    }
    let progress = batch.progress.as_ref().map(progress_text);
    let call = protocol.log(job, &lines, progress.as_deref());
    tokio::time::timeout(CALL, call)
        .await
        .unwrap_or_else(|_| Err(meshwork_broker::Error::timed_out("log")))
}

fn dropped(entry: &Entry) -> Option<String> {
    match entry {
        Entry::Dropped(lines) => Some(format!("{lines} lines were not kept")),
        Entry::Line { .. } => None,
    }
}

/// Progress of a run, as stored in the record: `45% message`.
fn progress_text(progress: &Progress) -> String {
    let percent = (progress.fraction() * 100.0).floor();
    match progress.message() {
        Some(message) => format!("{percent}% {message}"),
        None => format!("{percent}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_a_percentage_and_a_word() {
        for (fraction, message, text) in [
            (0.0, None, "0%"),
            (0.456, Some("half done"), "45% half done"),
            (0.999, None, "99%"),
            (1.0, Some("done"), "100% done"),
        ] {
            assert_eq!(progress_text(&Progress::new(fraction, message)), text);
        }
    }
}
