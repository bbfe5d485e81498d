//! Requests of a run and their answers: a line of JSON each, on a connection of its own. [`ask`] is the client.

use meshwork_macros::boxed;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use meshwork_model::nooble::Data;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::super::action::ActionIds;
use super::inherited;

/// Variable with the path of the socket, for programs of a run.
pub const CALLS_VARIABLE: &str = "MESHWORK_CALLS";

/// Greatest length of a line. It can contain the largest input in base64, and the largest script and environment with
/// each byte escaped (`\u0001`). Also used in `bootstrap.py`.
pub(super) const MAX_LINE: usize = 32 * 1024 * 1024;

/// Most bytes of the path of a socket: the shortest limit of a system is 104, with the final NUL. Also used in
/// `bootstrap.py`.
const MAX_PATH: usize = 100;

/// Request of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Request {
    /// An action. Without it, the request is for a child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) action: Option<ActionMessage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) script: Option<String>,
    /// Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<String>,
    #[serde(default)]
    pub(super) options: Map<String, Value>,
}

/// Delivery of an action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActionDelivery {
    /// Waits for the reply.
    #[default]
    Call,
    /// Waits for nothing; the reply may come as a callback.
    Send,
    /// Publishes a notification.
    Notify,
}

/// An action that a run sends through its worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ActionMessage {
    /// Delivery.
    #[serde(default)]
    pub delivery: ActionDelivery,
    /// Service, dot, operation; or the event of a notification.
    #[serde(rename = "type")]
    pub action_type: String,
    /// Data.
    pub data: Data,
    /// Longest wait of a call for the reply, in seconds. Default: 30.
    pub timeout: Option<f64>,
    /// Event of the callback that a sent action requests.
    pub callback: Option<String>,
    /// Data that the handler of the callback gets.
    #[serde(default)]
    pub remember: Value,
}

/// Error of an action, for programs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ActionFault {
    /// Type of the service's error. `Timeout`: no reply came in time. `Stopped`: the run is being stopped. `Refused`: the
    /// action was not sent.
    pub kind: String,
    /// Code of the service's error.
    pub code: Option<String>,
    /// Details of the service's error.
    pub details: Option<Data>,
}

/// Answer to a request.
#[derive(Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunAnswer {
    /// Id of the child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// Result of a sent action: the data of the reply, the id of the message (of a request with a callback, the
    /// correlation id), or the number of receivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Box<RawValue>>,
    /// Ids of the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<ActionIds>,
    /// Error text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Parts of the error of an action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<ActionFault>,
}

/// Sends an action through the worker of the run to which this process belongs. `socket` is the value of
/// [`CALLS_VARIABLE`]. A socket that the process has inherited instead is used first.
///
/// # Errors
/// The run has ended, or its answer cannot be read.
#[boxed]
pub async fn ask(socket: &Path, action: ActionMessage) -> io::Result<RunAnswer> {
    let request = Request {
        action: Some(action),
        ..Request::default()
    };
    let mut line = serde_json::to_vec(&request)?;
    line.push(b'\n');
    let mut stream = match inherited::connect() {
        Some(stream) => stream?,
        None => {
            let (path, _folder) = reachable(socket)?;
            UnixStream::connect(path).await?
        }
    };
    stream.write_all(&line).await?;
    let mut answer = Vec::new();
    let most = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
    BufReader::new(stream)
        .take(most)
        .read_until(b'\n', &mut answer)
        .await?;
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&answer)?)
}

/// Returns a path of the socket that the system accepts. It is valid while the second part exists: a path that is too
/// long leads through the descriptor of its folder.
pub(super) fn reachable(socket: &Path) -> io::Result<(PathBuf, Option<std::fs::File>)> {
    if socket.as_os_str().len() <= MAX_PATH {
        return Ok((socket.to_owned(), None));
    }
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = std::fs::File::open(folder)?;
    let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string());
    Ok((path.join(name), Some(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_path_is_reached_through_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(150));
        std::fs::create_dir(&deep).unwrap();
        let socket = deep.join("calls");
        let (path, _open) = reachable(&socket).unwrap();
        let listener = tokio::net::UnixListener::bind(path).unwrap();
        let answers = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut line = String::new();
            BufReader::new(&mut stream)
                .read_line(&mut line)
                .await
                .unwrap();
            stream
                .write_all(b"{\"reply\":12345678901234567890123}\n")
                .await
                .unwrap();
            line
        };
        let action = ActionMessage {
            delivery: ActionDelivery::Call,
            action_type: "a.b".to_owned(),
            data: Data::empty(),
            timeout: None,
            callback: None,
            remember: Value::Null,
        };
        let (line, answer) = tokio::join!(answers, ask(&socket, action));
        assert!(line.contains("\"type\":\"a.b\""), "{line}");
        let reply = answer.unwrap().reply.unwrap();
        assert_eq!(reply.get(), "12345678901234567890123");
    }

    #[tokio::test]
    async fn a_run_that_has_ended_gives_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (path, action) = (
            folder.path().join("calls"),
            ActionMessage {
                delivery: ActionDelivery::Notify,
                action_type: "a".to_owned(),
                data: Data::empty(),
                timeout: None,
                callback: None,
                remember: Value::Null,
            },
        );
        let error = ask(&path, action.clone()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let ends = async { drop(listener.accept().await) };
        let ((), answer) = tokio::join!(ends, ask(&path, action));
        assert!(answer.is_err());
    }
}
