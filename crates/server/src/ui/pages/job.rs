//! One job: its time line, the reason of a wait, its error, script, input, result and log, and the jobs around it.

use std::sync::Arc;

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::attempts::attempts;
use crate::api::ApiError;
use crate::ui::ansi;
use crate::ui::caller::Caller;
use crate::ui::layout::Page;
use crate::ui::parts::{button, confirmed, job_state};
use crate::ui::text::{block, cell, cell_of, number, when};
use crate::ui::views::{Job, Why, between, job_link, queue_link};
use meshwork_model::time::duration;

/// Log lines of a page.
const LINES: usize = 500;

/// Parts of the record of a job beside its state.
#[derive(Debug, Deserialize)]
struct Source {
    script: String,
    input: Option<String>,
    depends_on: Vec<String>,
    dependents: Vec<String>,
    batch: Option<String>,
    flow: Option<u32>,
}

/// Line of a log.
#[derive(Debug, Deserialize)]
struct LogLine {
    id: String,
    at: String,
    stream: String,
    line: String,
}

#[derive(Debug, Deserialize)]
struct LogPage {
    lines: Vec<LogLine>,
    last: Option<String>,
}

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let id = caller.needed("id")?;
    let of = json!({"id": id});
    let mut lines = json!({"id": id, "limit": LINES});
    if let Some(after) = caller.query("after") {
        lines["after"] = after.into();
    }
    let (job, why, source, log) = tokio::try_join!(
        caller.read_here::<Job>("job.get", of.clone()),
        caller.read_here::<Why>("job.why", of.clone()),
        caller.read_here::<Source>("job.source", of),
        caller.read_here::<LogPage>("job.logs", lines),
    )?;
    let body = html! {
        header.head #head data-part {
            h1.mono { (cell_of(&job.id, 80)) }
            (job_state(&why.state, job.dead.as_deref()))
            div.buttons { (buttons(&caller, &job, &why)) }
        }
        section #state data-part {
            (time_line(&caller, &job, &why))
            (reason(&why))
            @if let Some(error) = &job.error { (failure(&job, error)) }
            (attempts(&caller, &job.failed_attempts))
        }
        div.columns {
            section.card { h2 { "About" } (about(&caller, &job)) }
            section.card #around data-part { h2 { "Around it" } (around(&caller, &job, &source)) }
        }
        section.card #result data-part { h2 { "Result" } (result(&caller, &job)) }
        section.card { h2 { "Script and input" } (script(&caller, &job, &source)) }
        section.card #log data-part data-log=(job.id) { h2 { "Log" } (log_part(&caller, &job, &log)) }
    };
    let page = Page::new(format!("Job {}", job.id), "/jobs", body);
    Ok(match caller.context {
        None => page.live(format!("job:{}", job.id)),
        // Events of contexts have streams of their own.
        Some(_) => page.live("figures"),
    })
}

fn buttons(caller: &Caller, job: &Job, why: &Why) -> Markup {
    let of = [("id", job.id.as_str())];
    let ended = matches!(job.status.as_str(), "finished" | "error");
    html! {
        @if !ended { (button(caller, ("job.cancel", "Cancel"), &of)) }
        @if why.state == "delayed" { (button(caller, ("job.run_now", "Run now"), &of)) }
        @if ended { (button(caller, ("job.retry", "Retry"), &of)) }
        @if job.status != "started" { (confirmed(caller, ("job.delete", "Delete…"), &of)) }
    }
}

/// The steps of a job's life, with the time between them.
fn time_line(caller: &Caller, job: &Job, why: &Why) -> Markup {
    let now = meshwork_model::time::iso(caller.now_ms);
    let started = job.started_at.as_deref();
    let ended = job.ended_at.as_deref();
    let waited = between(Some(&job.created_at), started.or(ended).or(Some(&now)));
    let ran = between(started, ended.or(Some(&now)));
    let is_running = matches!(why.state.as_str(), "running" | "cancelling");
    let until_due = job.run_at.as_deref().filter(|_| why.state == "delayed");
    html! {
        ol.timeline {
            li.done { strong { "Created" } (when(&job.created_at, caller.now_ms)) }
            li.done[started.is_some()].now[started.is_none() && ended.is_none()] {
                strong { @if until_due.is_some() { "Delayed" } @else { "Waited" } }
                @if let Some(waited) = waited { span { (duration(waited)) } }
                @if let Some(at) = until_due { span.note { "due " (when(at, caller.now_ms)) } }
            }
            li.done[started.is_some()].now[is_running] {
                strong { @if is_running { "Running" } @else { "Ran" } }
                @if let Some(ran) = ran.filter(|_| started.is_some()) { span { (duration(ran)) } span.note { "attempt " (job.attempts) " of " (u64::from(job.retries) + 1) } }
                @else { span.note { "not yet" } }
                @if let Some(progress) = job.progress.as_ref().filter(|_| is_running) { span { (cell(progress)) } }
            }
            li.done[ended.is_some()].failed[job.state == "failed"] {
                strong { @match job.state.as_str() { "failed" => "Failed", "cancelled" => "Cancelled", _ => "Ended" } }
                @if let Some(ended) = ended { (when(ended, caller.now_ms)) } @else { span.note { "not yet" } }
            }
        }
    }
}

fn reason(why: &Why) -> Markup {
    html! {
        @if !why.waits.is_empty() {
            div.card.why { h2 { "Why it waits" } ul { @for reason in &why.reasons { li { (cell_of(reason, 300)) } } } }
        }
    }
}

