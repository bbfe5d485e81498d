//! Messages between the worker and a process of an app: objects of JSON, one in a line, in both directions.

use std::collections::BTreeMap;
use std::io;

use meshwork_model::spec::JobSpec;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Version of the messages.
pub(super) const PROTOCOL: u32 = 1;

/// Greatest length of a message, in bytes: the greatest result, with the escapes of JSON.
pub(super) const MAX_LINE: usize = 64 * 1024 * 1024;

/// A message to a process.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToApp<'a> {
    /// Run a task.
    Run(RunTask<'a>),
    /// End a run. It has a grace; after that, the process is killed.
    Cancel {
        /// Number of the run.
        run: u64,
        /// Reason.
        reason: CancelReason,
    },
    /// The answer to [`FromApp::AddChild`].
    Child {
        /// Number of the run.
        run: u64,
        /// Number of the call.
        call: u64,
        /// Id of the child.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Reason why it was refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// End: no run is left, and none will come.
    Stop {},
}

/// A run of a task.
#[derive(Debug, Serialize)]
pub(super) struct RunTask<'a> {
    /// Number of the run, unique in the process.
    pub(super) run: u64,
    /// Id of the job.
    pub(super) id: &'a str,
    /// Name of the task.
    #[serde(rename = "type")]
    pub(super) task: &'a str,
    /// Number of the attempt, from 1.
    pub(super) attempt: u32,
    /// Arguments, as they were enqueued.
    pub(super) payload: &'a RawValue,
    /// Seconds until the timeout.
    pub(super) timeout: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) caller: &'a str,
    /// Environment of the job.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) env: BTreeMap<&'a str, &'a str>,
    /// Results of the job's prerequisites by name, as the file of inputs of scripts has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inputs: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) traceparent: Option<String>,
}

/// Reason for the end of a run.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CancelReason {
    /// Its timeout is over.
    Timeout,
    /// A cancel was requested.
    Cancelled,
    /// The job is not the worker's any more.
    Lost,
}

/// A message from a process.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromApp {
    /// The first message: the app is loaded.
    Ready {
        /// Version of the messages.
        protocol: u32,
        /// Its tasks.
        tasks: Vec<Task>,
        /// Its schedules.
        #[serde(default)]
        schedules: Vec<TaskSchedule>,
    },
    /// A run has a result.
    Done {
        run: u64,
        #[serde(default)]
        result: Option<Box<RawValue>>,
    },
    /// A run has failed.
    Failed(RunFailure),
    /// Output of a run.
    Log {
        run: u64,
        text: String,
        #[serde(default)]
        stderr: bool,
    },
    /// Progress of a run.
    Progress {
        run: u64,
        fraction: f64,
        #[serde(default)]
        message: Option<String>,
    },
    /// A run adds a child.
    AddChild {
        run: u64,
        /// Number of the call, for the answer.
        call: u64,
        /// Arguments of a task, or the script.
        #[serde(default)]
        payload: Option<Box<RawValue>>,
        #[serde(default)]
        script: Option<String>,
        #[serde(default)]
        input: Option<String>,
        /// Options, as those of `add_child()` in scripts.
        #[serde(default)]
        options: Map<String, Value>,
    },
}

/// A task of an app.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Task {
    /// Its name: the type of its jobs.
    pub name: String,
    /// Group of its jobs, which is a part of their queue. Default: none.
    #[serde(default)]
    pub group: Option<String>,
    /// Greatest number of its jobs that run at once, on all workers together. Default: as the queue has it.
    #[serde(default)]
    pub concurrency: Option<u64>,
    /// The same for the jobs of one key.
    #[serde(default)]
    pub key_concurrency: Option<u64>,
    /// Greatest rate of their starts, as `100/min`.
    #[serde(default)]
    pub rate: Option<String>,
}

/// A schedule of an app: a task that runs repeatedly.
#[derive(Debug, Clone, Deserialize)]
pub struct TaskSchedule {
    /// Name of the schedule.
    pub name: String,
    /// Cron expression, or an interval as `@every 30s`.
    pub cron: String,
    /// Time zone of the cron expression, an IANA name. Default: UTC.
    #[serde(default)]
    pub zone: Option<String>,
    /// Job of each slot.
    pub job: JobSpec,
}

/// A failed run.
#[derive(Debug, Deserialize)]
pub(super) struct RunFailure {
    pub(super) run: u64,
    /// Message.
    pub(super) error: String,
    #[serde(default)]
    pub(super) traceback: Option<String>,
    /// Its consequence.
    #[serde(default)]
    pub(super) verdict: Verdict,
    /// Seconds before the next run.
    #[serde(default)]
    pub(super) after: Option<f64>,
}

/// The consequence of a failed run.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// A retry, if one is left.
    #[default]
    Retry,
    /// No retry: a dead letter.
    Permanent,
    /// The run begins later, and counts no attempt.
    Snooze,
    /// Neither a retry nor a dead letter.
    Discard,
}

/// Returns the line of a message.
pub(super) fn line(message: &ToApp<'_>) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    // A payload may have ends of lines between its values; those within texts are escaped.
    for byte in &mut line {
        if *byte == b'\n' || *byte == b'\r' {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    Ok(line)
}

/// Reads a message; none at the end of the stream.
///
/// # Errors
/// The line is longer than [`MAX_LINE`], or is no message.
pub(super) async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<FromApp>> {
    let mut line = Vec::new();
    loop {
        let piece = from.fill_buf().await?;
        if piece.is_empty() {
            return Ok(None);
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(piece.len(), |end| end + 1);
        line.extend_from_slice(&piece[..taken]);
        from.consume(taken);
        if line.len() > MAX_LINE {
            let why = format!("a message is longer than {MAX_LINE} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        if end.is_some() {
            let read = serde_json::from_slice(&line);
            return read.map(Some).map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidData, format!("no message: {error}"))
            });
        }
    }
}
