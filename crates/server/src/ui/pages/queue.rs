//! One queue: its jobs, rates, limits, and the buttons that change it.

use std::sync::Arc;

use maud::{Markup, html};
use serde_json::json;

use super::history;
use super::overview::{age, steps};
use super::queue_parts;
use super::queues::{condition, switch};
use crate::api::ApiError;
use crate::ui::caller::Caller;
use crate::ui::figures::Figures;
use crate::ui::layout::Page;
use crate::ui::parts::{button, confirmed, is_in_context, line, nothing, tile};
use crate::ui::text::{cell_of, number, rough};
use crate::ui::views::{JobPage, Queue, job_table, pager, queue_name};
use meshwork_model::time::duration;

/// Jobs of a page.
const ROWS: usize = 50;

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let given = caller.needed("queue")?;
    let queue: Queue = caller
        .read_here("queue.get", json!({"queue": given}))
        .await?;
    let mut params = json!({"state": "queued", "queue": queue.queue, "limit": ROWS});
    if let Some(cursor) = caller.query("cursor") {
        params["cursor"] = cursor.into();
    }
    let jobs: JobPage = caller.read_here("job.list", params).await?;
    let figures = match caller.context {
        None => caller.figures().await,
        Some(_) => None,
    };
    let name = queue_name(&caller, &queue.queue);
    let listeners = figures
        .as_deref()
        .and_then(|it| it.queue(&queue.queue))
        .map_or(1, |it| it.listeners);
    let body = html! {
        header.head {
            h1 { (cell_of(name, 100)) }
            (condition(queue.paused, queue.draining, listeners, queue.waiting))
            div.buttons { (buttons(&caller, &queue)) }
        }
        @if let Some(figures) = &figures { (age(figures)) }
        section #tiles data-part { (tiles(&caller, &queue, figures.as_deref())) }
        section.card #jobs data-part {
            h2 { "Waiting jobs" span.note { "in the order of claims" } }
            @if jobs.jobs.is_empty() { (nothing("No job waits here", &html! { "Delayed jobs, and those that wait for a slot of their key, are not in the list." })) }
            @else { (job_table(&caller, &jobs.jobs, "")) }
            (pager(&caller, jobs.next.as_deref(), jobs.jobs.len()))
        }
        (queue_parts::card(&caller, name).await)
        (history::card(&caller, &queue).await?)
        section.card { h2 { "Limits" } (limits(&caller, &queue)) }
    };
    let page = Page::new(name, "/queues", body);
    Ok(if figures.is_some() {
        page.live("figures")
    } else {
        page
    })
}

fn buttons(caller: &Caller, queue: &Queue) -> Markup {
    let name = queue.queue.as_str();
    let count = number(queue.waiting);
    html! {
        (switch(caller, name, queue.paused || queue.draining))
        @if !queue.draining { (button(caller, ("queue.drain", "Drain"), &[("queue", name)])) }
        (confirmed(caller, ("queue.purge", "Purge…"), &[("queue", name), ("count", &count)]))
    }
}

fn tiles(caller: &Caller, queue: &Queue, figures: Option<&Figures>) -> Markup {
    let list = |state: &str| caller.url("/jobs", &[("state", state), ("queue", &queue.queue)]);
    let of = figures.and_then(|figures| figures.queue(&queue.queue));
    html! {
        div.tiles {
            (tile("Waiting", &number(queue.waiting), &html! { @if let Some(oldest) = of.and_then(|it| it.oldest_ms) { "oldest " (duration(oldest)) } @else { "all priorities" } }, None))
            (tile("Aside", &number(queue.set_aside), &html! { "wait for a slot of their key" }, None))
            (tile("Running", &number(queue.running), &html! { "leased" }, Some(&list("running"))))
            (tile("Delayed", &number(queue.delayed + queue.retrying), &html! { (number(queue.retrying)) " wait for a retry" }, Some(&list("delayed"))))
            @if let Some((figures, of)) = figures.zip(of) {
                @let history = figures.history(&queue.queue);
                @let rate = figures.rate(&history);
                (tile("Finished", &format!("{:.1}/s", rate.finished), &line(&steps(&history, |it| it.finished), "Finished jobs in two minutes"), None))
                (tile("Failed", &format!("{:.1}/s", rate.failed), &line(&steps(&history, |it| it.failed), "Failed jobs in two minutes"), None))
                (tile("All time", &number(of.finished), &html! { (number(of.failed)) " failed, " (number(of.retried)) " retried" }, Some(&list("ended"))))
            }
        }
        p.note { "Counts of jobs that are in no list of the queue are " (rough(queue.age_ms)) " old" @if queue.partial { ", and of the first 2,000 running and delayed jobs of all queues" } "." }
    }
}

/// The limits, in a form for callers who may change them.
fn limits(caller: &Caller, queue: &Queue) -> Markup {
    let may = caller.may("queue.limit");
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let rows = [
        (
            "length",
            "Jobs that may wait",
            number(queue.limit),
            "no limit",
        ),
        (
            "concurrency",
            "Jobs that run at once",
            number(queue.concurrency),
            "no limit",
        ),
        (
            "rate",
            "Rate of starts",
            queue.rate.clone(),
            "no limit, or as 10/1m",
        ),
        (
            "key_concurrency",
            "Jobs of one key that run at once",
            number(queue.key_concurrency),
            "no limit",
        ),
        (
            "key_rate",
            "Rate of starts of one key",
            queue.key_rate.clone(),
            "no limit",
        ),
        (
            "payload",
            "Size of a job in bytes",
            number(queue.payload),
            "no limit",
        ),
    ];
    html! {
        @if may {
            form.grid method="post" action=(format!("{}/do/queue.limit", caller.shared.base)) {
                input type="hidden" name="queue" value=(queue.queue);
                input type="hidden" name="back" value=(caller.here());
                @if let Some(context) = caller.context.filter(|_| is_in_context("queue.limit")) { input type="hidden" name="context" value=(context); }
                @for (name, label, value, empty) in rows {
                    label for={"limit-" (name)} { (label) }
                    input #{"limit-" (name)} name=(name) value=[value] placeholder=(empty);
                }
                span {} button type="submit" { "Set limits" }
                span {} span.note { "An empty field removes a limit." }
            }
        } @else {
            dl.grid { @for (_, label, value, empty) in rows { dt { (label) } dd { (cell_of(value.as_deref().unwrap_or(empty), 40)) } } }
        }
        p.note {
            "Keys " @if queue.fair { "take turns" } @else { "do not take turns" }
            ". Sandbox: " (cell_of(queue.sandbox.as_deref().unwrap_or("that of the worker"), 20)) "."
        }
    }
}
