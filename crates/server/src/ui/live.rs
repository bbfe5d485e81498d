//! Server-sent events of pages: a page learns that its topic has changed, and reads its parts again; a log comes line by
//! line.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;

use super::Shared;
use super::caller::Caller;
use crate::api::http::life::Life;
use crate::api::http::stream;
use crate::api::live::{Notice, Subscription};
use crate::api::{ApiError, Call, topic};

/// Longest pause between two words to a browser, which also says that the page is still open.
const EVERY: Duration = Duration::from_secs(2);
/// Shortest pause between two steps of a change of many jobs that a page shows.
const BRISK: Duration = Duration::from_millis(300);
/// A page that changed.
const CHANGE: &str = "event: change\ndata: {}\n\n";

/// Streams the changes of a topic: `figures`, or `job:ID`.
pub(super) async fn changes(caller: Caller, request: Request) -> Response {
    match changes_of(&caller).await {
        Ok((changes, call)) => {
            let life = Life::of(request.extensions(), &call).await;
            answer(changes, life, caller.shared)
        }
        Err(error) => (error.code.status(), error.message).into_response(),
    }
}

/// Streams the log of a job.
pub(super) async fn log(caller: Caller, request: Request) -> Response {
    let last = request.headers().get("last-event-id");
    let last = last
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    match lines(&caller, last).await {
        Ok((subscription, call)) => {
            let life = Life::of(request.extensions(), &call).await;
            stream::stream(subscription, life)
        }
        Err(error) => (error.code.status(), error.message).into_response(),
    }
}

async fn lines(caller: &Caller, last: Option<String>) -> Result<(Subscription, Call), ApiError> {
    let id = caller.needed("id")?.to_owned();
    let last = last.as_deref().filter(|text| !text.is_empty());
    let after = last.or_else(|| caller.query("after"));
    let after = after.map(topic::position).transpose()?;
    let call = topic::enter(caller.call(), caller.context, "job.logs").await?;
    let id = call.job_id(&id)?;
    let live = caller.shared.api.live();
    let lines = live.log(&call, id, (after, &caller.holder)).await?;
    Ok((lines, call))
}

/// Source of changes.
enum Changes {
    Figures(watch::Receiver<u64>),
    /// Progress of a change of many jobs.
    Many(watch::Receiver<u64>),
    Events(Box<Subscription>),
}

/// Returns the changes, with a call that has the rights to them.
async fn changes_of(caller: &Caller) -> Result<(Changes, Call), ApiError> {
    let call = topic::enter(caller.call(), caller.context, "subscribe").await?;
    let changes = match caller.query("topic") {
        Some("figures") => Changes::Figures(caller.shared.poller.changes()),
        Some(text) if text.starts_with("many:") => {
            let change = caller.shared.many.get(caller, &text["many:".len()..])?;
            Changes::Many(change.changes())
        }
        Some(text) => {
            let live = caller.shared.api.live();
            let events = topic::subscribe(live, &call, text, (None, &caller.holder));
            Changes::Events(Box::new(events.await?))
        }
        None => return Err(ApiError::invalid("topic: give figures or job:ID")),
    };
    Ok((changes, call))
}

impl Changes {
    /// Waits for the next change; `None` after the last one.
    async fn next(&mut self, shared: &Shared) -> Option<&'static str> {
        match self {
            Self::Figures(readings) => {
                shared.poller.look();
                changed(readings).await
            }
            Self::Many(progress) => {
                tokio::time::sleep(BRISK).await;
                changed(progress).await
            }
            Self::Events(events) => match tokio::time::timeout(EVERY, events.next()).await {
                Ok(Notice::End | Notice::Behind) => None,
                Ok(_) => Some(CHANGE),
                Err(_) => Some(": alive\n\n"),
            },
        }
    }
}

/// Waits for the next of numbers.
async fn changed(numbers: &mut watch::Receiver<u64>) -> Option<&'static str> {
    match tokio::time::timeout(EVERY, numbers.changed()).await {
        Ok(Ok(())) => Some(CHANGE),
        Ok(Err(_)) => None,
        Err(_) => Some(": alive\n\n"),
    }
}

fn answer(changes: Changes, life: Life, shared: Arc<Shared>) -> Response {
    let state = (changes, life, shared, true);
    let parts =
        futures_util::stream::unfold(state, |(mut changes, life, shared, first)| async move {
            let text = match first {
                // Tells the browser at once that it is subscribed.
                true => Some(": subscribed\n\n"),
                false => tokio::select! {
                    _ = life.end() => None,
                    text = changes.next(&shared) => text,
                },
            };
            let text = Bytes::from_static(text?.as_bytes());
            Some((Ok::<_, Infallible>(text), (changes, life, shared, false)))
        });
    (stream::headers(), Body::from_stream(parts)).into_response()
}
