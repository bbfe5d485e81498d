//! Jobs by state, with filters. Each request reads a bounded part of one list of the store.

use std::sync::Arc;

use maud::{Markup, html};
use serde_json::{Value, json};

use super::views::{JobPage, JobRow, Queues, job_table, queue_link, queue_name};
use crate::api::ApiError;
use crate::ui::caller::Caller;
use crate::ui::figures::Figures;
use crate::ui::layout::Page;
use crate::ui::parts::nothing;
use crate::ui::text::{cell_of, number};

/// Jobs of a page.
const ROWS: usize = 50;
/// Entries in each step of a search.
const STEP: usize = 100;
/// Greatest number of entries that one request compares with the filters.
const MOST_COMPARED: usize = 1000;

/// States with the order of their lists.
const STATES: [(&str, &str, &str); 5] = [
    ("queued", "Queued", ""),
    ("running", "Running", "Lease ends"),
    ("delayed", "Delayed", "Due"),
    ("ended", "Ended", "Ended"),
    ("dead", "Dead letters", "Died"),
];

/// Filters beside the queue: parameter and label.
const FILTERS: [(&str, &str); 5] = [
    ("type", "Type"),
    ("group", "Group"),
    ("tag", "Tag"),
    ("key", "Key"),
    ("error", "Error has"),
];

/// Jobs that were found.
struct Found {
    jobs: Vec<JobRow>,
    next: Option<String>,
    compared: usize,
}

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let given = caller.query("state").unwrap_or("running");
    let known = STATES.iter().find(|(state, ..)| *state == given);
    let Some((state, name, order)) = known.copied() else {
        let names = STATES.map(|(state, ..)| state).join(", ");
        return Err(ApiError::invalid(format!(
            "state: {given:?} is none of {names}"
        )));
    };
    let figures = match caller.context {
        None => caller.shared.poller.figures().await,
        Some(_) => None,
    };
    let list = match (state, caller.query("queue")) {
        ("queued", None) => queues(&caller).await?,
        _ => jobs(&caller, state, order).await?,
    };
    let body = html! {
        h1 { "Jobs" }
        (tabs(&caller, state, figures.as_deref()))
        (filter(&caller, state))
        section #jobs data-part { (list) }
    };
    Ok(Page::new(format!("{name} jobs"), "/jobs", body).live("figures"))
}

fn tabs(caller: &Caller, current: &str, figures: Option<&Figures>) -> Markup {
    let count = |state: &str| {
        let stats = &figures?.stats;
        Some(match state {
            "queued" => stats.queues.iter().map(|queue| queue.waiting).sum(),
            "running" => stats.running,
            "delayed" => stats.delayed,
            "ended" => stats.ended + stats.dead,
            _ => stats.dead,
        })
    };
    html! {
        nav.tabs #tabs data-part aria-label="States" {
            @for (state, name, _) in STATES {
                a href=(caller.here_with(&[("state", state), ("cursor", "")])) aria-current=[(state == current).then_some("page")] {
                    (name) @if let Some(count) = count(state) { " " span.count { (number(count)) } }
                }
            }
        }
    }
}

fn filter(caller: &Caller, state: &str) -> Markup {
    let has_some = FILTERS.iter().any(|(name, _)| caller.query(name).is_some());
    let queue = caller.query("queue");
    html! {
        form.filter action=(format!("{}/jobs", caller.shared.base)) {
            input type="hidden" name="state" value=(state);
            @if let Some(context) = caller.context { input type="hidden" name="context" value=(context); }
            label for="queue" { "Queue" }
            input #queue name="queue" value=[queue.map(|queue| queue_name(caller, queue))] placeholder="any" spellcheck="false";
            @for (name, label) in FILTERS {
                label for={"f-" (name)} { (label) }
                input #{"f-" (name)} name=(name) value=[caller.query(name)] placeholder="any" spellcheck="false";
            }
            button type="submit" { "Filter" }
            @if has_some || queue.is_some() { a.button href=(caller.url("/jobs", &[("state", state)])) { "Clear" } }
        }
    }
}

/// The queues, to select one.
async fn queues(caller: &Caller) -> Result<Markup, ApiError> {
    let list: Queues = caller.read_here("queue.list", json!({})).await?;
    let waiting: Vec<_> = list
        .queues
        .iter()
        .filter(|queue| queue.waiting > 0)
        .collect();
    Ok(html! {
        p.note { "Each queue has a list of its own. Select one." }
        @if waiting.is_empty() { (nothing("No job waits in a queue", &html! { "New jobs appear here until a worker claims them." })) }
        @else {
            ul.rows { @for queue in waiting.iter().take(500) { li {
                a href=(caller.here_with(&[("queue", &queue.queue)])) { (cell_of(queue_name(caller, &queue.queue), 80)) }
                span { (number(queue.waiting)) " waiting" }
                span.note { (queue_link(caller, &queue.queue)) }
            } } }
        }
    })
}

async fn jobs(caller: &Caller, state: &str, order: &str) -> Result<Markup, ApiError> {
    let found = find(caller, state).await?;
    let shown = found.jobs.len() as u64;
    let is_filtered = found.compared > found.jobs.len();
    Ok(html! {
        @if found.jobs.is_empty() {
            (nothing(&format!("No {state} jobs here"), &html! { @if found.next.is_some() { "Look further: more jobs of this state are stored." } @else { "Nothing matches." } }))
        } @else { (job_table(caller, &found.jobs, order)) }
        p.pager {
            span.note {
                (number(shown)) " shown"
                @if is_filtered { ", looked at " (number(found.compared as u64)) }
            }
            @if caller.query("cursor").is_some() { a.button href=(caller.here_with(&[("cursor", "")])) { "First page" } }
            @if let Some(next) = &found.next {
                a.button href=(caller.here_with(&[("cursor", next)])) { @if is_filtered { "Continue the search" } @else { "Next page" } }
            }
        }
    })
}

/// Reads a page, or as many as the filters need.
async fn find(caller: &Caller, state: &str) -> Result<Found, ApiError> {
    let filters: Vec<_> = FILTERS
        .iter()
        .filter_map(|(name, _)| Some((*name, caller.query(name)?)))
        .collect();
    let limit = if filters.is_empty() { ROWS } else { STEP };
    let mut found = Found {
        jobs: Vec::new(),
        next: caller.query("cursor").map(str::to_owned),
        compared: 0,
    };
    loop {
        let mut params = json!({"state": state, "limit": limit});
        for (name, text) in [
            ("queue", caller.query("queue")),
            ("cursor", found.next.as_deref()),
        ] {
            if let Some(text) = text {
                params[name] = Value::from(text);
            }
        }
        let page: JobPage = caller.read_here("job.list", params).await?;
        found.compared += page.jobs.len();
        found.next = page.next;
        let matches = page
            .jobs
            .into_iter()
            .filter(|job| filters.iter().all(|filter| is_match(job, *filter)));
        found.jobs.extend(matches);
        if filters.is_empty()
            || found.jobs.len() >= ROWS
            || found.next.is_none()
            || found.compared >= MOST_COMPARED
        {
            return Ok(found);
        }
    }
}

fn is_match(job: &JobRow, (name, text): (&str, &str)) -> bool {
    let is = |given: &Option<String>| given.as_deref() == Some(text);
    match name {
        "type" => is(&job.script_type),
        "group" => is(&job.group),
        "key" => is(&job.key),
        "tag" => job.tags.iter().any(|tag| tag == text),
        _ => job.error.as_ref().is_some_and(|error| error.contains(text)),
    }
}
