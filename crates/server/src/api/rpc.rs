//! JSON-RPC 2.0 over any transport: decodes requests and batches, and writes the responses.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::{ApiError, Code};
use super::method::Params;

/// Greatest number of requests of a batch.
const MAX_BATCH: usize = 100;
/// Requests of a batch that run at once.
const AT_ONCE: usize = 8;

/// Runs the requests of a transport.
pub(crate) trait Handler: Sync {
    /// Runs one method.
    fn run<'a>(
        &'a self,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, Failure>>;

    /// Returns the answer to a request, also to one of a batch; `None` if its client cancelled it.
    fn unless_cancelled<'a>(
        &'a self,
        _id: &'a RawValue,
        run: BoxFuture<'a, Result<Box<RawValue>, Failure>>,
    ) -> BoxFuture<'a, Option<Result<Box<RawValue>, Failure>>> {
        run.map(Some).boxed()
    }
}

/// Error of a request: its number and message, and what a transport adds.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) data: Value,
}

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
    error: Option<Failure>,
    id: Option<Box<RawValue>>,
}

#[derive(Debug, Serialize)]
struct ErrorData {
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

/// A notification of the server.
#[derive(Debug, Serialize)]
struct Notification<'a, P> {
    jsonrpc: &'static str,
    method: &'a str,
    params: P,
}

impl Response {
    fn new(answer: Result<Box<RawValue>, Failure>, id: Option<Box<RawValue>>) -> Self {
        let (result, error) = match answer {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            jsonrpc: "2.0",
            result,
            error,
            id,
        }
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        let data = ErrorData {
            code: error.code.as_str(),
            hint: error.hint,
        };
        Self {
            code: error.code.rpc(),
            message: error.message,
            data: serde_json::to_value(data).unwrap_or_default(),
        }
    }
}

/// Answers a text; `None` if it has notifications and cancelled requests only.
pub(crate) async fn answer(handler: &dyn Handler, text: &[u8]) -> Option<String> {
    let write = |response: &Response| serde_json::to_string(response).unwrap_or_default();
    if !is_batch(text) {
        return match serde_json::from_slice::<Box<RawValue>>(text) {
            Ok(request) => one(handler, &request).await.as_ref().map(write),
            Err(error) => Some(refusal(no_json(&error))),
        };
    }
    let requests = match serde_json::from_slice::<Vec<Box<RawValue>>>(text) {
        Ok(requests) => requests,
        Err(error) => return Some(refusal(no_json(&error))),
    };
    if requests.is_empty() || requests.len() > MAX_BATCH {
        let message = format!("a batch has 1 to {MAX_BATCH} requests");
        return Some(refusal(ApiError::new(Code::InvalidRequest, message)));
    }
    let answers: Vec<_> = requests
        .iter()
        .map(|request| one(handler, request))
        .collect();
    let answers = futures_util::stream::iter(answers).buffered(AT_ONCE);
    let answers: Vec<_> = answers.filter_map(std::future::ready).collect().await;
    let is_silent = answers.is_empty();
    (!is_silent).then(|| serde_json::to_string(&answers).unwrap_or_default())
}

/// Returns true for a batch of requests.
pub(crate) fn is_batch(text: &[u8]) -> bool {
    text.trim_ascii_start().first() == Some(&b'[')
}

/// Response to what is no request.
pub(crate) fn refusal(error: ApiError) -> String {
    serde_json::to_string(&Response::new(Err(error.into()), None)).unwrap_or_default()
}

/// Writes a notification.
pub(crate) fn notification(method: &str, params: impl Serialize) -> String {
    let jsonrpc = "2.0";
    serde_json::to_string(&Notification {
        jsonrpc,
        method,
        params,
    })
    .unwrap_or_default()
}

fn no_json(error: &serde_json::Error) -> ApiError {
    ApiError::new(Code::ParseError, format!("the request is no JSON: {error}"))
}

/// Answers one request; `None` for a notification, and for a request that was cancelled.
async fn one(handler: &dyn Handler, text: &RawValue) -> Option<Response> {
    let request: Request = match serde_json::from_str(text.get()) {
        Ok(request) => request,
        Err(_) => return Some(Response::new(Err(no_request().into()), None)),
    };
    let id = request.id;
    let is_id = id.as_ref().is_none_or(|id| is_id(id));
    if request.jsonrpc != "2.0" || !is_id {
        return Some(Response::new(
            Err(no_request().into()),
            id.filter(|_| is_id),
        ));
    }
    let run = handler.run(&request.method, request.params.as_deref());
    let Some(id) = id else {
        // Nobody gets the answer to a notification.
        run.await.ok();
        return None;
    };
    let answer = handler.unless_cancelled(&id, run).await?;
    Some(Response::new(answer, Some(id)))
}

fn no_request() -> ApiError {
    let message = "this is no request: send jsonrpc \"2.0\", method, params by name, and an id";
    ApiError::new(Code::InvalidRequest, message)
}

fn is_id(id: &RawValue) -> bool {
    let text = id.get();
    match text.starts_with('"') {
        // A text with half a character could not be written again.
        true => serde_json::from_str::<String>(text).is_ok(),
        false => text == "null" || text.starts_with(|c: char| c == '-' || c.is_ascii_digit()),
    }
}

/// Error of a method that does not exist.
pub(crate) fn no_method(method: &str) -> ApiError {
    let shown: String = method.chars().take(64).collect();
    let message = format!("there is no method {shown:?}");
    ApiError::new(Code::MethodNotFound, message)
}

/// Reads parameters by name. Some clients put the object into a list.
pub(crate) fn named(params: Option<&RawValue>) -> Result<Params, ApiError> {
    let wrong = || ApiError::invalid("params: give an object, the parameters by name");
    let Some(text) = params.map(RawValue::get) else {
        return Ok(Params::new());
    };
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

#[cfg(test)]
mod tests;
