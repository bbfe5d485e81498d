//! Errors as RFC 9457 problems.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::api::error::{ApiError, Code};
use crate::http::guard::Refusal;

/// Problem details. `type` is `about:blank`: `code` has the kind.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    #[serde(serialize_with = "number")]
    pub(super) status: StatusCode,
    detail: String,
    code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

fn number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    fn new(status: StatusCode, code: &str, detail: &str, hint: Option<&'static str>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or_default(),
            status,
            detail: detail.to_owned(),
            code: code.to_owned(),
            hint,
        }
    }

    /// Converts a refusal of the guard.
    pub(crate) fn refused(refusal: &Refusal) -> Self {
        let code = refusal.code.to_ascii_lowercase();
        Self::new(refusal.status, &code, &refusal.message, None)
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        let code: Code = error.code;
        Self::new(code.status(), code.as_str(), &error.message, error.hint)
    }
}

impl IntoResponse for Problem {
    fn into_response(mut self) -> Response {
        self.title = self.status.canonical_reason().unwrap_or_default();
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(CONTENT_TYPE, kind);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        let body = serde_json::to_string(&self).unwrap_or_default();
        (self.status, headers, body).into_response()
    }
}
