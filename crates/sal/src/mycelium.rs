//! Module `mycelium`: the HTTP API of a daemon of the Mycelium network.

use std::fmt::Write as _;
use std::net::IpAddr;

use data_encoding::BASE64;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rhai::{Dynamic, Engine};
use serde_json::{Value, json};

use crate::answer::{Answer, dynamic, thrown};
use crate::http::{self, Call};

/// Longest wait for an answer, in seconds, besides the wait for a message.
const PATIENCE: u64 = 30;

pub(crate) fn register(engine: &mut Engine) {
    for (name, path) in [
        ("mycelium_get_node_info", "admin"),
        ("mycelium_list_peers", "admin/peers"),
        ("mycelium_list_selected_routes", "admin/routes/selected"),
        ("mycelium_list_fallback_routes", "admin/routes/fallback"),
    ] {
        engine.register_fn(name, move |api: &str| -> Answer<Dynamic> {
            call("GET", &url(api, path), None, PATIENCE).map(or_unit)
        });
    }
    engine.register_fn("mycelium_add_peer", |api: &str, peer: &str| {
        let body = json!({ "endpoint": peer });
        call("POST", &url(api, "admin/peers"), Some(&body), PATIENCE).map(or_success)
    });
    engine.register_fn("mycelium_remove_peer", |api: &str, peer: &str| {
        let url = url(api, &format!("admin/peers/{}", encoded(peer)));
        call("DELETE", &url, None, PATIENCE).map(or_success)
    });
    engine.register_fn("mycelium_send_message", send);
    engine.register_fn("mycelium_receive_messages", receive);
}

/// Sends a message to an address or a public key, and returns its id. With a deadline of 0 s or more, waits for the reply and returns
/// it.
fn send(api: &str, to: &str, topic: &str, message: &str, deadline: i64) -> Answer<Dynamic> {
    let kind = match to.parse::<IpAddr>() {
        Ok(_) => "ip",
        Err(_) => "pk",
    };
    let body = json!({
        "dst": { kind: to },
        "topic": BASE64.encode(topic.as_bytes()),
        "payload": BASE64.encode(message.as_bytes()),
    });
    let mut url = url(api, "messages");
    let mut seconds = PATIENCE;
    if let Ok(wait) = u64::try_from(deadline) {
        let _ = write!(url, "?reply_timeout={wait}");
        seconds = seconds.saturating_add(wait);
    }
    call("POST", &url, Some(&body), seconds).map(or_unit)
}

/// Returns the next message of a topic, or `()` if none arrives before the deadline, in seconds.
fn receive(api: &str, topic: &str, deadline: i64) -> Answer<Dynamic> {
    let topic = encoded(&BASE64.encode(topic.as_bytes()));
    let wait = u64::try_from(deadline).unwrap_or(0);
    let url = url(api, &format!("messages?topic={topic}&timeout={wait}"));
    call("GET", &url, None, PATIENCE.saturating_add(wait)).map(or_unit)
}

fn url(api: &str, path: &str) -> String {
    format!("{}/api/v1/{path}", api.trim_end_matches('/'))
}

fn call(
    method: &'static str,
    url: &str,
    body: Option<&Value>,
    seconds: u64,
) -> Answer<Option<Value>> {
    let call = Call {
        method,
        url,
        body,
        seconds,
    };
    http::call(call).map_err(|error| thrown(format_args!("Mycelium error: {error}")))
}

fn or_unit(answer: Option<Value>) -> Dynamic {
    answer.map_or(Dynamic::UNIT, dynamic)
}

fn or_success(answer: Option<Value>) -> Dynamic {
    dynamic(answer.unwrap_or_else(|| json!({ "success": true })))
}

/// Returns a text as a part of a URL.
fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_url_has_no_separators() {
        assert_eq!(
            encoded("tcp://[::1]:9651"),
            "tcp%3A%2F%2F%5B%3A%3A1%5D%3A9651"
        );
        assert_eq!(url("http://a:1/", "admin"), "http://a:1/api/v1/admin");
    }
}
