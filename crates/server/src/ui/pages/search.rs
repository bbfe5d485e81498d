//! Search: the exact id of an object, or the name of a queue, opens at once; another text is looked for in all jobs.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::api::http::life::Life;
use crate::api::{ApiError, Code};
use crate::ui::Shared;
use crate::ui::caller::Caller;
use crate::ui::forms::see_other;
use crate::ui::layout::{Page, failed, in_parts, whole};
use crate::ui::parts::nothing;
use crate::ui::search_text::{STATES, Search, answer, states};
use crate::ui::selection::WAITING;
use crate::ui::text::cell_of;
use crate::ui::views::{Queue, queue_name};

/// Longest text of a search, in bytes.
const LONGEST: usize = 1000;

/// An object with its kind and its page.
type Match = (&'static str, String, String);

/// Opens the only object of this id, or shows the page.
pub(in crate::ui) async fn open(
    State(_): State<Arc<Shared>>,
    caller: Caller,
    request: Request,
) -> Response {
    let life = Life::of(request.extensions(), &caller.call()).await;
    let caller = Arc::new(caller);
    match respond(&caller, life).await {
        Ok(response) => response,
        Err(error) => failed(&caller, error).await,
    }
}

async fn respond(caller: &Arc<Caller>, life: Life) -> Result<Response, ApiError> {
    let text = caller.query("q").unwrap_or_default().trim();
    if text.len() > LONGEST {
        return Err(ApiError::invalid(format!(
            "q: give at most {LONGEST} bytes"
        )));
    }
    let is_text = STATES
        .iter()
        .any(|(state, _)| caller.query(state).is_some());
    // All jobs that wait for other jobs are a list that only a search gives.
    if text.is_empty() && caller.query(WAITING).is_none() {
        let hint = html! { "Give the id of a job, flow, batch or schedule, the name of a queue, or any text of a job." };
        let body = html! { h1 { "Search" } (nothing("Nothing to look for", &hint)) };
        return Ok(whole(caller, &Page::new("Search", "", body))
            .await
            .into_response());
    }
    let matches = match is_text {
        true => Vec::new(),
        false => matches(caller, text).await?,
    };
    if let [(_, _, href)] = &matches[..] {
        return Ok(see_other(href));
    }
    let search = Search::begin(caller, text).await?;
    let page = Page::new("Search", "", body(caller, text, &matches));
    Ok(answer(search, in_parts(caller, &page).await, life))
}

fn body(caller: &Caller, text: &str, matches: &[Match]) -> Markup {
    let chosen = states(caller);
    html! {
        h1 { "Search" }
        @if !matches.is_empty() {
            ul.rows { @for (kind, name, href) in matches { li { span.note { (kind) } a href=(href) { (cell_of(name, 100)) } } } }
        }
        form.filter action=(format!("{}/search", caller.shared.base)) {
            @if let Some(context) = caller.context { input type="hidden" name="context" value=(context); }
            label for="text" { "Text in id, script, input, result or error" }
            input #text name="q" value=(text) spellcheck="false";
            @for (state, label) in STATES {
                label for={"in-" (state)} { (label) }
                input #{"in-" (state)} type="checkbox" name=(state) value="1" checked[chosen.contains(&state)];
            }
            button type="submit" { "Search" }
        }
        div.finds role="log" aria-label="Found jobs" { (crate::ui::layout::MIDDLE) }
    }
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
    if caller.context.is_none() && is_there(caller.read("batch.get", json!({"id": text})).await)? {
        found.push((
            "Batch",
            text.to_owned(),
            caller.url("/batch", &[("id", text)]),
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
    let listed = caller.queues().await?;
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
