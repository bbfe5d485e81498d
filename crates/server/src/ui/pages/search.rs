//! Search by exact id, or by the name of a queue: a single match opens at once.

use std::sync::Arc;

use maud::{Markup, html};
use serde_json::{Value, json};

use super::views::{Queue, Queues, queue_name};
use crate::api::{ApiError, Code};
use crate::ui::caller::Caller;
use crate::ui::layout::Page;
use crate::ui::parts::nothing;
use crate::ui::text::cell_of;

/// An object with its kind and its page.
type Match = (&'static str, String, String);

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let text = caller.query("q").unwrap_or_default().trim();
    let matches = match text {
        "" => Vec::new(),
        text => matches(&caller, text).await?,
    };
    if let [(_, _, href)] = &matches[..] {
        return Ok(Page::new("Search", "", html! {}).leads_to(href));
    }
    let body = html! {
        h1 { "Search" }
        @if text.is_empty() { (nothing("Nothing to look for", &html! { "Give the id of a job, flow or schedule, or the name of a queue." })) }
        @else if matches.is_empty() { (nothing("Nothing has this id", &none(text))) }
        @else { ul.rows { @for (kind, name, href) in &matches { li { span.note { (kind) } a href=(href) { (cell_of(name, 100)) } } } } }
    };
    Ok(Page::new("Search", "", body))
}

fn none(text: &str) -> Markup {
    html! { (cell_of(text, 100)) " is no id of a job, flow or schedule, and no name of a queue." }
}

async fn matches(caller: &Caller, text: &str) -> Result<Vec<Match>, ApiError> {
    let mut found = Vec::new();
    if is_there(caller.read_here("job.get", json!({"id": text})).await)? {
        found.push(("Job", text.to_owned(), caller.url("/job", &[("id", text)])));
    }
    if is_there(caller.read("schedule.get", json!({"name": text})).await)? {
        found.push((
            "Schedule",
            text.to_owned(),
            caller.url("/schedules", &[("name", text)]),
        ));
    }
    if let Ok(id) = text.parse::<u32>()
        && is_there(caller.read_here("flow.get", json!({"id": id})).await)?
    {
        found.push((
            "Flow",
            text.to_owned(),
            caller.url("/flow", &[("id", text)]),
        ));
    }
    found.extend(queue(caller, text).await?);
    Ok(found)
}

/// Finds a queue that has jobs, workers or settings.
async fn queue(caller: &Caller, text: &str) -> Result<Option<Match>, ApiError> {
    let read: Result<Queue, _> = caller.read_here("queue.get", json!({"queue": text})).await;
    let queue = match read {
        Ok(queue) => queue,
        Err(error) if is_none(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let listed: Queues = caller.read_here("queue.list", json!({})).await?;
    let is_listed = listed.queues.iter().any(|it| it.queue == queue.queue);
    let is_used = is_listed || queue.waiting + queue.running + queue.delayed > 0;
    let name = queue_name(caller, &queue.queue).to_owned();
    let href = caller.url("/queue", &[("queue", &queue.queue)]);
    Ok(is_used.then_some(("Queue", name, href)))
}

/// Returns false for an object that does not exist, or that the caller may not read.
fn is_there(read: Result<Value, ApiError>) -> Result<bool, ApiError> {
    match read {
        Ok(_) => Ok(true),
        Err(error) if is_none(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_none(error: &ApiError) -> bool {
    matches!(
        error.code,
        Code::NotFound | Code::InvalidParams | Code::Forbidden
    )
}
