//! Results of methods, as far as pages need them.

use std::collections::BTreeMap;

use maud::{Markup, html};
use meshwork::view::JobSummary;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::time;
use meshwork_model::time::duration;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::caller::Caller;
use super::parts::job_state;
use super::text::{cell, cell_of, number, when};
use crate::api::{ApiError, Code};

/// A job in a list.
#[derive(Debug, Deserialize)]
pub(super) struct JobRow {
    /// Time that orders the list.
    #[serde(default, alias = "died_at")]
    pub(super) at: Option<String>,
    pub(super) id: String,
    pub(super) state: String,
    pub(super) error: Option<String>,
    #[serde(rename = "type")]
    pub(super) script_type: Option<String>,
    pub(super) group: Option<String>,
    pub(super) key: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) batch: Option<String>,
    pub(super) attempts: u32,
    pub(super) retries: u32,
    pub(super) priority: String,
    pub(super) progress: Option<String>,
    pub(super) dead: Option<String>,
    pub(super) worker: Option<String>,
    pub(super) created_at: String,
    pub(super) started_at: Option<String>,
    pub(super) ended_at: Option<String>,
}

impl JobRow {
    /// Reads a job as a list of the API gives it.
    pub(super) fn of(job: &meshwork_model::job::Job) -> Result<Self, ApiError> {
        let row = serde_json::to_value(JobSummary::new(job, job.state(false), None))
            .and_then(serde_json::from_value);
        row.map_err(|error| ApiError::new(Code::Internal, error.to_string()))
    }
}

/// A page of jobs.
#[derive(Debug, Deserialize)]
pub(super) struct JobPage {
    #[serde(alias = "letters")]
    pub(super) jobs: Vec<JobRow>,
    pub(super) next: Option<String>,
}

/// A job.
#[derive(Debug, Deserialize)]
pub(super) struct Job {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) state: String,
    pub(super) output: Option<Box<RawValue>>,
    pub(super) error: Option<String>,
    pub(super) traceback: Option<String>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) env: BTreeMap<String, String>,
    #[serde(rename = "type")]
    pub(super) script_type: Option<String>,
    pub(super) group: Option<String>,
    pub(super) instance: Option<String>,
    pub(super) caller: String,
    pub(super) timeout: u64,
    pub(super) retries: u32,
    pub(super) attempts: u32,
    pub(super) lost: u32,
    pub(super) failed_attempts: Vec<Attempt>,
    pub(super) snoozes: u32,
    pub(super) priority: String,
    pub(super) run_at: Option<String>,
    pub(super) key: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) unique: Option<String>,
    pub(super) progress: Option<String>,
    pub(super) dead: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) children: u32,
    pub(super) worker: Option<String>,
    pub(super) queue: Option<String>,
    pub(super) created_at: String,
    pub(super) started_at: Option<String>,
    pub(super) ended_at: Option<String>,
    pub(super) traceparent: Option<String>,
}

/// An attempt that failed or was lost.
#[derive(Debug, Deserialize)]
pub(super) struct Attempt {
    pub(super) number: Option<u32>,
    pub(super) started_at: Option<String>,
    pub(super) ended_at: String,
    pub(super) worker: String,
    pub(super) outcome: String,
    pub(super) error: String,
}

/// Reasons for the state of a job.
#[derive(Debug, Deserialize)]
pub(super) struct Why {
    pub(super) state: String,
    pub(super) reasons: Vec<String>,
    /// Reasons of a wait, for programs.
    pub(super) waits: Vec<serde::de::IgnoredAny>,
}

/// A queue.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Queue {
    pub(super) queue: String,
    pub(super) waiting: u64,
    pub(super) running: u64,
    #[serde(default)]
    pub(super) listeners: u64,
    pub(super) set_aside: u64,
    pub(super) limit: Option<u64>,
    #[serde(default)]
    pub(super) legacy: bool,
    pub(super) paused: bool,
    pub(super) draining: bool,
    pub(super) concurrency: Option<u64>,
    pub(super) rate: Option<String>,
    pub(super) key_concurrency: Option<u64>,
    pub(super) key_rate: Option<String>,
    pub(super) payload: Option<u64>,
    pub(super) sandbox: Option<String>,
    pub(super) fair: bool,
    #[serde(default)]
    pub(super) retrying: u64,
    #[serde(default)]
    pub(super) delayed: u64,
    #[serde(default)]
    pub(super) age_ms: u64,
    #[serde(default)]
    pub(super) partial: bool,
}

/// All queues.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) queues: Vec<Queue>,
    pub(super) age_ms: u64,
}

/// A worker.
#[derive(Debug, Deserialize)]
pub(super) struct Worker {
    pub(super) script_type: String,
    pub(super) group: String,
    pub(super) instance: String,
    pub(super) named: bool,
    pub(super) pid: Option<u32>,
    pub(super) hostname: Option<String>,
    pub(super) started_at: Option<String>,
    pub(super) version: Option<String>,
    pub(super) last_heartbeat: Option<String>,
    pub(super) worker: Option<String>,
    pub(super) in_flight: Option<u64>,
    pub(super) slots: Option<u64>,
    pub(super) quiet: bool,
    pub(super) fault: Option<String>,
}

/// All workers.
#[derive(Debug)]
pub(super) struct Workers {
    pub(super) workers: Vec<Worker>,
    pub(super) age_ms: u64,
}

/// A type that migrates from foreign workers.
#[derive(Debug, Deserialize)]
pub(super) struct MigratingType {
    #[serde(rename = "type")]
    pub(super) script_type: String,
    pub(super) phase: String,
    pub(super) list: String,
    pub(super) waiting: Option<u64>,
}

