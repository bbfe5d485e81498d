//! `meshwork job show`.

use std::collections::BTreeMap;
use std::fmt;

use meshwork::model::job::Job;
use meshwork::model::name::JobId;
use meshwork::model::state::{State, Status};
use meshwork::model::time;
use meshwork::{Blocker, Client};
use meshwork_broker::MAX_ITEMS;
use serde::Serialize;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::job_view;
use crate::out::job_view::Record;
use crate::out::{Out, OutError, printable};

/// Show a job: its state, times, attempts, reason of waiting, script, input and result
///
/// Prints the first 4 KiB of script, input and result each; --json prints them in full.
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The job's id
    #[arg(value_parser = parsers::job_id)]
    pub(super) id: JobId,
}

/// Longest printed part of a script, an input or a result, in bytes: a screen or two.
const MAX_SECTION: usize = 4096;

/// A job, with fields that only `job show` prints.
#[derive(Debug, Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    job: Record<'a>,
    script: String,
    input: Option<String>,
    depends_on: &'a [String],
    /// Names for results of prerequisites, with their ids.
    input_names: &'a BTreeMap<String, String>,
    on_failure: Option<&'a str>,
    waits_for: &'a [Awaited],
    dependents: &'a [String],
    batch: Option<&'a str>,
    callback: Option<&'a str>,
    next_run_at: Option<String>,
    held_by: &'a [String],
    stop: Option<&'a str>,
    lock: Option<&'a str>,
}

/// A prerequisite.
#[derive(Debug, Serialize)]
pub(super) struct Awaited {
    id: String,
    /// Word of the record. None if the job does not exist.
    status: Option<&'static str>,
    state: Option<&'static str>,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.state.unwrap_or("gone"))
    }
}

/// Reasons for which a job does not start.
pub(super) struct Blockers {
    pub(super) waits_for: Vec<Awaited>,
    pub(super) next_run_at: Option<String>,
    pub(super) held_by: Vec<String>,
}

impl Blockers {
    pub(super) async fn of(client: &Client, job: &Job) -> Result<Self, CommandError> {
        let mut blockers = Self {
            waits_for: waits_for(client, job).await?,
            next_run_at: None,
            held_by: Vec::new(),
        };
        for reason in client.blockers(job).await? {
            match reason {
                Blocker::Time(ms) => blockers.next_run_at = Some(time::iso(ms)),
                other => blockers.held_by.push(words(&other)),
            }
        }
        Ok(blockers)
    }
}

impl Show {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let job = client.status(&self.id).await?;
        let Blockers {
            waits_for,
            next_run_at,
            held_by,
        } = Blockers::of(&client, &job).await?;
        let state = job.state(next_run_at.is_some());
        let queue = job.queue.as_deref();
        let queue = queue.map(|queue| context.queue_name(queue));
        let out = &mut context.out;
        if out.is_json() {
            out.json(&Line {
                job: Record::new(&job, state),
                script: shown(&job, &job.script),
                input: job.input.as_deref().map(|input| shown(&job, input)),
                depends_on: &job.depends_on,
                input_names: &job.input_names,
                on_failure: job.on_failure.as_deref(),
                waits_for: &waits_for,
                dependents: &job.dependents,
                batch: job.batch.as_deref(),
                callback: job.callback.as_deref(),
                next_run_at,
                held_by: &held_by,
                stop: job.stop.as_deref(),
                lock: job.lock.as_deref(),
            })?;
            return Ok(Exit::DONE);
        }
        job_view::describe(&job, state, queue.as_deref(), out)?;
        for awaited in &waits_for {
            job_view::line("waits for", &awaited.to_string(), out)?;
        }
        if let Some((kind, batch)) = waits_for_batch(&job) {
            let what = format!("batch {batch}, as its callback on {kind}");
            job_view::line("waits for", &what, out)?;
        }
        if let Some(at) = next_run_at {
            job_view::line("next run", &at, out)?;
        }
        for reason in &held_by {
            job_view::line("held by", reason, out)?;
        }
        let input = job.input.as_deref().unwrap_or_default();
        section("script", &shown(&job, &job.script), out)?;
        section("input", &shown(&job, input), out)?;
        let output = job.output.as_deref().unwrap_or_default();
        section("result", &String::from_utf8_lossy(output), out)?;
        Ok(Exit::DONE)
    }
}

/// Returns bytes as text, with secrets of the job's environment masked.
fn shown(job: &Job, bytes: &[u8]) -> String {
    String::from_utf8_lossy(&job.env_vars.secrets().mask_bytes(bytes)).into_owned()
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
pub(super) fn waits_for_batch(job: &Job) -> Option<(&str, &str)> {
    let waits = job.status() == Some(Status::WaitingForPrerequisites);
    job.callback.as_deref().filter(|_| waits)?.split_once(' ')
}

/// Describes a reason of waiting for people.
fn words(reason: &Blocker) -> String {
    match reason {
        Blocker::Paused => "its queue is paused".to_owned(),
        Blocker::Key { key, ahead } => {
            format!("it is not the turn of its key {key}; {ahead} of it are before this one")
        }
        Blocker::Concurrency(most) => format!("{most} of its queue run, as many as may"),
        Blocker::Rate(rate, ms) => {
            format!("its queue starts {rate}; the next in {ms} ms")
        }
        other => format!("{other:?}"),
    }
}

/// Returns the prerequisites that have not ended.
async fn waits_for(client: &Client, job: &Job) -> Result<Vec<Awaited>, CommandError> {
    if job.status() != Some(Status::WaitingForPrerequisites) {
        return Ok(Vec::new());
    }
    let all = client.prerequisites(job).await?.into_iter();
    let open = all.filter(|(_, status)| !status.is_some_and(Status::is_final));
    let open: Vec<_> = open.collect();
    let ids: Vec<_> = open.iter().map(|(id, _)| id.clone()).collect();
    let mut next_runs = Vec::with_capacity(ids.len());
    for chunk in ids.chunks(MAX_ITEMS) {
        next_runs.extend(client.broker().next_runs(chunk).await?);
    }
    let awaited = |((id, status), next_run): ((JobId, Option<Status>), Option<u64>)| Awaited {
        id: id.as_str().to_owned(),
        status: status.map(Status::as_str),
        state: status.map(|status| match next_run {
            Some(_) => State::Delayed.as_str(),
            None => State::from(status).as_str(),
        }),
    };
    Ok(open.into_iter().zip(next_runs).map(awaited).collect())
}
