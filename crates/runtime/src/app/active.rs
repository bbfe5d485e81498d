//! A run in a process, as the process's messages see it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use meshwork_model::outcome::{Failure, FailureKind, Report};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::super::Run;
use super::super::children::{self, AddChild};
use super::super::log::{LogSink, LogWriter, Stream};
use super::wire::{RunFailure, Verdict};

/// The end of a run.
#[derive(Debug)]
pub(super) enum Outcome {
    /// With a result or a failure of its own.
    Ended(Result<Vec<u8>, Failure>),
    /// With its process.
    Died {
        /// The end of the process, in words.
        how: String,
        /// Number of runs that were in it.
        together: usize,
        /// True if it was killed to end another run.
        for_other: bool,
    },
}

impl Outcome {
    /// The outcome of a run with a result; none is null.
    pub(super) fn done(result: Option<Box<RawValue>>) -> Self {
        let result = result.map_or_else(
            || "null".to_owned(),
            |result| String::from(Box::<str>::from(result)),
        );
        Self::Ended(Ok(result.into_bytes()))
    }

    /// The outcome of a run that has failed.
    pub(super) fn failed(failure: RunFailure) -> Self {
        let kind = match failure.verdict {
            Verdict::Retry => FailureKind::Script,
            Verdict::Permanent => FailureKind::Permanent,
            Verdict::Snooze => FailureKind::Snoozed,
            Verdict::Discard => FailureKind::Discarded,
        };
        let mut made = Failure::new(kind, failure.error);
        made.traceback = failure.traceback;
        let after = failure
            .after
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Self::Ended(Err(match after {
            Some(pause) => made.after(pause),
            None => made,
        }))
    }
}

/// Output of a run: its writers for both streams.
#[derive(Debug, Clone)]
pub(super) struct Output(Arc<Mutex<[LogWriter; 2]>>);

impl Output {
    pub(super) fn of(log: &LogSink) -> Self {
        let writers = [Stream::Stdout, Stream::Stderr].map(|stream| log.writer(stream));
        Self(Arc::new(Mutex::new(writers)))
    }

    fn push(&self, text: &str, is_stderr: bool) {
        let mut writers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writers[usize::from(is_stderr)].push(text.as_bytes());
    }

    /// Adds the ends of the streams to a report.
    pub(super) fn end(&self, report: Report) -> Report {
        let mut writers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [stdout, stderr] = &mut *writers;
        Report {
            stdout: stdout.finish(),
            stderr: stderr.finish(),
            ..report
        }
        .bounded()
    }
}

/// A run in a process.
#[derive(Debug)]
pub(super) struct Active {
    outcome: oneshot::Sender<Outcome>,
    output: Output,
    log: LogSink,
    child_adder: Option<Arc<dyn AddChild>>,
}

impl Active {
    pub(super) fn new(run: &Run, output: Output, outcome: oneshot::Sender<Outcome>) -> Self {
        Self {
            outcome,
            output,
            log: run.log.clone(),
            child_adder: run.child_adder.clone(),
        }
    }

    /// Ends the run. An aborted one takes no outcome.
    pub(super) fn end(self, outcome: Outcome) {
        let _ = self.outcome.send(outcome);
    }

    pub(super) fn log(&self, text: &str, is_stderr: bool) {
        self.output.push(text, is_stderr);
    }

    pub(super) fn progress(&self, fraction: f64, message: Option<&str>) {
        self.log.progress(fraction, message);
    }

    /// Adds a child of the run, and returns its id.
    pub(super) fn add_child(
        &self,
        script: String,
        input: Option<String>,
        options: Map<String, Value>,
    ) -> impl Future<Output = Result<String, String>> + Send + use<> {
        let adder = self.child_adder.clone();
        async move {
            let child = children::child(script, input.map(String::into_bytes), options);
            let child = child.map_err(|error| error.to_string())?;
            let added = children::add_child(adder.as_deref(), &child).await;
            added
                .map(|id| id.to_string())
                .map_err(|error| error.to_string())
        }
    }
}
