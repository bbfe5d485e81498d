//! Jobs by state, with filters. Each request reads a bounded part of one list of the store.

use std::sync::Arc;

use maud::{Markup, html};
use serde_json::{Value, json};

use super::many;
use crate::api::ApiError;
use crate::ui::caller::Caller;
use crate::ui::figures::Figures;
use crate::ui::layout::Page;
use crate::ui::parts::nothing;
use crate::ui::selection::{FILTERS, STATES, Selection, WAITING};
use crate::ui::text::{cell_of, number};
use crate::ui::views::{JobPage, JobRow, job_table, queue_link, queue_name};

/// Jobs of a page.
const ROWS: usize = 50;
/// Entries in each step of a search.
const STEP: usize = 100;
/// Greatest number of entries that one request compares with the filters.
const MOST_COMPARED: usize = 1000;

/// Jobs that were found.
pub(super) struct Found {
    pub(super) jobs: Vec<JobRow>,
    next: Option<String>,
    compared: usize,
}

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let selection = Selection::of(&caller, "running")?;
    let (name, _) = selection.labels();
    let figures = figures(&caller).await;
    let list = match (selection.state, &selection.queue) {
        ("queued", None) if !selection.has_filters() => queues(&caller).await?,
        ("queued", None) => {
            html! { p.note { "Each queue has a list of its own. Give one to see its jobs." } }
        }
        _ => jobs(&caller, &selection).await?,
    };
    let body = html! {
        h1 { "Jobs" }
        (tabs(&caller, selection.state, figures.as_deref()))
        (filter(&caller, &selection))
        section #jobs data-part { (list) }
        (many::buttons(&caller, &selection))
    };
    Ok(Page::new(format!("{name} jobs"), "/jobs", body).live("figures"))
}

/// Figures of jobs outside contexts.
async fn figures(caller: &Caller) -> Option<Arc<Figures>> {
    match caller.context {
        None => caller.figures().await,
        Some(_) => None,
    }
}

/// Number of jobs in a state.
fn stored(figures: &Figures, state: &str) -> u64 {
    let stats = &figures.stats;
    match state {
        "queued" => stats.queues.iter().map(|queue| queue.waiting).sum(),
        "running" => stats.running,
        "delayed" => stats.delayed,
        "ended" => stats.ended + stats.dead,
        _ => stats.dead,
    }
}

fn tabs(caller: &Caller, current: &str, figures: Option<&Figures>) -> Markup {
    let count = |state: &str| Some(stored(figures?, state));
    html! {
        nav.tabs #tabs data-part aria-label="States" {
            @for (state, name, _) in STATES {
                a href=(caller.here_with(&[("state", state), ("cursor", "")])) aria-current=[(state == current).then_some("page")] {
                    (name) @if let Some(count) = count(state) { " " span.count { (number(count)) } }
                }
            }
            a href=(caller.url("/search", &[(WAITING, "1")])) { "Waiting for other jobs" }
        }
    }
}

fn filter(caller: &Caller, selection: &Selection) -> Markup {
    let (state, queue) = (selection.state, selection.queue.as_deref());
    let hidden = ["fingerprint", "reason"];
    let hidden = hidden
        .iter()
        .filter_map(|name| Some((*name, caller.query(name)?)));
    let shown = FILTERS
        .iter()
        .filter(|(name, _)| !matches!(*name, "fingerprint" | "reason"));
    html! {
        form.filter action=(format!("{}/jobs", caller.shared.base)) {
            input type="hidden" name="state" value=(state);
            @if let Some(context) = caller.context { input type="hidden" name="context" value=(context); }
            @for (name, text) in hidden { input type="hidden" name=(name) value=(text); }
            label for="queue" { "Queue" }
            input #queue name="queue" value=[queue.map(|queue| queue_name(caller, queue))] placeholder="any" spellcheck="false";
            @for (name, label) in shown {
                label for={"f-" (name)} { (label) }
                @let is_time = matches!(*name, "since" | "until");
                input #{"f-" (name)} name=(name) type=(if is_time { "datetime-local" } else { "text" }) value=[caller.query(name)] placeholder="any" spellcheck="false";
            }
            button type="submit" { "Filter" }
            @if selection.has_filters() || queue.is_some() { a.button href=(caller.url("/jobs", &[("state", state)])) { "Clear" } }
        }
    }
}

/// The queues, to select one.
async fn queues(caller: &Caller) -> Result<Markup, ApiError> {
    let list = caller.queues().await?;
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

async fn jobs(caller: &Caller, selection: &Selection) -> Result<Markup, ApiError> {
    let found = find(caller, selection).await?;
    let (state, (_, order)) = (selection.state, selection.labels());
    Ok(html! {
        @if found.jobs.is_empty() {
            (nothing(&format!("No {state} jobs here"), &html! { @if found.next.is_some() { "Look further: more jobs of this state are stored." } @else { "Nothing matches." } }))
        } @else { (job_table(caller, &found.jobs, order)) }
        (found_pager(caller, selection, &found).await)
    })
}

/// Says how many jobs were compared with the filters, with links to the first and the next ones.
pub(super) async fn found_pager(caller: &Caller, selection: &Selection, found: &Found) -> Markup {
    let is_filtered = found.compared > found.jobs.len();
    let figures = match is_filtered && selection.queue.is_none() {
        true => figures(caller).await,
        false => None,
    };
    let of = figures.map(|figures| stored(&figures, selection.state));
    html! {
        p.pager {
            span.note {
                (number(found.jobs.len() as u64)) " shown"
                @if is_filtered { ", looked at " (number(found.compared as u64)) }
                @if let Some(of) = of { " of " (number(of)) }
            }
            @if caller.query("cursor").is_some() { a.button href=(caller.here_with(&[("cursor", "")])) { "First page" } }
            @if let Some(next) = &found.next {
                a.button href=(caller.here_with(&[("cursor", next)])) { @if is_filtered { "Continue the search" } @else { "Next page" } }
            }
        }
    }
}

/// Reads a page, or as many as the filters need.
pub(super) async fn find(caller: &Caller, selection: &Selection) -> Result<Found, ApiError> {
    let is_filtered = selection.has_filters();
    let limit = if is_filtered { STEP } else { ROWS };
    let mut found = Found {
        jobs: Vec::new(),
        next: caller.query("cursor").map(str::to_owned),
        compared: 0,
    };
    loop {
        let mut params = json!({"state": selection.state, "limit": limit});
        for (name, text) in [("queue", &selection.queue), ("cursor", &found.next)] {
            if let Some(text) = text {
                params[name] = Value::from(text.as_str());
            }
        }
        let page: JobPage = caller.read_here("job.list", params).await?;
        found.compared += page.jobs.len();
        found.next = page.next;
        found
            .jobs
            .extend(page.jobs.into_iter().filter(|job| selection.is_match(job)));
        let is_enough = found.jobs.len() >= ROWS || found.compared >= MOST_COMPARED;
        if !is_filtered || found.next.is_none() || is_enough {
            return Ok(found);
        }
    }
}
