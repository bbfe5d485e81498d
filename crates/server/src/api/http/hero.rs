//! Nonces of Hero's logins over HTTP: `GET /auth/nonce` and `GET /auth/health`.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::json;

use super::problem::Problem;
use super::query::pairs;
use super::{Shared, json as answer};
use crate::api::error::ApiError;
use crate::api::hero::{expires_at, nonce as make};
use crate::api::holder::client;

/// Makes a nonce for the key `public_key`.
pub(super) async fn nonce(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    head: Parts,
) -> Result<Response, Problem> {
    let pairs = pairs(query.as_deref().unwrap_or_default())?;
    let key = pairs.iter().find(|(name, _)| name == "public_key");
    let (_, key) = key.ok_or_else(|| ApiError::invalid("public_key: give the key of an actor"))?;
    let nonce = make(&shared.calls.nonces, key, client(&head.extensions))?;
    let body = json!({"nonce": nonce, "expires_at": expires_at()});
    Ok(answer(StatusCode::OK, body.to_string()))
}

/// Tells the number of nonces that wait to be signed.
pub(super) async fn health(State(shared): State<Arc<Shared>>) -> Response {
    let body = json!({
        "status": "healthy",
        "active_nonces": shared.calls.nonces.len(),
        "timestamp": meshwork::host_ms() / 1000,
    });
    answer(StatusCode::OK, body.to_string())
}
