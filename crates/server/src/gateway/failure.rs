//! Failures as HTTP responses: status codes and bodies.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use meshwork::protocol::nooble::Error;
use meshwork_model::nooble::ErrorDetail;

use crate::http::guard::Refusal;

/// The type of errors of the gateway itself.
const GATEWAY: &str = "GatewayError";

/// Failure of a request.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    detail: ErrorDetail,
}

impl Failure {
    /// Creates a failure of the gateway itself.
    pub(super) fn new(status: StatusCode, code: &str, message: &str) -> Self {
        Self {
            status,
            detail: ErrorDetail::new(GATEWAY, code, message),
        }
    }

    /// Converts a refusal of the guard.
    pub(super) fn refused(refusal: Refusal) -> Self {
        Self::new(refusal.status, refusal.code, &refusal.message)
    }

    /// Converts an error of a service.
    pub(super) fn said(detail: ErrorDetail) -> Self {
        let status = match detail.error_code.as_deref() {
            Some("INVALID_DATA" | "INVALID_ACTION") => StatusCode::UNPROCESSABLE_ENTITY,
            Some("TIER_LIMIT_EXCEEDED") => StatusCode::TOO_MANY_REQUESTS,
            Some("HANDLER_TIMEOUT") => StatusCode::GATEWAY_TIMEOUT,
            _ if detail.error_type == "ValidationError" => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, detail }
    }

    /// Converts an error of the call.
    pub(super) fn of(error: &Error) -> Self {
        let (status, code) = match error {
            Error::NoAnswer { .. } => (StatusCode::GATEWAY_TIMEOUT, "NO_ANSWER"),
            Error::Unreadable { .. } => (StatusCode::BAD_GATEWAY, "BAD_ANSWER"),
            Error::TooMany { .. } => (StatusCode::SERVICE_UNAVAILABLE, "TOO_MANY_CALLS"),
            Error::Closed => (StatusCode::SERVICE_UNAVAILABLE, "CLOSING"),
            Error::Broker(_) | Error::Connect(_) => {
                tracing::warn!(%error, "action not sent");
                // Messages of the store are not for callers.
                let message =
                    "the store does not accept the action; it may have been sent all the same";
                return Self::new(StatusCode::SERVICE_UNAVAILABLE, "NO_STORE", message);
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "NOT_SENT"),
        };
        Self::new(status, code, &error.to_string())
    }
}

/// The headers of all responses with JSON.
pub(super) fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut headers = headers();
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        let body = format!("{{\"error\":{}}}", self.detail.write());
        (self.status, headers, Body::from(body)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_while_it_closes_is_to_ask_again() {
        let response = Failure::of(&Error::Closed).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
    }
}
