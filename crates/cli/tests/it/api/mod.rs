//! The API of `meshwork supervisor --listen`, as programs that speak HTTP see it.

mod actors;
mod clients;
pub(crate) mod contexts;
pub(crate) mod cost;
mod documents;
mod every;
mod flows;
mod hero;
mod jobs;
mod keys;
mod live;
mod mcp;
mod mcp_http;
mod mcp_sdk;
mod nginx;
mod outage;
mod pages;
mod remote;
mod revoked;
pub(crate) mod rights;
mod shares;
pub(crate) mod socket;
mod spread;
mod spread_parts;
pub(crate) mod sse;
mod stops;

use std::ops::Deref;

use serde_json::{Value, json};

use crate::common::http::{Came, JSON, came, connect};
use crate::common::{Ground, Running, json as parsed};

/// A supervisor with an API.
pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) api: Api,
}

/// The address of an API.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) address: String,
}

impl Deref for Server {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

impl Server {
    /// Starts one with these further words.
    pub(crate) fn start(ground: &Ground, words: &[&str]) -> Self {
        let first = ["supervisor", "--listen", "127.0.0.1:0", "--json"];
        let mut running = ground.start(&[&first, words].concat());
        let event = parsed(&running.line());
        let url = event["api"][0].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().to_owned();
        let api = Api { address };
        Self { running, api }
    }

    /// Starts one that needs no keys.
    pub(crate) fn open(ground: &Ground) -> Self {
        Self::start(ground, &["--insecure-no-auth"])
    }

    pub(crate) fn stop(self) {
        self.running.stop();
    }
}

impl Api {
    /// Sends a request with these headers, each with its line break.
    pub(crate) fn send(&self, verb: &str, path: &str, headers: &str, body: &str) -> Came {
        let (address, length) = (&self.address, body.len());
        let request = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{JSON}{headers}content-length: {length}\r\n\r\n{body}"
        );
        came(connect(address, &request))
    }

    /// Calls a path.
    pub(crate) fn rest(&self, verb: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if verb == "GET" {
            String::new()
        } else {
            body.to_string()
        };
        let answer = self.send(verb, path, "", &body);
        (answer.status, answer.json())
    }

    /// Calls a method of JSON-RPC.
    pub(crate) fn rpc(&self, method: &str, params: &Value, headers: &str) -> Value {
        let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});
        self.send("POST", "/rpc", headers, &request.to_string())
            .json()
    }
}

/// The header of a key.
pub(crate) fn bearer(key: &str) -> String {
    format!("authorization: Bearer {key}\r\n")
}
