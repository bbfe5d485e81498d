//! The overview: jobs by state, rates, slots, the queues that need a look, next schedules, newest dead letters.

use std::collections::BTreeMap;
use std::sync::Arc;

use maud::{Markup, html};
use meshwork_model::api_key::Scope;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::time::duration;
use serde_json::json;

use crate::api::ApiError;
use crate::ui::caller::Caller;
use crate::ui::figures::{Figures, Sample};
use crate::ui::layout::Page;
use crate::ui::parts::{bar, line, nothing, tile};
use crate::ui::text::{cell, cell_of, number, rough, when};
use crate::ui::views::{JobPage, Schedules, Workers, job_link, queue_link};

/// Greatest number of queues, schedules and dead letters in the lists.
const ROWS: usize = 8;
/// Age of figures from which a page says that the store is away.
const OLD_MS: u64 = 6_000;

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    if caller.context.is_some() {
        return in_context(&caller).await;
    }
    caller.call().outside(Scope::Viewer, "the overview").await?;
    let newest = json!({"state": "dead", "limit": ROWS});
    let (figures, workers, dead, schedules) = tokio::join!(
        caller.figures(),
        caller.workers(),
        caller.read::<JobPage>("job.list", newest),
        caller.read::<Schedules>("schedule.list", json!({})),
    );
    let Some(figures) = figures else {
        let message = "no figures have been read yet";
        return Err(ApiError::new(crate::api::Code::StorageError, message));
    };
    let body = html! {
        h1 { "Overview" }
        (age(&figures))
        section #tiles data-part { (tiles(&caller, &figures, slots(workers))) }
        div.columns {
            section.card #queues data-part { (worst(&caller, &figures)) }
            section.card #dead data-part { (letters(&caller, dead)) }
            section.card #schedules data-part { (next(&caller, schedules)) }
        }
    };
    Ok(Page::new("Overview", "/", body).live("figures"))
}

/// Says that figures are old: the store is away.
pub(super) fn age(figures: &Figures) -> Markup {
    let age = figures.age_ms();
    html! {
        div #age data-part {
            @if age > OLD_MS {
                p.flash.bad role="alert" { "The store does not answer. These figures are " (rough(age)) " old." }
            }
        }
    }
}

/// Sums the slots of all workers: those in use, and all. A worker has a registration for each of its types.
fn slots(workers: Result<Workers, ApiError>) -> (u64, u64) {
    let workers = workers.map(|list| list.workers).unwrap_or_default();
    let own: BTreeMap<_, _> = workers
        .iter()
        .filter_map(|it| Some((it.worker.as_ref()?, it)))
        .collect();
    let used = own.values().filter_map(|it| it.in_flight).sum();
    (used, own.values().filter_map(|it| it.slots).sum())
}

fn tiles(caller: &Caller, figures: &Figures, (busy, slots): (u64, u64)) -> Markup {
    let stats = &figures.stats;
    let totals = figures.totals();
    let rate = figures.rate(&totals);
    let waiting: u64 = stats.queues.iter().map(|queue| queue.waiting).sum();
    let aside: u64 = stats.queues.iter().map(|queue| queue.set_aside).sum();
    let list = |state: &str| caller.url("/jobs", &[("state", state)]);
    let per_second = |rate: f64| format!("{rate:.1}/s");
    html! {
        div.tiles {
            (tile("Waiting", &number(waiting), &html! { @if aside > 0 { (number(aside)) " aside" } @else { "in " (stats.queues.len()) " queues" } }, Some(&caller.url("/queues", &[]))))
            (tile("Running", &number(stats.running), &html! { "leased now" }, Some(&list("running"))))
            (tile("Delayed", &number(stats.delayed), &html! { @if let Some(late) = stats.overdue_ms { "due for " (rough(late)) } @else { "none is due" } }, Some(&list("delayed"))))
            (tile("Ended", &number(stats.ended), &html! { "kept" }, Some(&list("ended"))))
            (tile("Dead letters", &number(stats.dead), &html! { @if stats.dead > 0 { "need a look" } @else { "none" } }, Some(&caller.url("/dead", &[]))))
            (tile("Finished", &per_second(rate.finished), &line(&steps(&totals, |it| it.finished), "Finished jobs in two minutes"), None))
            (tile("Failed", &per_second(rate.failed), &line(&steps(&totals, |it| it.failed), "Failed jobs in two minutes"), None))
            (tile("Slots in use", &format!("{busy} / {slots}"), &bar(busy, slots, "Slots in use"), Some(&caller.url("/workers", &[]))))
        }
    }
}

/// Returns the growth of a count from reading to reading.
pub(super) fn steps(samples: &[Sample], of: impl Fn(&Sample) -> u64) -> Vec<f64> {
    let pairs = samples.windows(2);
    pairs
        .map(|pair| of(&pair[1]).saturating_sub(of(&pair[0])) as f64)
        .collect()
}

/// Lists of a queue together.
#[derive(Debug, Default)]
struct Worst {
    waiting: u64,
    oldest_ms: Option<u64>,
    failed: u64,
    listeners: u64,
}

