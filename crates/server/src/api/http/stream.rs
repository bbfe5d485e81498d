//! Server-sent events: the events of jobs, and the log of a job while it runs.

use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, Request, State};
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use meshwork_model::keys::context::{ContextId, ContextKeys};
use serde_json::json;
use tokio::sync::mpsc;

use super::life::Life;
use super::problem::Problem;
use super::{Shared, query};
use crate::api::access::Access;
use crate::api::error::ApiError;
use crate::api::holder::holder;
use crate::api::live::{Notice, Position, Subscription, Topic};
use crate::api::topic;

/// Pause after which a comment shows that the connection is alive: proxies close idle ones after 30 s or more.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Chunks between subscription and connection.
const CHUNKS: usize = 16;
/// Name of the events in refusals.
const EVENTS: &str = "/v1/events";

/// Streams events: `GET /v1/events`.
pub(super) async fn events(
    State(shared): State<Arc<Shared>>,
    RawQuery(text): RawQuery,
    request: Request,
) -> Result<Response, Problem> {
    let access = request.extensions().get::<Access>().cloned();
    let call = shared.call(access.map(Extension));
    let (mut topic, mut from, mut context) = (None, None, None);
    for (name, value) in query::pairs(text.as_deref().unwrap_or_default())? {
        let is_first = match name.as_str() {
            "job" | "queue" | "flow" => topic.replace((name.clone(), value)).is_none(),
            "from" => from.replace(topic::position(&value)?).is_none(),
            "context" => context.replace(topic::context(&value)?).is_none(),
            _ => {
                let message = format!("{name}: give job, queue or flow, and context and from");
                return Err(ApiError::invalid(message).into());
            }
        };
        if !is_first {
            let message =
                format!("{name}: give one of job, queue and flow, once, and context and from once");
            return Err(ApiError::invalid(message).into());
        }
    }
    let call = topic::enter(call, context, EVENTS).await?;
    let from = last_id(request.headers())?.or(from);
    let topic = match topic {
        Some((kind, value)) => topic::of(&call, &kind, &value)?,
        None => Topic::All,
    };
    let holder = holder(request.extensions());
    let events = shared.live.events(&call, topic, (from, &holder));
    let subscription = events.await?;
    Ok(stream(
        subscription,
        Life::of(request.extensions(), &call).await,
    ))
}

/// Streams the log of a job, for a caller that may read it.
pub(super) async fn log(
    shared: &Shared,
    id: String,
    (after, context): (Option<&str>, Option<u32>),
    head: &Parts,
) -> Result<Response, Problem> {
    let access = head.extensions.get::<Access>().cloned();
    let call = shared.call(access.map(Extension));
    let after = after.map(topic::position).transpose()?;
    let after = last_id(&head.headers)?.or(after);
    let context = context.or_else(|| ContextKeys::named_in(&id).map(ContextId::get));
    let call = topic::enter(call, context, "job.logs").await?;
    let id = call.job_id(&id).map_err(ApiError::from)?;
    let holder = holder(&head.extensions);
    let log = shared.live.log(&call, id, (after, &holder));
    let subscription = log.await?;
    Ok(stream(
        subscription,
        Life::of(&head.extensions, &call).await,
    ))
}

/// The id of the last event that a client has seen: browsers send it when they connect again.
fn last_id(head: &HeaderMap) -> Result<Option<Position>, ApiError> {
    let Some(value) = head.get("last-event-id") else {
        return Ok(None);
    };
    match value.to_str() {
        Ok("") => Ok(None),
        Ok(text) => topic::position(text).map(Some),
        Err(_) => Err(ApiError::invalid("Last-Event-ID: give the id of an event")),
    }
}

/// The part of a response.
enum Part {
    More(String),
    Last(String),
}

/// Streams a subscription.
pub(crate) fn stream(subscription: Subscription, life: Life) -> Response {
    let (sender, parts) = mpsc::channel(CHUNKS);
    tokio::spawn(pump(subscription, life, sender));
    let parts = futures_util::stream::unfold(Some(parts), |parts| async {
        let mut parts = parts?;
        let (text, rest) = match parts.recv().await? {
            Part::More(text) => (text, Some(parts)),
            Part::Last(text) => (text, None),
        };
        Some((Ok::<_, Infallible>(Bytes::from(text)), rest))
    });
    (headers(), Body::from_stream(parts)).into_response()
}

/// Headers of a stream of events.
pub(crate) fn headers() -> [(HeaderName, &'static str); 4] {
    [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        // The end of the stream is the end of the connection, which may be cut.
        (CONNECTION, "close"),
        // nginx collects what is not marked so, and passes it on later.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ]
}

/// Moves notices to the response, until either side ends.
async fn pump(mut subscription: Subscription, life: Life, sender: mpsc::Sender<Part>) {
    let behind = subscription.behind();
    let end = life.end();
    tokio::pin!(end);
    // Tells the client at once that it is subscribed.
    let mut text = ": subscribed\n\n".to_owned();
    let mut sent_to = subscription.last();
    let last = loop {
        tokio::select! {
            biased;
            sent = sender.send(Part::More(text)) => if sent.is_err() { return },
            () = behind.cancelled() => break closed(sent_to, "behind"),
            reason = &mut end => break closed(sent_to, reason.as_str()),
        }
        sent_to = subscription.last();
        let notice = tokio::select! {
            biased;
            reason = &mut end => break closed(sent_to, reason.as_str()),
            () = sender.closed() => return,
            notice = tokio::time::timeout(KEEP_ALIVE, subscription.next()) => notice,
        };
        text = match notice {
            Err(_) => ": alive\n\n".to_owned(),
            Ok(Notice::Item(item)) => {
                let (at, kind, json) = (item.at, subscription.kind(), item.json.get());
                format!("id: {at}\nevent: {kind}\ndata: {json}\n\n")
            }
            Ok(Notice::Gap) => "event: gap\ndata: {}\n\n".to_owned(),
            Ok(Notice::End) => break "event: end\ndata: {}\n\n".to_owned(),
            Ok(Notice::Behind) => break closed(sent_to, "behind"),
        };
    };
    drop(subscription);
    // A client that reads nothing has no room for it.
    let sent = tokio::time::timeout(super::life::LAST_WORDS, sender.send(Part::Last(last)));
    let _ = sent.await;
    drop(sender);
    life.cut().await;
}

/// The last words to a client that may connect again.
fn closed(last: Position, reason: &str) -> String {
    let last = last.to_string();
    let mut text = String::new();
    // A string takes all that is written.
    let _ = write!(
        text,
        "event: closed\ndata: {}\n\n",
        json!({"reason": reason, "last": last})
    );
    text
}
