//! Changes by buttons: each is a method of the API, called with the fields of a form.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use serde_json::value::RawValue;

use super::Shared;
use super::caller::{Caller, encoded};
use super::changes::done;
use super::forms::{back, field, form, see_other};
use super::layout::failed;
use crate::api::http::query;
use crate::api::{ApiError, Call, Code, Params, find};

/// Time for a worker to obey; the page does not wait longer.
const OBEYS_WITHIN: &str = "2s";

/// Limits that the form of a queue has.
pub(super) const LIMITS: [&str; 6] = [
    "length",
    "concurrency",
    "rate",
    "key_concurrency",
    "key_rate",
    "payload",
];

/// Calls a method with the fields of a form, and leads back to its page.
pub(super) async fn run(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    caller: Caller,
    request: Request,
) -> Response {
    let form = match form(&shared, request).await {
        Ok(form) => form,
        Err(error) => return failed(&caller, error).await,
    };
    match change(&caller, &name, &form).await {
        Ok(()) => {
            let to = back(&shared, field(&form, "back"));
            let sign = if to.contains('?') { '&' } else { '?' };
            see_other(&format!("{to}{sign}done={}", encoded(&name)))
        }
        Err(error) => failed(&caller, error).await,
    }
}

async fn change(caller: &Caller, name: &str, form: &[(String, String)]) -> Result<(), ApiError> {
    let none = || ApiError::new(Code::NotFound, format!("no button has the method {name}"));
    let method = done(name).and_then(|_| find(name)).ok_or_else(none)?;
    caller.access.check(method.scope, method.name)?;
    let wrong = |typed: &&str| field(form, "must") != Some(typed);
    if let Some(typed) = field(form, "typed").filter(wrong) {
        let message = format!("{typed:?} is not the name: nothing was changed");
        return Err(ApiError::invalid(message));
    }
    let is_param = |name: &str| !matches!(name, "back" | "typed" | "must");
    let fields = form
        .iter()
        .filter(|(name, text)| is_param(name) && !text.is_empty());
    let mut params = Params::new();
    query::add(&mut params, method, fields.cloned())?;
    if name == "queue.limit" {
        remove_limits(&mut params, form);
    }
    let is_worker = name.starts_with("worker.");
    if is_worker {
        let wait = [("wait".to_owned(), OBEYS_WITHIN.to_owned())];
        query::add(&mut params, method, wait.into_iter())?;
    }
    let _slot = caller.shared.api.slot(&caller.holder)?;
    // A change that somebody makes by hand may request a scan at once.
    let call = Call::new(caller.shared.api.calls(), caller.access.clone());
    let result = method.call(call, params).await;
    // Also after a failure: a part may be done.
    caller.shared.reads.forget();
    match result {
        // It has the request, and obeys with its next heartbeat.
        Err(error) if is_worker && error.code == Code::Timeout => Ok(()),
        other => other.map(|_| ()),
    }
}

/// An empty field of the form removes a limit.
fn remove_limits(params: &mut Params, form: &[(String, String)]) {
    let empty = form
        .iter()
        .filter(|(name, text)| text.is_empty() && LIMITS.contains(&name.as_str()));
    for (name, _) in empty {
        params.insert(name.clone(), RawValue::NULL.to_owned());
    }
}
