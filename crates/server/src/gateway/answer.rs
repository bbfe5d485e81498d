//! Handling of one request: parses it, calls the service, and writes the response.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request as HttpRequest, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use meshwork::protocol::nooble::{Error as ActionError, Ids, Request};
use meshwork_model::nooble::{Data, Response as Answer, uuid};
use meshwork_model::trace::TraceContext;

use super::Shared;
use super::failure::{Failure, headers};
use crate::http::guard::{ClientAddress, Holder, Permit, check_coding};

/// The longest type of an action, in bytes.
const MAX_TYPE: usize = 256;
const TRACEPARENT: &str = "traceparent";

/// `POST /actions/{service}/{type}`.
pub(super) async fn act(
    State(shared): State<Arc<Shared>>,
    Extension(permit): Extension<Arc<Permit>>,
    Extension(ClientAddress(client)): Extension<ClientAddress>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: HttpRequest,
) -> Result<Response, Failure> {
    let Path((service, rest)) = path.map_err(|_| bad_path())?;
    let holder = Holder::Address(client);
    call(&shared, (&permit, &holder), (&service, &rest), request).await
}

/// Answers a path that does not exist.
pub(super) async fn nowhere() -> Failure {
    let message = "there is nothing; actions are at /actions/SERVICE/TYPE";
    Failure::new(StatusCode::NOT_FOUND, "NO_SUCH_PATH", message)
}

/// Answers a wrong method for an existing path.
pub(super) async fn not_so() -> Failure {
    let message = "method not allowed: use POST for actions, GET for /healthz and /readyz";
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
    shared.readiness.answer(shared.client.broker().ping()).await
}

async fn call(
    shared: &Shared,
    (permit, holder): (&Arc<Permit>, &Holder),
    (service, rest): (&str, &str),
    request: HttpRequest,
) -> Result<Response, Failure> {
    let head = request.headers();
    check_content_type(head)?;
    let action_type = action_type(service, rest)?;
    let (ids, trace) = (ids(head)?, trace(head));
    check_service(shared, service).await?;
    // A slow body uses no slot, and does not protect its connection from eviction.
    let body = shared.bodies.read(request.into_body(), holder).await;
    let body = body.map_err(Failure::refused)?;
    let _busy = permit.busy();
    let full = "too many concurrent requests: try again";
    let full = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "BUSY", full);
    let _slot = shared.slots.try_acquire().map_err(|_| full)?;
    let data = data(body.bytes())?;
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

/// Calls the service. The time for sending counts towards the wait, since a stalled store may exceed it.
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

/// Refuses a service that may not be called.
async fn check_service(shared: &Shared, service: &str) -> Result<(), Failure> {
    let known = shared.services.is_known(shared.client.broker(), service);
    match tokio::time::timeout(shared.wait, known).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => {
            let message = "this gateway knows no service of this name: start the service, or name it with --service";
            let status = StatusCode::NOT_FOUND;
            Err(Failure::new(status, "UNKNOWN_SERVICE", message))
        }
        Ok(Err(error)) => Err(Failure::of(&error.into())),
        Err(_) => {
            let message = "the store does not answer whether this service is known: ask again";
            let status = StatusCode::SERVICE_UNAVAILABLE;
            Err(Failure::new(status, "NO_STORE", message))
        }
    }
}

/// Refuses a body that is not declared to be JSON.
fn check_content_type(head: &HeaderMap) -> Result<(), Failure> {
    check_coding(head).map_err(Failure::refused)?;
    // A page in a browser can send other types without a preflight request.
    let kind = head.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|it| it.split(';').next()).unwrap_or_default();
    if !kind.trim().eq_ignore_ascii_case("application/json") {
        let message = "send content-type: application/json";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Failure::new(status, "NO_JSON", message));
    }
    Ok(())
}

/// Joins service and path: `embedding` and `batch/generate` are `embedding.batch.generate`.
fn action_type(service: &str, rest: &str) -> Result<String, Failure> {
    let joined = format!("{service}.{}", rest.replace('/', "."));
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let sound = !service.contains('.')
        && joined.split('.').all(|part| !part.is_empty())
        && joined.chars().all(fits)
        && joined.len() <= MAX_TYPE;
    sound.then_some(joined).ok_or_else(bad_path)
}

/// Reads the ids of the client; missing ones are generated.
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

/// Reads the trace of the client. An invalid one is ignored, as W3C requires.
fn trace(head: &HeaderMap) -> Option<TraceContext> {
    let parent = head.get(TRACEPARENT)?.to_str().ok()?;
    TraceContext::parse(parent, None).ok()
}

fn data(body: &[u8]) -> Result<Data, Failure> {
    let bad = |message: &str| Failure::new(StatusCode::BAD_REQUEST, "BAD_BODY", message);
    let text = std::str::from_utf8(body).map_err(|_| bad("the body is not UTF-8"))?;
    Data::parse(text).map_err(|error| bad(&error.to_string()))
}