fn failure(job: &Job, error: &str) -> Markup {
    html! {
        div.card.failure {
            h2 { "Error" @if let Some(dead) = &job.dead { span.badge.bad { (cell_of(dead, 40)) } } }
            (block(error))
            @if let Some(traceback) = &job.traceback { details { summary { "Traceback" } (block(traceback)) } }
        }
    }
}

fn about(caller: &Caller, job: &Job) -> Markup {
    let row = |name: &str, value: Markup| html! { dt { (name) } dd { (value) } };
    let text = |value: &str| cell_of(value, 200);
    html! {
        dl.grid {
            (row("Type", text(job.script_type.as_deref().unwrap_or("–"))))
            @if let Some(queue) = &job.queue { (row("Queue", queue_link(caller, queue))) }
            @if let Some(group) = &job.group { (row("Group", text(group))) }
            @if let Some(instance) = &job.instance { (row("Instance", text(instance))) }
            (row("Priority", text(&job.priority)))
            (row("Attempts", html! { (job.attempts) " of " (u64::from(job.retries) + 1) @if job.lost > 0 { ", " (job.lost) " lost" } @if job.snoozes > 0 { ", " (job.snoozes) " snoozes" } }))
            (row("Timeout", html! { (duration(job.timeout.saturating_mul(1000))) }))
            @if let Some(worker) = &job.worker { (row("Worker", html! { span.mono { (text(worker)) } })) }
            @if !job.caller.is_empty() { (row("Caller", text(&job.caller))) }
            @if let Some(key) = &job.key { (row("Concurrency key", text(key))) }
            @if let Some(unique) = &job.unique { (row("Unique name", text(unique))) }
            @if !job.tags.is_empty() { (row("Tags", html! { @for tag in job.tags.iter().take(50) { span.tag { (cell_of(tag, 60)) } " " } })) }
            @if let Some(trace) = &job.traceparent { (row("Trace", html! { span.mono { (text(trace)) } })) }
        }
    }
}

fn around(caller: &Caller, job: &Job, source: &Source) -> Markup {
    let links = |ids: &[String]| {
        html! {
            ul.links { @for id in ids.iter().take(50) { li { (job_link(caller, id)) } } }
            @if ids.len() > 50 { p.note { "and " (number(ids.len() as u64 - 50)) " more" } }
        }
    };
    let is_alone = job.parent.is_none()
        && job.children == 0
        && source.depends_on.is_empty()
        && source.dependents.is_empty();
    let children: Vec<_> = (1..=job.children.min(50))
        .map(|number| format!("{}.{number}", job.id))
        .collect();
    html! {
        @if is_alone && source.flow.is_none() && source.batch.is_none() { p.note { "It has no parent, children, prerequisites or flow." } }
        dl.grid {
            @if let Some(flow) = source.flow { dt { "Flow" } dd { a href=(caller.url("/flow", &[("id", &flow.to_string())])) { "Flow " (flow) } } }
            @if let Some(batch) = &source.batch { dt { "Batch" } dd { (cell_of(batch, 80)) } }
            @if let Some(parent) = &job.parent { dt { "Parent" } dd { (job_link(caller, parent)) } }
            @if job.children > 0 { dt { "Children" } dd { (links(&children)) } }
            @if !source.depends_on.is_empty() { dt { "Waits for" } dd { (links(&source.depends_on)) } }
            @if !source.dependents.is_empty() { dt { "Dependents" } dd { (links(&source.dependents)) } }
        }
    }
}

fn result(caller: &Caller, job: &Job) -> Markup {
    html! {
        @match &job.output {
            _ if caller.shared.options.hide_payloads => p.note { "Results are hidden here." },
            None => p.note { "There is no result yet." },
            Some(output) => (folded("Result", output.get())),
        }
    }
}

/// A long text behind its size.
fn folded(name: &str, text: &str) -> Markup {
    const OPEN: usize = 2000;
    html! {
        @if text.len() <= OPEN { (block(text)) }
        @else { details { summary { (name) ", " (number(text.len() as u64)) " bytes" } (block(text)) } }
    }
}

fn script(caller: &Caller, job: &Job, source: &Source) -> Markup {
    html! {
        @if caller.shared.options.hide_payloads { p.note { "Scripts and inputs are hidden here." } }
        @else {
            @if source.script.is_empty() { p.note { "The job has no script." } } @else { (folded("Script", &source.script)) }
            @if let Some(input) = &source.input { h3 { "Input" } (folded("Input", input)) }
            @if !job.env.is_empty() {
                h3 { "Environment" }
                dl.grid { @for (name, value) in job.env.iter().take(100) { dt.mono { (cell_of(name, 60)) } dd.mono { (cell_of(value, 200)) } } }
            }
        }
    }
}

fn log_part(caller: &Caller, job: &Job, log: &LogPage) -> Markup {
    let full = log.lines.len() == LINES;
    html! {
        @if log.lines.is_empty() {
            @if job.stdout.is_empty() && job.stderr.is_empty() { p.note { "It has printed nothing." } }
            @if !job.stdout.is_empty() { h3 { "stdout" } (block(&job.stdout)) }
            @if !job.stderr.is_empty() { h3 { "stderr" } (block(&job.stderr)) }
        } @else {
            div.log tabindex="0" role="log" aria-label="Log" {
                @for line in &log.lines {
                    p data-stream=(line.stream) data-id=(line.id) {
                        time title=(line.at) { (line.at.get(11..19).unwrap_or_default()) }
                        span { (ansi::line(&line.line[..line.line.floor_char_boundary(4096)])) }
                    }
                }
            }
            @if full { @if let Some(last) = &log.last { p { a.button href=(caller.here_with(&[("after", last)])) { "Later lines" } } } }
        }
    }
}
