//! Message API of a fake daemon: JSON-RPC 2.0 over HTTP, on any path.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Value, json};

use super::node::Node;
use super::state::{Data, MAX_TOPIC, Outgoing, Sent};
use super::{PublicKey, address};

/// Greatest size of a request.
const MAX_BODY: usize = 10_485_760;
/// Interval at which a waiting pop looks for a message.
const POP_POLL: Duration = Duration::from_millis(1);

/// Returns the API.
pub fn router(node: Arc<Node>) -> Router {
    Router::new()
        .fallback(post(answer))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(node)
}

async fn answer(State(node): State<Arc<Node>>, body: Bytes) -> Response {
    let json = match serde_json::from_slice(&body) {
        Ok(Value::Array(calls)) => {
            let mut answers = Vec::with_capacity(calls.len());
            for call in &calls {
                answers.push(one(&node, call).await);
            }
            Value::Array(answers)
        }
        Ok(call) => one(&node, &call).await,
        Err(_) => json!({"jsonrpc": "2.0", "id": null, "error": error(-32700)}),
    };
    let headers = [("content-type", "application/json")];
    (StatusCode::OK, headers, json.to_string()).into_response()
}

async fn one(node: &Node, call: &Value) -> Value {
    let method = call["method"].as_str().unwrap_or_default();
    let mut answer = json!({"jsonrpc": "2.0", "id": call["id"]});
    match dispatch(node, method, &call["params"]).await {
        Ok(result) => answer["result"] = result,
        Err(code) => answer["error"] = error(code),
    }
    answer
}

/// The real daemon says the same for every error.
fn error(code: i64) -> Value {
    json!({"code": code, "message": "Server error"})
}

/// Returns a parameter by its position or its name.
fn param<'a>(params: &'a Value, at: usize, name: &str) -> &'a Value {
    params.get(at).unwrap_or(&params[name])
}

async fn dispatch(node: &Node, method: &str, params: &Value) -> Result<Value, i64> {
    let _api = node.call().await;
    match method {
        "getInfo" => Ok(about(node)),
        "pushMessage" => {
            let id = push_message(node, param(params, 0, "message"))?;
            Ok(json!({ "id": id }))
        }
        "pushMessageReply" => {
            let message = param(params, 1, "message");
            let data = Data {
                id: id(param(params, 0, "id"))?,
                dst: destination(message)?,
                topic: None,
                is_reply: true,
                ..draft(node, message)?
            };
            push(node, data);
            Ok(json!(true))
        }
        "popMessage" => pop(node, params).await,
        "getMessageInfo" => {
            let id = id(param(params, 0, "id"))?;
            let state = node.state();
            state.sent(&id).map(info).ok_or(-32019)
        }
        "setDefaultTopicAction" => {
            let accepts = param(params, 0, "accept").as_bool().ok_or(-32602)?;
            node.state().set_default(accepts);
            Ok(json!(true))
        }
        "addTopic" => {
            let topic = topic(param(params, 0, "topic"), -32021)?.ok_or(-32021)?;
            node.state().add_topic(topic);
            Ok(json!(true))
        }
        _ => Err(-32601),
    }
}

/// Returns the answer about the daemon.
pub(super) fn about(node: &Node) -> Value {
    json!({
        "nodeSubnet": format!("{}/64", address(node.pk())),
        "nodeIp": address(node.pk()),
        "nodePubkey": node.pk(),
        "nodeStartTime": node.started_s(),
    })
}

/// Adds the message of a request, and returns its id.
pub(super) fn push_message(node: &Node, message: &Value) -> Result<String, i64> {
    let data = Data {
        dst: destination(message)?,
        topic: topic(&message["topic"], -32021)?,
        is_reply: false,
        ..draft(node, message)?
    };
    Ok(push(node, data))
}

/// Adds a message, and returns its id.
fn push(node: &Node, data: Data) -> String {
    let id = data.id.clone();
    node.state().push(data, node.now_ms());
    id
}

/// Returns a message with a new id and the payload of a request.
fn draft(node: &Node, message: &Value) -> Result<Data, i64> {
    let payload = message["payload"].as_str().ok_or(-32602)?;
    Ok(Data {
        id: HEXLOWER.encode(&rand::random::<[u8; 8]>()),
        src: node.pk().to_owned(),
        dst: String::new(),
        topic: None,
        payload: BASE64.decode(payload.as_bytes()).map_err(|_| -32602)?,
        is_reply: false,
    })
}

fn destination(message: &Value) -> Result<PublicKey, i64> {
    let pk = message["dst"]["pk"].as_str().ok_or(-32602)?;
    let is_key = pk.len() == 64 && pk.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_key.then(|| pk.to_ascii_lowercase()).ok_or(-32602)
}

fn topic(value: &Value, fault: i64) -> Result<Option<Vec<u8>>, i64> {
    let Some(text) = value.as_str() else {
        return Ok(None);
    };
    let topic = BASE64.decode(text.as_bytes()).map_err(|_| fault)?;
    match topic.len() {
        0..=MAX_TOPIC => Ok(Some(topic)),
        _ => Err(-32015),
    }
}

fn id(value: &Value) -> Result<String, i64> {
    let id = value.as_str().filter(|id| id.len() == 16);
    id.map(str::to_owned).ok_or(-32018)
}

/// Pops a message. While it waits, no other call is served.
pub(super) async fn pop(node: &Node, params: &Value) -> Result<Value, i64> {
    let peeks = param(params, 0, "peek").as_bool().unwrap_or(false);
    let wait = Duration::from_secs(param(params, 1, "timeout").as_u64().unwrap_or(0));
    let topic = topic(param(params, 2, "topic"), -32013)?;
    let until = Instant::now() + wait;
    let mut ticks = tokio::time::interval(POP_POLL);
    loop {
        ticks.tick().await;
        let popped = node.state().pop(topic.as_deref(), peeks);
        if let Some((data, frame)) = popped {
            node.links.send(frame);
            return Ok(inbound(&data));
        }
        if Instant::now() >= until {
            return Ok(Value::Null);
        }
    }
}

fn inbound(data: &Data) -> Value {
    let mut message = json!({
        "id": data.id,
        "srcIp": address(&data.src),
        "srcPk": data.src,
        "dstIp": address(&data.dst),
        "dstPk": data.dst,
        "payload": BASE64.encode(&data.payload),
    });
    if let Some(topic) = &data.topic {
        message["topic"] = json!(BASE64.encode(topic));
    }
    message
}

fn info(out: &Outgoing) -> Value {
    let state = match out.sent {
        Sent::Pending => json!("pending"),
        Sent::Sending => json!({"sending": {"pending": 0, "sent": 1, "acked": 0}}),
        Sent::Received => json!("received"),
        Sent::Read => json!("read"),
        Sent::Aborted => json!("aborted"),
    };
    json!({"dst": address(&out.data.dst), "state": state, "msgLen": out.data.payload.len()})
}
