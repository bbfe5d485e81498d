//! JSON-RPC 2.0 over HTTP: single requests and batches.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request as HttpRequest, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response as HttpResponse};
use futures_util::StreamExt;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::problem::Problem;
use super::{Shared, json, rest};
use crate::api::access::{Access, Secrets};
use crate::api::error::{ApiError, Code};
use crate::api::find;
use crate::api::hero::{self, Session};
use crate::api::method::Params;
use crate::http::guard::Permit;

/// Greatest number of requests of a batch.
const MAX_BATCH: usize = 100;
/// Requests of a batch that run at once.
const AT_ONCE: usize = 8;

/// A request.
#[derive(Debug, Deserialize)]
struct Request {
    jsonrpc: String,
    method: String,
    params: Option<Box<RawValue>>,
    /// `None` for a notification; JSON's null is an id.
    #[serde(default, deserialize_with = "some")]
    id: Option<Box<RawValue>>,
}

fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// A response.
#[derive(Debug, Serialize)]
struct Response {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
    id: Option<Box<RawValue>>,
}

#[derive(Debug, Serialize)]
struct ErrorObject {
    code: i32,
    message: String,
    data: ErrorData,
}

#[derive(Debug, Serialize)]
struct ErrorData {
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

impl Response {
    fn new(answer: Result<Box<RawValue>, ApiError>, id: Option<Box<RawValue>>) -> Self {
        let (result, error) = match answer {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error.into())),
        };
        Self {
            jsonrpc: "2.0",
            result,
            error,
            id,
        }
    }
}

impl From<ApiError> for ErrorObject {
    fn from(error: ApiError) -> Self {
        Self {
            code: error.code.rpc(),
            message: error.message,
            data: ErrorData {
                code: error.code.as_str(),
                hint: error.hint,
            },
        }
    }
}

/// Answers a request or a batch.
pub(super) async fn call(
    State(shared): State<Arc<Shared>>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let access = request.extensions().get::<Access>().cloned();
    let secrets = request.extensions().get::<Secrets>().cloned();
    let session = Session::new(secrets.map(|Secrets(keys, peer)| (keys, peer)));
    let permit = request.extensions().get::<Arc<Permit>>().cloned();
    rest::check_content_type(request.headers())?;
    let received = shared.bodies.read(request.into_body()).await;
    let received = received.map_err(|refusal| Problem::refused(&refusal))?;
    let _busy = permit.as_ref().map(Permit::busy);
    let full = || {
        ApiError::new(
            Code::TooManyRequests,
            "too many requests at once: ask again",
        )
    };
    let _slot = shared.slots.try_acquire().map_err(|_| full())?;
    let text = answer(&shared, (access.as_ref(), &session), received.bytes()).await;
    Ok(match text {
        Some(text) => json(StatusCode::OK, text),
        None => (StatusCode::NO_CONTENT, Body::empty()).into_response(),
    })
}

/// Answers a text; `None` if it has notifications only.
async fn answer(
    shared: &Shared,
    caller: (Option<&Access>, &Session),
    text: &[u8],
) -> Option<String> {
    let write = |response: &Response| serde_json::to_string(response).unwrap_or_default();
    let failed = |error: ApiError| Some(write(&Response::new(Err(error), None)));
    if text.trim_ascii_start().first() != Some(&b'[') {
        return match serde_json::from_slice::<Box<RawValue>>(text) {
            Ok(request) => one(shared, caller, &request).await.as_ref().map(write),
            Err(error) => failed(no_json(&error)),
        };
    }
    let requests = match serde_json::from_slice::<Vec<Box<RawValue>>>(text) {
        Ok(requests) => requests,
        Err(error) => return failed(no_json(&error)),
    };
    if requests.is_empty() || requests.len() > MAX_BATCH {
        let message = format!("a batch has 1 to {MAX_BATCH} requests");
        return failed(ApiError::new(Code::InvalidRequest, message));
    }
    let answers: Vec<_> = requests
        .iter()
        .map(|request| one(shared, caller, request))
        .collect();
    let answers = futures_util::stream::iter(answers).buffered(AT_ONCE);
    let answers: Vec<_> = answers.filter_map(std::future::ready).collect().await;
    let is_silent = answers.is_empty();
    (!is_silent).then(|| serde_json::to_string(&answers).unwrap_or_default())
}

fn no_json(error: &serde_json::Error) -> ApiError {
    ApiError::new(Code::ParseError, format!("the request is no JSON: {error}"))
}

/// Answers one request; `None` for a notification.
async fn one(
    shared: &Shared,
    caller: (Option<&Access>, &Session),
    text: &RawValue,
) -> Option<Response> {
    let request: Request = match serde_json::from_str(text.get()) {
        Ok(request) => request,
        Err(_) => return Some(Response::new(Err(no_request()), None)),
    };
    let id = request.id;
    let is_id = id.as_ref().is_none_or(|id| is_id(id));
    if request.jsonrpc != "2.0" || !is_id {
        return Some(Response::new(Err(no_request()), id.filter(|_| is_id)));
    }
    let answer = run(shared, caller, &request.method, request.params.as_deref()).await;
    id.map(|id| Response::new(answer, Some(id)))
}

fn no_request() -> ApiError {
    let message = "this is no request: send jsonrpc \"2.0\", method, params by name, and an id";
    ApiError::new(Code::InvalidRequest, message)
}

fn is_id(id: &RawValue) -> bool {
    let text = id.get();
    text == "null" || text.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit())
}

async fn run(
    shared: &Shared,
    (access, session): (Option<&Access>, &Session),
    method: &str,
    params: Option<&RawValue>,
) -> Result<Box<RawValue>, ApiError> {
    let call = shared.call(access.cloned().map(Extension));
    if let Some(answer) = hero::run(call, session, method, params).await {
        return answer;
    }
    let Some(method) = find(method) else {
        let shown: String = method.chars().take(64).collect();
        let message = format!("there is no method {shown:?}");
        let hint = "rpc.discover lists the methods";
        return Err(ApiError::new(Code::MethodNotFound, message).hint(hint));
    };
    let params = match params.map(RawValue::get) {
        None => Params::new(),
        Some(text) => named(text)?,
    };
    let call = shared.call(access.cloned().map(Extension));
    method.call(call, params).await
}

/// Reads parameters by name. Some clients put the object into a list.
fn named(text: &str) -> Result<Params, ApiError> {
    let wrong = || ApiError::invalid("params: give an object, the parameters by name");
    if !text.starts_with('[') {
        return serde_json::from_str(text).map_err(|_| wrong());
    }
    let mut list: Vec<Params> = serde_json::from_str(text).map_err(|_| wrong())?;
    match list.len() {
        0 => Ok(Params::new()),
        1 => Ok(list.remove(0)),
        _ => Err(wrong()),
    }
}
