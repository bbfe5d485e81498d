//! One request: what it asks for, and what it is answered.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, Path, Request as HttpRequest, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use meshwork::model::nooble::{Data, Response as Answer, uuid};
use meshwork::model::trace::TraceContext;
use meshwork::source::nooble::{Error as ActionError, Ids, Request};

use super::failure::{Failure, headers};
use super::{Shared, digest};

/// How long a client may take over the body of a request.
const BODY_WITHIN: Duration = Duration::from_secs(10);
/// The longest type of an action, in bytes.
const MAX_TYPE: usize = 256;
const TRACEPARENT: &str = "traceparent";

/// `POST /actions/{service}/{type}`.
pub(super) async fn act(
    State(shared): State<Arc<Shared>>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: HttpRequest,
) -> Result<Response, Failure> {
    let Path((service, rest)) = path.map_err(|_| bad_path())?;
    call(&shared, &service, &rest, request).await
}

/// A path that is none of ours.
pub(super) async fn nowhere() -> Failure {
    let message = "there is nothing; actions are at /actions/SERVICE/TYPE";
    Failure::new(StatusCode::NOT_FOUND, "NO_SUCH_PATH", message)
}

/// A path of ours with a method that it has not.
pub(super) async fn not_so() -> Failure {
    let message = "actions are asked for with POST, /healthz and /readyz with GET";
    Failure::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "METHOD_NOT_ALLOWED",
        message,
    )
}

fn bad_path() -> Failure {
    let message = "a path is /actions/SERVICE/TYPE, of letters, digits, _ and -, and dots or slashes in the type";
    Failure::new(StatusCode::BAD_REQUEST, "BAD_PATH", message)
}

/// `GET /readyz`.
pub(super) async fn readiness(State(shared): State<Arc<Shared>>) -> (StatusCode, &'static str) {
    match shared.client.broker().ping().await {
        Ok(()) => (StatusCode::OK, "ready\n"),
        Err(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the store does not answer\n",
        ),
    }
}

async fn call(
    shared: &Shared,
    service: &str,
    rest: &str,
    asked: HttpRequest,
) -> Result<Response, Failure> {
    let head = asked.headers();
    admit(shared, service, head)?;
    let action_type = action_type(service, rest)?;
    let (ids, trace) = (ids(head)?, trace(head));
    let full = "as many requests as it takes are under way: ask again";
    let full = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "BUSY", full);
    let _slot = shared.slots.try_acquire().map_err(|_| full)?;
    let data = data(&read(asked).await?)?;
    let mut request = Request::with_data(&action_type, data).ids(ids);
    if let Some(trace) = trace {
        request = request.trace(&trace);
    }
    let traceparent = request.traceparent();
    let answered = answered(shared, request, &action_type).await;
    let mut response = match answered {
        Ok(answer) => match answer.error {
            None => {
                let data = answer.data.unwrap_or_else(Data::empty);
                (headers(), Body::from(data.text().to_owned())).into_response()
            }
            Some(error) => Failure::said(error).into_response(),
        },
        Err(error) => Failure::of(&error).into_response(),
    };
    if let Some(value) = traceparent.and_then(|it| HeaderValue::from_str(&it).ok()) {
        response.headers_mut().insert(TRACEPARENT, value);
    }
    Ok(response)
}

/// What the service says. Sending counts too: a store that stands still may take longer over it than the client waits.
async fn answered(
    shared: &Shared,
    request: Request,
    action_type: &str,
) -> Result<Answer, ActionError> {
    let action_id = request.action_id().to_owned();
    let call = shared.client.call(request, shared.wait);
    tokio::time::timeout(shared.wait, call)
        .await
        .unwrap_or_else(|_| {
            Err(ActionError::NoAnswer {
                action_type: action_type.to_owned(),
                action_id,
                waited: shared.wait,
            })
        })
}

/// Whether the client may, and the service is one that may be called.
fn admit(shared: &Shared, service: &str, head: &HeaderMap) -> Result<(), Failure> {
    if let Some(token) = &shared.token {
        let given = head.get(AUTHORIZATION).and_then(|it| it.to_str().ok());
        let given = given.and_then(|it| it.split_once(' '));
        let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        if given.is_none_or(|(_, given)| digest(given.trim()) != *token) {
            let message = "give the gateway's token: authorization: Bearer …";
            return Err(Failure::new(StatusCode::UNAUTHORIZED, "NO_TOKEN", message));
        }
    }
    if !shared.services.is_empty() && !shared.services.contains(service) {
        let message = "this gateway calls no service of that name";
        return Err(Failure::new(
            StatusCode::NOT_FOUND,
            "UNKNOWN_SERVICE",
            message,
        ));
    }
    // A page in a browser can send anything else without asking.
    let kind = head.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|it| it.split(';').next()).unwrap_or_default();
    if !kind.trim().eq_ignore_ascii_case("application/json") {
        let message = "send content-type: application/json";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Failure::new(status, "NO_JSON", message));
    }
    Ok(())
}

/// `embedding` and `batch/generate` are `embedding.batch.generate`.
fn action_type(service: &str, rest: &str) -> Result<String, Failure> {
    let joined = format!("{service}.{}", rest.replace('/', "."));
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let sound = !service.contains('.')
        && joined.split('.').all(|part| !part.is_empty())
        && joined.chars().all(fits)
        && joined.len() <= MAX_TYPE;
    sound.then_some(joined).ok_or_else(bad_path)
}

/// The ids that the client gives; the others are new.
fn ids(head: &HeaderMap) -> Result<Ids, Failure> {
    let given = |name: &str| match head.get(name) {
        None => Ok(None),
        Some(value) => {
            let message = format!("the header {name} is no UUID");
            let bad = || Failure::new(StatusCode::BAD_REQUEST, "BAD_ID", &message);
            let id = value.to_str().ok().and_then(uuid).ok_or_else(bad)?;
            Ok(Some(id))
        }
    };
    let mut ids = Ids::default();
    for (name, id) in [
        ("x-tenant-id", &mut ids.tenant_id),
        ("x-session-id", &mut ids.session_id),
        ("x-task-id", &mut ids.task_id),
        ("x-agent-id", &mut ids.agent_id),
    ] {
        if let Some(given) = given(name)? {
            *id = given;
        }
    }
    ids.user_id = given("x-user-id")?;
    Ok(ids)
}

/// The trace that the client is in. One that is not valid is none, as W3C has it.
fn trace(head: &HeaderMap) -> Option<TraceContext> {
    let parent = head.get(TRACEPARENT)?.to_str().ok()?;
    TraceContext::parse(parent, None).ok()
}

async fn read(asked: HttpRequest) -> Result<Bytes, Failure> {
    let late = "the body did not come in time";
    let late = Failure::new(StatusCode::REQUEST_TIMEOUT, "SLOW_BODY", late);
    let read = tokio::time::timeout(BODY_WITHIN, Bytes::from_request(asked, &()));
    read.await
        .map_err(|_| late)?
        .map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                let message = "the body is longer than the gateway takes (--max-body)";
                Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE", message)
            }
            _ => Failure::new(StatusCode::BAD_REQUEST, "BAD_BODY", "the body broke off"),
        })
}

fn data(body: &[u8]) -> Result<Data, Failure> {
    let bad = |message: &str| Failure::new(StatusCode::BAD_REQUEST, "BAD_BODY", message);
    let text = std::str::from_utf8(body).map_err(|_| bad("the body is not UTF-8"))?;
    Data::parse(text).map_err(|error| bad(&error.to_string()))
}
