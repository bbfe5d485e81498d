//! HTTP API of a fake daemon: what scripts of SAL call. Its peers are a list only; links are made at the start.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::node::Node;
use super::rpc::{about, pop, push_message};

/// Message of an endpoint that is a peer already.
const EXISTS: &str = "A peer identified by that endpoint already exists";
/// Message of an endpoint that is no peer.
const UNKNOWN: &str = "A peer identified by that endpoint does not exist";

struct Api {
    node: Arc<Node>,
    peers: Mutex<BTreeSet<String>>,
}

type Call = State<Arc<Api>>;

pub(super) fn router(node: Arc<Node>) -> Router {
    let peers = Mutex::default();
    Router::new()
        .route("/admin", get(admin))
        .route("/admin/peers", get(peers_of).post(add_peer))
        .route("/admin/peers/{endpoint}", delete(remove_peer))
        .route("/admin/routes/selected", get(no_routes))
        .route("/admin/routes/fallback", get(no_routes))
        .route("/messages", get(receive).post(send))
        .with_state(Arc::new(Api { node, peers }))
}

fn said(status: StatusCode, value: &Value) -> Response {
    let headers = [("content-type", "application/json")];
    (status, headers, value.to_string()).into_response()
}

/// Returns a parameter of the query.
fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs
        .filter(|(known, _)| *known == name)
        .map(|(_, value)| value);
    let decoded = |value| percent_decode_str(value).decode_utf8_lossy().into_owned();
    value.map(decoded).next()
}

async fn admin(State(api): Call) -> Response {
    said(StatusCode::OK, &about(&api.node))
}

async fn no_routes() -> Response {
    said(StatusCode::OK, &json!([]))
}

async fn peers_of(State(api): Call) -> Response {
    let peers = api.peers.lock().unwrap_or_else(PoisonError::into_inner);
    let peer = |endpoint: &String| {
        let (proto, address) = endpoint.split_once("://").unwrap_or_default();
        json!({"endpoint": {"proto": proto, "socketAddr": address}, "type": "static"})
    };
    said(StatusCode::OK, &peers.iter().map(peer).collect())
}

async fn add_peer(State(api): Call, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match body["endpoint"].as_str() {
        Some(endpoint) if endpoint.contains("://") => {
            let mut peers = api.peers.lock().unwrap_or_else(PoisonError::into_inner);
            match peers.insert(endpoint.to_owned()) {
                true => StatusCode::NO_CONTENT.into_response(),
                false => (StatusCode::CONFLICT, EXISTS).into_response(),
            }
        }
        _ => (StatusCode::BAD_REQUEST, "no endpoint").into_response(),
    }
}

async fn remove_peer(State(api): Call, Path(endpoint): Path<String>) -> Response {
    let mut peers = api.peers.lock().unwrap_or_else(PoisonError::into_inner);
    match peers.remove(&endpoint) {
        true => StatusCode::NO_CONTENT.into_response(),
        false => (StatusCode::NOT_FOUND, UNKNOWN).into_response(),
    }
}

/// Pushes a message. No reply comes, so a wait for one ends in a timeout.
async fn send(State(api): Call, RawQuery(query): RawQuery, body: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let Ok(id) = push_message(&api.node, &message) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let answer = json!({ "id": id });
    let Some(seconds) = parameter(query.as_deref(), "reply_timeout") else {
        return said(StatusCode::CREATED, &answer);
    };
    let wait = Duration::from_secs(seconds.parse().unwrap_or(0));
    let _: Result<(), _> = tokio::time::timeout(wait, std::future::pending()).await;
    said(StatusCode::REQUEST_TIMEOUT, &answer)
}

async fn receive(State(api): Call, RawQuery(query): RawQuery) -> Response {
    let parameter = |name| parameter(query.as_deref(), name);
    let wait = parameter("timeout").and_then(|text| text.parse::<u64>().ok());
    let params = json!([false, wait, parameter("topic")]);
    let _api = api.node.call().await;
    match pop(&api.node, &params).await {
        Ok(Value::Null) => StatusCode::NO_CONTENT.into_response(),
        Ok(message) => said(StatusCode::OK, &message),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}
