//! The API of a supervisor in place of the store: `--api`, for people without access to Redis.

pub(crate) mod commands;
mod rpc;
mod transport;

use std::fs;
use std::path::Path;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use meshwork::TlsFiles;
use meshwork_server::api::Code;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::Mutex;

use crate::error::CommandError;
use crate::exit::Exit;
pub(crate) use rpc::{RpcError, on_store, read};
use transport::{Address, Sender};

/// Path of JSON-RPC.
const RPC: &str = "/rpc";

/// An API, with the key of its user.
pub(crate) struct Remote {
    url: String,
    address: Address,
    tls: TlsFiles,
    /// Header with the key. Its `Debug` form hides the value.
    key: Option<HeaderValue>,
    connection: Mutex<Option<Sender>>,
}

/// Answer of JSON-RPC.
#[derive(Deserialize)]
struct Answer {
    result: Option<Box<RawValue>>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
    data: About,
}

#[derive(Deserialize)]
struct About {
    code: String,
    hint: Option<String>,
}

/// Problem of HTTP: a refusal before the method.
#[derive(Deserialize)]
struct Problem {
    detail: String,
    code: String,
    hint: Option<String>,
}

impl Remote {
    /// Returns the API of a URL, with the key in a file.
    pub(crate) fn new(
        url: &str,
        key_file: Option<&Path>,
        tls: TlsFiles,
    ) -> Result<Self, CommandError> {
        let wrong = |why| CommandError::usage(format_args!("--api: {why}"));
        Ok(Self {
            address: url.parse().map_err(wrong)?,
            url: url.to_owned(),
            tls,
            key: key_file.map(read_key).transpose()?,
            connection: Mutex::default(),
        })
    }

    /// Opens a connection, if there is none.
    pub(crate) async fn connect(&self) -> Result<(), CommandError> {
        self.sender(&mut *self.connection.lock().await).await
    }

    async fn sender(&self, connection: &mut Option<Sender>) -> Result<(), CommandError> {
        let is_open = match connection {
            // One that the server has closed is opened again.
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if is_open {
            return Ok(());
        }
        let opened = self.address.open(&self.tls).await;
        *connection = Some(opened.map_err(|why| {
            let url = &self.url;
            let error = CommandError::new(Exit::SERVER, format_args!("cannot reach the API at {url}: {why}"));
            let hint = "check the URL, and that a supervisor listens there (`meshwork supervisor --listen ADDRESS`)";
            error.with_hint(hint).temporary(true)
        })?);
        Ok(())
    }

    /// Calls a method.
    pub(crate) async fn call(
        &self,
        method: &str,
        params: &RawValue,
    ) -> Result<Box<RawValue>, CommandError> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (status, body) = self.send(RPC, Some(request.to_string())).await?;
        match serde_json::from_slice::<Answer>(&body) {
            Ok(Answer {
                result: Some(result),
                ..
            }) => Ok(result),
            Ok(Answer {
                error: Some(Failure { message, data }),
                ..
            }) => Err(failed(&data.code, message, data.hint)),
            _ => Err(self.refused(status, &body)),
        }
    }

    /// Reads a path.
    pub(crate) async fn get(&self, path: &str) -> Result<String, CommandError> {
        let (status, body) = self.send(path, None).await?;
        match status.is_success() {
            true => Ok(String::from_utf8_lossy(&body).into_owned()),
            false => Err(self.refused(status, &body)),
        }
    }

    async fn send(
        &self,
        path: &str,
        body: Option<String>,
    ) -> Result<(StatusCode, Vec<u8>), CommandError> {
        let mut connection = self.connection.lock().await;
        self.sender(&mut connection).await?;
        // It is put back after a whole answer only.
        let mut sender = connection
            .take()
            .ok_or_else(|| self.broken("it was closed"))?;
        let key = self.key.as_ref();
        let sent = self.address.send(&mut sender, (path, body), key).await;
        let answer = sent.map_err(|why| self.broken(why))?;
        *connection = Some(sender);
        Ok(answer)
    }

    fn broken(&self, why: impl std::fmt::Display) -> CommandError {
        let url = &self.url;
        let error = CommandError::new(
            Exit::SERVER,
            format_args!("the API at {url} broke off a call: {why}"),
        );
        error.with_hint("the call may have been done: look before you repeat it")
    }

    /// Error of an answer that is none of the method.
    fn refused(&self, status: StatusCode, body: &[u8]) -> CommandError {
        if let Ok(Problem { detail, code, hint }) = serde_json::from_slice(body) {
            return failed(&code, detail, hint);
        }
        let url = &self.url;
        let error = CommandError::new(
            Exit::SERVER,
            format_args!("{url} is no API of Meshwork: it answers HTTP {status}"),
        );
        error.with_hint("give the URL of a `meshwork supervisor --listen ADDRESS`, without `/rpc`")
    }
}

/// Reads a key. No message shows it.
fn read_key(file: &Path) -> Result<HeaderValue, CommandError> {
    let read = fs::read(file).map_err(|error| {
        CommandError::usage(format_args!(
            "the key file {} cannot be read: {error}",
            file.display()
        ))
    })?;
    let text = String::from_utf8_lossy(&read);
    let key = text.trim();
    let header = HeaderValue::from_str(&format!("Bearer {key}")).ok();
    let header = header.filter(|_| !key.is_empty() && !key.contains(char::is_whitespace));
    let Some(mut header) = header else {
        let error = CommandError::usage(format_args!(
            "the key file {} has no key: it has to have one line, as mwk_NAME.SECRET",
            file.display()
        ));
        return Err(error.with_hint("`meshwork key create NAME --scope user` prints a key once"));
    };
    header.set_sensitive(true);
    Ok(header)
}

/// Returns the error of a call, with the exit code that it has on a store.
fn failed(code: &str, message: String, hint: Option<String>) -> CommandError {
    let code = Code::find(code);
    let error = CommandError::new(code.map_or(Exit::FAILED, exit_of), message);
    let hint = match code {
        Some(Code::AuthenticationRequired) => Some(
            "give your key with --key-file; `meshwork key create` makes one where the store is"
                .to_owned(),
        ),
        _ => hint,
    };
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Returns the exit code of an error of the API.
pub(crate) fn exit_of(code: Code) -> Exit {
    match code {
        Code::InvalidParams | Code::MethodNotFound => Exit::USAGE,
        Code::NotFound => Exit::NO_JOB,
        Code::Timeout => Exit::NOT_ENDED,
        Code::StorageError => Exit::SERVER,
        Code::Internal => Exit::SYSTEM,
        _ => Exit::FAILED,
    }
}
