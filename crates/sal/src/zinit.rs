//! Module `zinit`: services of a zinit, version 0.2.15 or newer, by JSON-RPC over its Unix socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use rhai::{Array, Engine, Map};
use serde_json::{Value, json};

use crate::answer::{Answer, dynamic, thrown};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest wait for the end of a service that is started again. It is killed then.
const STOPPING: Duration = Duration::from_secs(20);
/// Interval at which such a service is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Greatest size of an answer.
const MAX_ANSWER: u64 = 16 << 20;

/// Error of a function.
#[derive(Debug, thiserror::Error)]
enum ZinitError {
    #[error("Zinit socket not found at '{0}'")]
    NoSocket(String),
    #[error("Connection error: {0}")]
    Connection(#[from] io::Error),
    #[error("Parse error: {0}")]
    Parse(#[from] serde_json::Error),
    #[error("Service error: {0}")]
    Service(String),
}

type Done<T> = Result<T, ZinitError>;

pub(crate) fn register(engine: &mut Engine) {
    engine.register_fn("zinit_list", |socket: &str| -> Answer<Map> {
        said(call(socket, "service_list", &json!([]))).map(map)
    });
    engine.register_fn("zinit_status", |socket: &str, name: &str| -> Answer<Map> {
        said(call(socket, "service_status", &json!([name]))).map(map)
    });
    for (function, method) in [
        ("zinit_start", "service_start"),
        ("zinit_stop", "service_stop"),
        ("zinit_monitor", "service_monitor"),
        ("zinit_forget", "service_forget"),
    ] {
        engine.register_fn(function, move |socket: &str, name: &str| {
            said(call(socket, method, &json!([name]))).map(|_| true)
        });
    }
    engine.register_fn("zinit_restart", |socket: &str, name: &str| {
        said(restart(socket, name)).map(|()| true)
    });
    engine.register_fn("zinit_kill", |socket: &str, name: &str, signal: &str| {
        said(call(socket, "service_kill", &json!([name, signal]))).map(|_| true)
    });
    engine.register_fn(
        "zinit_create_service",
        |socket: &str, name: &str, exec: &str, oneshot: bool| {
            let content = json!({ "exec": exec, "oneshot": oneshot });
            let created = call(socket, "service_create", &json!([name, content]));
            said(created).map(|_| format!("Service '{name}' created successfully"))
        },
    );
    engine.register_fn("zinit_delete_service", |socket: &str, name: &str| {
        let deleted = call(socket, "service_delete", &json!([name]));
        said(deleted).map(|_| format!("Service '{name}' deleted successfully"))
    });
    engine.register_fn("zinit_get_service", |socket: &str, name: &str| {
        said(call(socket, "service_get", &json!([name]))).map(dynamic)
    });
    engine.register_fn("zinit_logs", |socket: &str, name: &str| {
        said(call(socket, "stream_currentLogs", &json!([name]))).map(array)
    });
    engine.register_fn("zinit_logs_all", |socket: &str| {
        said(call(socket, "stream_currentLogs", &json!([null]))).map(array)
    });
}

fn said<T>(done: Done<T>) -> Answer<T> {
    done.map_err(thrown)
}

fn map(value: Value) -> Map {
    dynamic(value).try_cast().unwrap_or_default()
}

fn array(value: Value) -> Array {
    dynamic(value).try_cast().unwrap_or_default()
}

/// Returns the result of a call.
fn call(socket: &str, method: &str, params: &Value) -> Done<Value> {
    let mut stream = UnixStream::connect(socket).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ZinitError::NoSocket(socket.to_owned()),
        _ => ZinitError::Connection(error),
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut line = Vec::new();
    BufReader::new(stream)
        .take(MAX_ANSWER)
        .read_until(b'\n', &mut line)?;
    let mut answer: Value = serde_json::from_slice(&line)?;
    let mut field = |name: &str| answer.get_mut(name).map(Value::take).unwrap_or_default();
    match field("error") {
        Value::Null => Ok(field("result")),
        error => {
            let message = error["message"].as_str().map(str::to_owned);
            Err(ZinitError::Service(
                message.unwrap_or_else(|| error.to_string()),
            ))
        }
    }
}

/// Stops a service, waits for its end, and starts it.
#[expect(clippy::disallowed_methods, reason = "the service ends by the clock")]
fn restart(socket: &str, name: &str) -> Done<()> {
    let params = json!([name]);
    call(socket, "service_stop", &params)?;
    let until = Instant::now() + STOPPING;
    loop {
        let status = call(socket, "service_status", &params)?;
        if status["pid"] == 0 && status["target"] == "Down" {
            break;
        }
        if Instant::now() >= until {
            call(socket, "service_kill", &json!([name, "SIGKILL"]))?;
            break;
        }
        thread::sleep(LOOK);
    }
    call(socket, "service_start", &params).map(drop)
}
