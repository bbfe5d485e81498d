//! Forms of pages, and the pages that they lead to.

use axum::extract::Request;
use axum::http::header::{LOCATION, REFRESH};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::caller::is_from_here;
use crate::api::holder::holder;
use crate::api::http::query;
use crate::api::{ApiError, Code};

/// Longest body of a form in bytes.
const MAX_FORM: usize = 64 * 1024;

/// Leads to another page, by GET.
pub(super) fn see_other(to: &str) -> Response {
    match HeaderValue::from_str(to) {
        Ok(to) => (StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

/// Reads a form that a page of this server sent.
///
/// # Errors
/// The form comes from elsewhere, or cannot be read.
pub(super) async fn form(
    shared: &Shared,
    request: Request,
) -> Result<Vec<(String, String)>, ApiError> {
    if !is_from_here(request.headers(), request.extensions()) {
        let message = "a change needs Sec-Fetch-Site: same-origin, or the Origin of this server";
        return Err(ApiError::new(Code::Forbidden, message));
    }
    let holder = holder(request.extensions());
    let received = shared.api.bodies().read(request.into_body(), &holder);
    let received = received
        .await
        .map_err(|refusal| ApiError::invalid(refusal.message))?;
    let bytes = received.bytes();
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|text| text.len() <= MAX_FORM);
    query::pairs(text.ok_or_else(|| ApiError::invalid("the form cannot be read"))?)
}

/// Returns a field of a form.
pub(super) fn field<'a>(form: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let field = form.iter().find(|(given, _)| given == name);
    field.map(|(_, text)| text.as_str())
}

/// Returns the page that a form leads back to; the overview for an address of another place.
pub(super) fn back(shared: &Shared, given: Option<&str>) -> String {
    let is_ours = |to: &&str| {
        let rest = to.strip_prefix(&shared.base);
        rest.is_some_and(|rest| rest.starts_with('/'))
            && to.is_ascii()
            && !to.contains(['\\', '\r', '\n'])
    };
    given
        .filter(is_ours)
        .map_or_else(|| format!("{}/", shared.base), str::to_owned)
}

/// Lets a browser read a page again, without a script.
pub(super) fn again(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(REFRESH, HeaderValue::from_static("5"));
    response
}
