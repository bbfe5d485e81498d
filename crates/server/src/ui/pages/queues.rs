//! All queues: a row for each type and route, a column for each priority.

use std::collections::BTreeMap;
use std::sync::Arc;

use maud::{Markup, html};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::time::duration;

use super::overview::age;
use crate::api::ApiError;
use crate::ui::caller::Caller;
use crate::ui::figures::Figures;
use crate::ui::layout::Page;
use crate::ui::parts::{button, line, nothing};
use crate::ui::text::{number, rough};
use crate::ui::views::{Queue, Queues, queue_link};

/// Greatest number of rows.
const MOST: usize = 500;

/// The lists of one queue.
#[derive(Debug, Default)]
struct Row {
    /// Waiting jobs of high, normal and low priority.
    waiting: [u64; 3],
    aside: u64,
    running: u64,
    listeners: u64,
    oldest_ms: Option<u64>,
    finished: u64,
    failed: u64,
    settings: Option<Queue>,
    legacy: bool,
}

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let listed = caller.queues().await?;
    // Figures are those of jobs outside contexts.
    let figures = match caller.context {
        None => caller.figures().await,
        Some(_) => None,
    };
    let scanned = listed.age_ms;
    let rows = rows(listed, figures.as_deref());
    let count = rows.len();
    let body = html! {
        h1 { "Queues" }
        @if let Some(figures) = &figures { (age(figures)) }
        section #queues data-part {
            @if rows.is_empty() {
                (nothing("No queues", &html! { "A queue exists while it has jobs, workers or settings." }))
            } @else { (table(&caller, rows, figures.as_deref())) }
            p.note {
                (number(count as u64)) " queues"
                @if count > MOST { ", the first " (MOST) " are shown" }
                ". Queues and running jobs were counted " (rough(scanned)) " ago."
            }
        }
    };
    let page = Page::new("Queues", "/queues", body);
    Ok(if figures.is_some() {
        page.live("figures")
    } else {
        page
    })
}

/// Collects the lists of each queue.
fn rows(listed: Queues, figures: Option<&Figures>) -> BTreeMap<String, Row> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for queue in listed.queues {
        let row = rows
            .entry(JobKeys::without_priority(&queue.queue).to_owned())
            .or_default();
        row.running += queue.running;
        row.legacy |= queue.legacy;
        if figures.is_none() {
            row.waiting[priority(&queue.queue)] += queue.waiting;
            row.aside += queue.set_aside;
            row.listeners = row.listeners.max(queue.listeners);
        }
        if JobKeys::without_priority(&queue.queue) == queue.queue {
            row.settings = Some(queue);
        }
    }
    for queue in figures
        .into_iter()
        .flat_map(|figures| &figures.stats.queues)
    {
        let row = rows
            .entry(JobKeys::without_priority(&queue.queue).to_owned())
            .or_default();
        row.waiting[priority(&queue.queue)] += queue.waiting;
        row.aside += queue.set_aside;
        row.listeners = row.listeners.max(queue.listeners);
        row.oldest_ms = row.oldest_ms.max(queue.oldest_ms);
        row.finished += queue.finished;
        row.failed += queue.failed;
    }
    rows
}

/// The column of a list.
fn priority(list: &str) -> usize {
    match list.rsplit_once(":prio:") {
        Some((_, "0")) => 0,
        Some((_, "2")) => 2,
        _ => 1,
    }
}

fn table(caller: &Caller, rows: BTreeMap<String, Row>, figures: Option<&Figures>) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label="Queues" { table {
            thead { tr {
                th { "Queue" } th { "State" } th.right { "High" } th.right { "Normal" } th.right { "Low" } th.right { "Aside" }
                th.right { "Running" } th.right { "Oldest" } th.right { "Workers" } th.right { "Finished" } th.right { "Failed" }
                @if figures.is_some() { th { "Waiting, 2 min" } }
                th { span.hidden { "Changes" } }
            } }
            tbody { @for (name, row) in rows.into_iter().take(MOST) { (line_of(caller, &name, &row, figures)) } }
        } }
    }
}

fn line_of(caller: &Caller, name: &str, row: &Row, figures: Option<&Figures>) -> Markup {
    let (paused, draining) = row
        .settings
        .as_ref()
        .map_or((false, false), |it| (it.paused, it.draining));
    html! {
        tr {
            td { (queue_link(caller, name)) @if row.legacy { " " span.badge.gone title="An old list, which clients of earlier systems use" { "old" } } }
            td { (condition(paused, draining, row.listeners, row.waiting.iter().sum())) }
            @for waiting in row.waiting { td.right { @if waiting == 0 { span.note { "0" } } @else { (number(waiting)) } } }
            td.right { (number(row.aside)) }
            td.right { (number(row.running)) }
            td.right { @if let Some(oldest) = row.oldest_ms { (duration(oldest)) } @else { span.note { "–" } } }
            td.right { (number(row.listeners)) }
            td.right { (number(row.finished)) }
            td.right { @if row.failed > 0 { span.bad { (number(row.failed)) } } @else { span.note { "0" } } }
            @if let Some(figures) = figures {
                @let waiting: Vec<_> = figures.history(name).iter().map(|it| it.waiting as f64).collect();
                td { (line(&waiting, "Waiting jobs in two minutes")) }
            }
            td.buttons { (switch(caller, name, paused || draining)) }
        }
    }
}

/// The state of a queue as a badge.
pub(super) fn condition(paused: bool, draining: bool, listeners: u64, waiting: u64) -> Markup {
    html! {
        @if paused { span.badge.wait { "paused" } }
        @else if draining { span.badge.wait { "draining" } }
        @else if listeners == 0 && waiting > 0 { span.badge.wait title="No worker of Meshwork takes its jobs" { "no worker" } }
        @else { span.badge.good { "open" } }
    }
}

/// The button that pauses or resumes a queue.
pub(super) fn switch(caller: &Caller, queue: &str, is_closed: bool) -> Markup {
    match is_closed {
        true => button(caller, ("queue.resume", "Resume"), &[("queue", queue)]),
        false => button(caller, ("queue.pause", "Pause"), &[("queue", queue)]),
    }
}