/// The queues with the oldest jobs and the most failures first.
fn worst(caller: &Caller, figures: &Figures) -> Markup {
    let mut queues: BTreeMap<&str, Worst> = BTreeMap::new();
    for list in &figures.stats.queues {
        let queue = queues
            .entry(JobKeys::without_priority(&list.queue))
            .or_default();
        queue.waiting += list.waiting + list.set_aside;
        queue.oldest_ms = queue.oldest_ms.max(list.oldest_ms);
        queue.failed += list.failed;
        queue.listeners = queue.listeners.max(list.listeners);
    }
    let mut queues: Vec<_> = queues
        .into_iter()
        .filter(|(_, it)| it.waiting > 0 || it.failed > 0)
        .collect();
    queues.sort_by_key(|(_, it)| std::cmp::Reverse((it.oldest_ms, it.failed, it.waiting)));
    html! {
        h2 { "Queues" a.more href=(caller.url("/queues", &[])) { "All queues" } }
        @if queues.is_empty() { (nothing("No job waits", &html! { "Jobs that wait, and queues with failures, are listed here." })) }
        @else {
            div.table tabindex="0" role="region" aria-label="Queues" { table {
                thead { tr { th { "Queue" } th.right { "Waiting" } th.right { "Oldest" } th.right { "Failed" } th { "Waiting, 2 min" } } }
                tbody { @for (name, queue) in queues.iter().take(ROWS) {
                    @let waiting: Vec<_> = figures.history(name).iter().map(|it| it.waiting as f64).collect();
                    tr {
                        td { (queue_link(caller, name)) @if queue.listeners == 0 && queue.waiting > 0 { " " span.badge.wait title="No worker of Meshwork takes its jobs" { "no worker" } } }
                        td.right { (number(queue.waiting)) }
                        td.right { @if let Some(oldest) = queue.oldest_ms { (duration(oldest)) } @else { span.note { "–" } } }
                        td.right { @if queue.failed > 0 { span.bad { (number(queue.failed)) } } @else { span.note { "0" } } }
                        td { (line(&waiting, "Waiting jobs in two minutes")) }
                    }
                } }
            } }
        }
    }
}

fn letters(caller: &Caller, page: Result<JobPage, ApiError>) -> Markup {
    html! {
        h2 { "Newest dead letters" a.more href=(caller.url("/dead", &[])) { "All dead letters" } }
        @match page {
            Err(error) => p.note { (cell(&error.message)) },
            Ok(page) if page.jobs.is_empty() => (nothing("No dead letters", &html! { "Jobs that fail for good are kept here until somebody retries or deletes them." })),
            Ok(page) => ul.rows {
                @for job in page.jobs.iter().take(ROWS) { li {
                    span { (job_link(caller, &job.id)) " " span.note { (cell_of(job.script_type.as_deref().unwrap_or(""), 20)) } }
                    span.bad { (cell_of(job.error.as_deref().unwrap_or(""), 60)) }
                    @if let Some(at) = &job.at { span.note { (when(at, caller.now_ms)) } }
                } }
            },
        }
    }
}

fn next(caller: &Caller, page: Result<Schedules, ApiError>) -> Markup {
    let link = |name: &str| caller.url("/schedules", &[("name", name)]);
    html! {
        h2 { "Next schedules" a.more href=(caller.url("/schedules", &[])) { "All schedules" } }
        @match page {
            Err(error) => p.note { (cell(&error.message)) },
            Ok(page) if page.schedules.is_empty() => (nothing("No schedules", &html! { code { "meshwork schedule add" } " makes one." })),
            Ok(mut page) => {
                @let () = page.schedules.sort_by(|a, b| (a.next_at.is_none(), &a.next_at).cmp(&(b.next_at.is_none(), &b.next_at)));
                ul.rows {
                    @for one in page.schedules.iter().take(ROWS) { li {
                        a href=(link(&one.name)) { (cell_of(&one.name, 32)) }
                        span.mono { (cell_of(one.rhythm.as_deref().unwrap_or("unreadable"), 32)) }
                        @if one.paused { span.badge.wait { "paused" } }
                        @else if let Some(at) = &one.next_at { span.note { (when(at, caller.now_ms)) } }
                    } }
                }
            },
        }
    }
}

/// The overview of a context.
async fn in_context(caller: &Caller) -> Result<Page, ApiError> {
    let queues = caller.queues().await?;
    let waiting: u64 = queues.queues.iter().map(|queue| queue.waiting).sum();
    let running: u64 = queues.queues.iter().map(|queue| queue.running).sum();
    let context = caller.context.unwrap_or_default();
    let list = |state: &str| caller.url("/jobs", &[("state", state)]);
    let body = html! {
        h1 { "Context " (context) }
        div.tiles {
            (tile("Waiting", &number(waiting), &html! { "in " (queues.queues.len()) " queues" }, Some(&caller.url("/queues", &[]))))
            (tile("Running", &number(running), &html! { "leased" }, Some(&list("running"))))
            (tile("Ended", "List", &html! { "the last ended first" }, Some(&list("ended"))))
            (tile("Flows", "List", &html! { "the last submitted first" }, Some(&caller.url("/flows", &[]))))
        }
        p.note { "Counts are at most 30 seconds old." }
    };
    Ok(Page::new(format!("Context {context}"), "/", body))
}
