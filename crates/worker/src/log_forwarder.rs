//! Log forwarder: sends output and progress of a run to the store while it runs, in batches. It does not delay the run,
//! and its report by at most [`LAST`].

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Backoff, Line, Logged};
use meshwork_model::sandbox::RunUsage;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use super::protocol::Protocol;
use meshwork_runtime::log::{Batch, Entry, LogDrain, Progress};

/// Greatest number of lines that wait to be sent: as many as the store keeps per job.
pub(super) const CAPACITY: usize = 1000;
/// Pause between two batches, which limits a run to ten calls per second.
const PACE: Duration = Duration::from_millis(100);
/// Timeout of a call.
const CALL: Duration = Duration::from_secs(2);
/// Longest time that the report waits for the last lines.
const LAST: Duration = Duration::from_secs(1);
/// Stream name of the entry that counts dropped lines.
const DROPPED: &str = "dropped";

/// Forwarder of one run. Most runs print nothing, so its task starts with the first line.
#[derive(Debug)]
pub(super) enum LogForwarder {
    /// The run has printed nothing yet.
    Silent(Option<LogDrain>),
    /// The task, and the token that signals the end of the run.
    Begun(JoinHandle<()>, CancellationToken),
}

impl LogForwarder {
    /// Creates a forwarder for the lines of `drain`.
    pub(super) fn new(drain: LogDrain) -> Self {
        Self::Silent(Some(drain))
    }

    /// Waits for the first line, and starts the task then.
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

    /// Ends the forwarder. Returns when the last lines are stored, or after [`LAST`].
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
            tracing::warn!("end of a job's log not stored");
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
                // The job has ended or belongs to another worker, so its log is complete.
                Ok(Logged::Stale) => return,
                Err(error) if error.is_repeated() => {
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

/// Stores the usage of a run, within [`LAST`]. A failure costs the job nothing.
pub(super) async fn record_usage<P: Protocol>(engine: &Engine<P>, job: &P::Job, usage: &RunUsage) {
    let stored = engine.protocol.record_usage(job, usage);
    match tokio::time::timeout(LAST, stored).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(job = %P::id(job), %error, "usage of a run not stored"),
        Err(_) => tracing::warn!(job = %P::id(job), "usage of a run not stored in time"),
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