/// All types that migrate.
#[derive(Debug, Deserialize)]
pub(super) struct Migrations {
    pub(super) types: Vec<MigratingType>,
}

/// A schedule.
#[derive(Debug, Deserialize)]
pub(super) struct Schedule {
    pub(super) name: String,
    pub(super) rhythm: Option<String>,
    pub(super) zone: Option<String>,
    #[serde(rename = "type")]
    pub(super) script_type: Option<String>,
    pub(super) paused: bool,
    pub(super) next_at: Option<String>,
    pub(super) upcoming: Vec<String>,
    pub(super) last_job: Option<String>,
    pub(super) runs: u64,
    pub(super) skipped: u64,
    pub(super) refused: u64,
    pub(super) trouble: Option<String>,
}

/// A page of schedules.
#[derive(Debug, Deserialize)]
pub(super) struct Schedules {
    pub(super) schedules: Vec<Schedule>,
    pub(super) next: Option<String>,
}

/// The job of an event or a change in a table: a link by its id.
pub(super) fn job_link(caller: &Caller, id: &str) -> Markup {
    html! { a.mono href=(caller.url("/job", &[("id", id)])) { (cell_of(id, 40)) } }
}

/// Printed name of a queue.
pub(super) fn queue_name<'a>(caller: &Caller, queue: &'a str) -> &'a str {
    let keys = caller.shared.api.calls().client.broker().keys();
    match caller.context {
        None => keys.queue_name(queue),
        // Keys of queues there are `queue:NAME`, in the layout `prefix` after the prefix of the context.
        Some(_) => queue.split_once("queue:").map_or(queue, |(_, name)| name),
    }
}

/// A link to a queue, by its list.
pub(super) fn queue_link(caller: &Caller, queue: &str) -> Markup {
    let whole = JobKeys::without_priority(queue);
    html! { a href=(caller.url("/queue", &[("queue", whole)])) { (cell_of(queue_name(caller, queue), 60)) } }
}

/// Time between two texts of a record, if both are times.
pub(super) fn between(from: Option<&str>, to: Option<&str>) -> Option<u64> {
    let (from, to) = (time::parse_iso(from?)?, time::parse_iso(to?)?);
    Some(to.saturating_sub(from))
}

/// A table of jobs.
pub(super) fn job_table(caller: &Caller, jobs: &[JobRow], order: &str) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label="Jobs" {
            table {
                thead { tr {
                    th { "Job" } th { "Type" } th { "State" } th { "Attempts" } th { "Created" } @if !order.is_empty() { th { (order) } } th.wide { "Details" }
                } }
                tbody { @for job in jobs { (job_line(caller, job, !order.is_empty())) } }
            }
        }
    }
}

fn job_line(caller: &Caller, job: &JobRow, is_ordered: bool) -> Markup {
    let ran = between(job.started_at.as_deref(), job.ended_at.as_deref());
    html! {
        tr {
            td { (job_link(caller, &job.id)) @if job.priority != "normal" { " " span.badge.idle { (cell_of(&job.priority, 8)) } } }
            td {
                (cell_of(job.script_type.as_deref().unwrap_or("–"), 24))
                @if let Some(group) = &job.group { span.note { " / " (cell_of(group, 24)) } }
            }
            td { (job_state(&job.state, job.dead.as_deref())) }
            td.right { (job.attempts) span.note { " / " (u64::from(job.retries) + 1) } }
            td { (when(&job.created_at, caller.now_ms)) }
            @if is_ordered {
                td {
                    @if let Some(at) = &job.at { (when(at, caller.now_ms)) }
                    @if let Some(ran) = ran { span.note { " · ran " (duration(ran)) } }
                }
            }
            td.wide {
                @if let Some(error) = &job.error { span.bad { (cell(error)) } }
                @else if let Some(progress) = &job.progress { (cell(progress)) }
                @else if let Some(worker) = job.worker.as_ref().filter(|_| matches!(job.state.as_str(), "running" | "cancelling")) { span.note { "on " (cell(worker)) } }
                @for tag in job.tags.iter().take(5) { " " span.tag { (cell_of(tag, 24)) } }
            }
        }
    }
}

/// A job that a search has found.
pub(super) fn found_line(caller: &Caller, job: &JobRow) -> Markup {
    html! {
        p.found {
            (job_link(caller, &job.id)) " "
            (job_state(&job.state, job.dead.as_deref())) " "
            span.note {
                (cell_of(job.script_type.as_deref().unwrap_or("–"), 24)) ", created " (when(&job.created_at, caller.now_ms))
            }
            @if let Some(error) = &job.error { " " span.bad { (cell(error)) } }
        }
    }
}

/// Links to the first page, and to the next one.
pub(super) fn pager(caller: &Caller, next: Option<&str>, shown: usize) -> Markup {
    html! {
        p.pager {
            span.note { (number(shown as u64)) " shown" }
            @if caller.query("cursor").is_some() { a.button href=(caller.here_with(&[("cursor", "")])) { "First page" } }
            @if let Some(next) = next { a.button href=(caller.here_with(&[("cursor", next)])) { "Next page" } }
        }
    }
}

impl Caller {
    /// Returns the queues of the context of the page.
    pub(super) async fn queues(&self) -> Result<Queues, ApiError> {
        let (queues, age_ms) = self.read_all("queue.list", self.context).await?;
        Ok(Queues { queues, age_ms })
    }

    /// Returns the workers.
    pub(super) async fn workers(&self) -> Result<Workers, ApiError> {
        let (workers, age_ms) = self.read_all("worker.list", None).await?;
        Ok(Workers { workers, age_ms })
    }
}
