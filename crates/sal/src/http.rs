//! Requests by `curl`, which has TLS and the certificates of the host.

use std::io;
use std::process::{Command, Stdio};

/// Program of all requests.
const CURL: &str = "curl";

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("cannot start `{CURL}`: {0}")]
    Start(io::Error),
    #[error("{0}")]
    Failed(String),
    #[error("`{CURL}` printed no status")]
    NoStatus,
}

/// Returns the status of a URL after redirections. `seconds` is the limit of the whole request.
pub(crate) fn status(url: &str, seconds: u64) -> Result<i64, HttpError> {
    let mut command = curl();
    command.args(["--head", "--max-time", &seconds.to_string()]);
    command.args(["--output", "/dev/null", "--write-out", "%{http_code}"]);
    command.args(["--url", url]);
    let printed = finished(command)?;
    printed.trim().parse().map_err(|_| HttpError::NoStatus)
}

/// Stores the content at a URL in a file. A server's error is an error.
pub(crate) fn download(url: &str, path: &str) -> Result<(), HttpError> {
    let mut command = curl();
    command.args(["--fail", "--output", path, "--url", url]);
    finished(command).map(drop)
}

fn curl() -> Command {
    let mut command = Command::new(CURL);
    command.args(["--silent", "--show-error", "--location"]);
    command.args(["--max-redirs", "10", "--connect-timeout", "10"]);
    // No files of the host.
    command.args(["--proto", "=http,https"]);
    command.stdin(Stdio::null());
    command
}

fn finished(mut command: Command) -> Result<String, HttpError> {
    let output = command.output().map_err(HttpError::Start)?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let why = String::from_utf8_lossy(&output.stderr);
            Err(HttpError::Failed(why.trim().to_owned()))
        }
    }
}
