//! One request of REST: parameters from path, query and body; the result or a problem as the response.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use meshwork_model::trace::TraceContext;

use super::answers::Answer;
use super::problem::Problem;
use super::{Shared, answers, json, query, stream};
use crate::api::access::Access;
use crate::api::error::{ApiError, Code};
use crate::api::holder::holder;
use crate::api::method::{Method, Params};
use crate::api::topic;
use crate::http::Closing;
use crate::http::guard::{Holder, Permit, check_coding};

/// Longest idempotency key in bytes.
const MAX_KEY: usize = 256;

/// Calls a method.
pub(super) async fn call(
    method: &'static Method,
    State(shared): State<Arc<Shared>>,
    path: Result<Path<BTreeMap<String, String>>, PathRejection>,
    RawQuery(text): RawQuery,
    request: Request,
) -> Result<Response, Problem> {
    let path = path
        .map_err(|_| ApiError::invalid("the path is not UTF-8"))?
        .0;
    let mut query = query::pairs(text.as_deref().unwrap_or_default())?;
    let access = request.extensions().get::<Access>().cloned();
    let permit = request.extensions().get::<Arc<Permit>>().cloned();
    let mut call = shared.call(access.map(Extension));
    if let Some(closing) = request.extensions().get::<Closing>() {
        call = call.ending_with(closing.begins());
    }
    // A caller without a key, or of the wrong scope, is refused before the body is read.
    call.access.check(method.scope, method.name)?;
    if method.follows && follow(&mut query)? {
        let (head, _) = request.into_parts();
        return followed(&shared, path, query, &head).await;
    }
    call.idempotency_key = idempotency_key(request.headers())?;
    call.trace = trace(request.headers());
    let holder = holder(request.extensions());
    let mut params = body(&shared, method, request, &holder).await?;
    query::add(&mut params, method, path.into_iter().chain(query))?;
    let _busy = permit.as_ref().map(Permit::busy);
    let _slot = shared.slot(&holder)?;
    let mut memory = shared.answers.memory(&holder)?;
    let page = shared.answers.page(method.name, &holder, None).await;
    let result = method.call(call.clone(), params).await?;
    answers::grow(&mut memory, result.get().len())?;
    drop(page);
    let status = call.status().unwrap_or(method.status);
    debug_assert!(method.goes_on || call.status().is_none(), "{}", method.name);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let answer = Answer::new(Box::<str>::from(result).into(), memory);
    Ok(json(status, answer.into_bytes()))
}

/// Takes `follow` out of the query.
fn follow(query: &mut Vec<(String, String)>) -> Result<bool, ApiError> {
    let mut given = query.extract_if(.., |(name, _)| name == "follow");
    match (given.next(), given.next()) {
        (None, _) => Ok(false),
        (Some((_, text)), None) => text
            .parse()
            .map_err(|_| ApiError::invalid("follow: give true or false")),
        (Some(_), Some(_)) => Err(ApiError::invalid("follow is given twice")),
    }
}

/// Follows the log of a job.
async fn followed(
    shared: &Shared,
    mut path: BTreeMap<String, String>,
    query: Vec<(String, String)>,
    head: &Parts,
) -> Result<Response, Problem> {
    let (mut after, mut context) = (None, None);
    for (name, value) in query {
        let is_first = match name.as_str() {
            "after" => after.replace(value).is_none(),
            "context" => context.replace(topic::context(&value)?).is_none(),
            _ => false,
        };
        if !is_first {
            let message = format!("{name}: give after and context, once, beside follow");
            return Err(ApiError::invalid(message).into());
        }
    }
    let id = path.remove("id").unwrap_or_default();
    stream::log(shared, id, (after.as_deref(), context), head).await
}

/// Reads the body, an object; none is an empty one.
async fn body(
    shared: &Shared,
    method: &Method,
    request: Request,
    holder: &Holder,
) -> Result<Params, Problem> {
    if !method.verb.has_body() {
        return Ok(Params::new());
    }
    let (head, body) = request.into_parts();
    let received = shared.bodies.read(body, holder).await;
    let received = received.map_err(|refusal| Problem::refused(&refusal))?;
    let bytes = received.bytes();
    if bytes.trim_ascii().is_empty() {
        return Ok(Params::new());
    }
    check_content_type(&head.headers)?;
    serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("the body is no JSON object: {error}");
        ApiError::new(Code::ParseError, message).into()
    })
}

/// Refuses a body that is not declared to be JSON: a page in a browser can send other types without a preflight request.
/// Refuses one with a coding, too.
pub(crate) fn check_content_type(head: &HeaderMap) -> Result<(), Problem> {
    check_coding(head).map_err(|refusal| Problem::refused(&refusal))?;
    let kind = head.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|it| it.split(';').next()).unwrap_or_default();
    if kind.trim().eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = "send content-type: application/json";
    let mut problem = Problem::from(ApiError::new(Code::InvalidRequest, message));
    problem.status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Err(problem)
}

/// Reads the idempotency key. The draft of its header writes it in quotes; both forms are the same key.
pub(super) fn idempotency_key(head: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = head.get("idempotency-key") else {
        return Ok(None);
    };
    let text = value.to_str().ok().map(|text| text.trim_matches('"'));
    let text = text.filter(|text| (1..=MAX_KEY).contains(&text.len()));
    match text {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(ApiError::invalid(format!(
            "Idempotency-Key: give 1 to {MAX_KEY} ASCII characters"
        ))),
    }
}

/// Reads the trace of the client. An invalid one is ignored, as W3C requires.
fn trace(head: &HeaderMap) -> Option<TraceContext> {
    let text = |name: &str| head.get(name)?.to_str().ok();
    TraceContext::parse(text("traceparent")?, text("tracestate")).ok()
}
