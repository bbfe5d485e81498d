//! `meshwork job show`.

use std::collections::BTreeMap;
use std::fmt;

use meshwork::WaitReason;
use meshwork::view::{JobSourceView, JobView, WhyView};
use meshwork_model::name::JobId;
use meshwork_model::state::Status;
use meshwork_model::time;
use serde::Serialize;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::job_view;
use crate::out::{Out, OutError, printable};
use crate::whole_id::whole_id;

/// Show a job: its state, times, attempts, reason of waiting, script, input and result
///
/// Prints the first 4 KiB of script, input and result each; --json prints them in full.
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The job's id, or its beginning, of at least 4 characters
    #[arg(value_parser = parsers::job_id)]
    pub(super) id: JobId,
}

/// Longest printed part of a script, an input or a result, in bytes: a screen or two.
const MAX_SECTION: usize = 4096;

/// A job, with fields that only `job show` prints.
#[derive(Debug, Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    job: JobView<'a>,
    script: &'a str,
    input: Option<&'a str>,
    depends_on: &'a [String],
    /// Names for results of prerequisites, with their ids.
    input_names: &'a BTreeMap<String, String>,
    on_failure: Option<&'a str>,
    waits_for: &'a [Awaited<'a>],
    dependents: &'a [String],
    batch: Option<&'a str>,
    callback: Option<&'a str>,
    next_run_at: Option<String>,
    held_by: &'a [String],
    /// Reasons for its state, as in `job why`.
    reasons: &'a [String],
    /// Reasons of a wait, for programs.
    waits: &'a [WaitReason],
    stop: Option<&'a str>,
    lock: Option<&'a str>,
}

/// A prerequisite.
#[derive(Debug, Serialize)]
struct Awaited<'a> {
    id: &'a str,
    /// Word of the record. None if it does not exist.
    status: Option<&'a str>,
    state: Option<&'a str>,
}

impl fmt::Display for Awaited<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.state.unwrap_or("gone"))
    }
}

/// Reasons of a wait, by the line that shows them.
struct Waits<'a> {
    waits_for: Vec<Awaited<'a>>,
    next_run_at: Option<String>,
    held_by: Vec<String>,
    position: Option<String>,
}

impl<'a> Waits<'a> {
    fn of(reasons: &'a [WaitReason], context: &App) -> Self {
        let mut waits = Self {
            waits_for: Vec::new(),
            next_run_at: None,
            held_by: Vec::new(),
            position: None,
        };
        for reason in reasons {
            match reason {
                WaitReason::Prerequisite { id, status, state } => waits.waits_for.push(Awaited {
                    id,
                    status: status.as_deref(),
                    state: state.as_deref(),
                }),
                WaitReason::Time { due_ms } => waits.next_run_at = Some(time::iso(*due_ms)),
                WaitReason::Position { .. } => waits.position = Some(reason.to_string()),
                // Lines of their own.
                WaitReason::Batch { .. } | WaitReason::StartTimeout { .. } => {}
                other => {
                    let text = other.text(|queue| context.queue_name(queue));
                    waits.held_by.push(text);
                }
            }
        }
        waits
    }
}

impl Show {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let job = client.status(&whole_id(&client, &self.id).await?).await?;
        let waits = client.why(&job).await?;
        let is_delayed = |reason: &WaitReason| matches!(reason, WaitReason::Time { .. });
        let state = job.state(waits.iter().any(is_delayed));
        let why = WhyView::new(&job, state, &waits, |queue| context.queue_name(queue));
        let view = JobView::new(&job, state, context.out.context);
        let output = job.output.as_deref().unwrap_or_default();
        print(context, (view, &JobSourceView::new(&job), &why), output)
    }
}

/// Prints a job with its links and the reasons of its state.
pub(super) fn print(
    context: &mut App,
    (job, source, why): (JobView<'_>, &JobSourceView<'_>, &WhyView<'_>),
    output: &[u8],
) -> Result<Exit, CommandError> {
    let Waits {
        waits_for,
        next_run_at,
        held_by,
        position,
    } = Waits::of(&why.waits, context);
    let queue = job.about.queue.as_deref();
    let queue = queue.map(|queue| context.queue_name(queue));
    let out = &mut context.out;
    if out.is_json() {
        out.json(&Line {
            job,
            script: &source.script,
            input: source.input.as_deref(),
            depends_on: &source.depends_on,
            input_names: &source.input_names,
            on_failure: source.on_failure.as_deref(),
            waits_for: &waits_for,
            dependents: &source.dependents,
            batch: source.batch.as_deref(),
            callback: source.callback.as_deref(),
            next_run_at,
            held_by: &held_by,
            reasons: &why.reasons,
            waits: &why.waits,
            stop: source.stop.as_deref(),
            lock: source.lock.as_deref(),
        })?;
        return Ok(Exit::DONE);
    }
    job_view::describe(&job, source, queue.as_deref(), out)?;
    for awaited in &waits_for {
        job_view::line("waits for", &awaited.to_string(), out)?;
    }
    if let Some((kind, batch)) = waits_for_batch(&job, source) {
        let what = format!("batch {batch}, as its callback on {kind}");
        job_view::line("waits for", &what, out)?;
    }
    if let Some(at) = next_run_at {
        job_view::line("next run", &at, out)?;
    }
    for reason in &held_by {
        job_view::line("held by", reason, out)?;
    }
    if let Some(position) = position {
        job_view::line("position", &position, out)?;
    }
    section("script", &source.script, out)?;
    section("input", source.input.as_deref().unwrap_or_default(), out)?;
    section("result", &String::from_utf8_lossy(output), out)?;
    Ok(Exit::DONE)
}

/// Prints the first part of a text with a heading, if it is not empty.
fn section(name: &str, text: &str, out: &mut Out) -> Result<(), OutError> {
    let text = text.trim_end();
    if text.is_empty() {
        return Ok(());
    }
    let end = text.floor_char_boundary(MAX_SECTION);
    out.line(format_args!("\n{name}:\n{}", printable(&text[..end])))?;
    match text.len() - end {
        0 => Ok(()),
        left => out.line(format_args!("({left} bytes more: --json has them)")),
    }
}

/// Returns the batch of a callback, and its event.
fn waits_for_batch<'a>(
    job: &JobView<'_>,
    source: &'a JobSourceView<'_>,
) -> Option<(&'a str, &'a str)> {
    let waits = job.status == Status::WaitingForPrerequisites.as_str();
    let callback = source.callback.as_deref().filter(|_| waits);
    callback?.split_once(' ')
}
