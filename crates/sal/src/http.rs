//! Requests by `curl`, which has TLS and the certificates of the host. URLs and bodies go to its stdin: other users of the host
//! see the arguments of a process.

use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Program of all requests.
const CURL: &str = "curl";
/// Greatest size of an answer that a script reads.
const MAX_ANSWER: u64 = 16 << 20;

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("cannot start `{CURL}`: {0}")]
    Start(io::Error),
    #[error("{0}")]
    Failed(String),
    #[error("`{CURL}` printed no status")]
    NoStatus,
    #[error("Request failed with status: {0}")]
    Status(String),
    #[error("Failed to parse response: {0}")]
    Json(serde_json::Error),
}

/// Returns the status of a URL after redirections. `seconds` is the limit of the whole request.
pub(crate) fn status(url: &str, seconds: u64) -> Result<i64, HttpError> {
    let mut command = curl();
    command.args(["--head", "--max-time", &seconds.to_string()]);
    command.args(["--output", "/dev/null", "--write-out", "%{http_code}"]);
    let printed = finished(command, &[("url", url)])?;
    printed.trim().parse().map_err(|_| HttpError::NoStatus)
}

/// Stores the content at a URL in a file. A server's error is an error.
pub(crate) fn download(url: &str, path: &str) -> Result<(), HttpError> {
    let mut command = curl();
    command.args(["--fail", "--output", path]);
    finished(command, &[("url", url)]).map(drop)
}

/// A call of an API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) method: &'static str,
    pub(crate) url: &'a str,
    pub(crate) body: Option<&'a Value>,
    /// Longest wait for the answer, in seconds.
    pub(crate) seconds: u64,
}

/// Returns the answer of an API; `None` for one without content.
pub(crate) fn call(call: Call<'_>) -> Result<Option<Value>, HttpError> {
    let mut command = curl();
    command.args(["--request", call.method]);
    command.args(["--max-time", &call.seconds.to_string()]);
    command.args(["--write-out", "\n%{http_code}"]);
    let body = call.body.map(Value::to_string);
    let mut options = vec![("url", call.url)];
    if let Some(body) = &body {
        options.push(("header", "Content-Type: application/json"));
        options.push(("data-raw", body));
    }
    let printed = finished(command, &options)?;
    let (text, status) = printed.rsplit_once('\n').ok_or(HttpError::NoStatus)?;
    match status.parse() {
        Ok(204) => Ok(None),
        Ok(200..=299) => serde_json::from_str(text)
            .map(Some)
            .map_err(HttpError::Json),
        Ok(0) | Err(_) => Err(HttpError::NoStatus),
        Ok(_) => Err(HttpError::Status(
            format!("{status} {text}").trim().to_owned(),
        )),
    }
}

fn curl() -> Command {
    let mut command = Command::new(CURL);
    command.args(["--silent", "--show-error", "--location"]);
    command.args(["--max-redirs", "10", "--connect-timeout", "10"]);
    // No files of the host.
    command.args(["--proto", "=http,https", "--config", "-"]);
    command
}

/// Returns the output of curl, which reads these options from its stdin.
fn finished(mut command: Command, options: &[(&str, &str)]) -> Result<String, HttpError> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut curl = command.spawn().map_err(HttpError::Start)?;
    if let Some(mut stdin) = curl.stdin.take() {
        // Without all options curl says what is wrong.
        let _ = stdin.write_all(config(options).as_bytes());
    }
    let mut printed = Vec::new();
    if let Some(stdout) = curl.stdout.take() {
        let read = stdout.take(MAX_ANSWER).read_to_end(&mut printed);
        // Curl ends with an error when nobody reads the rest.
        read.map_err(|error| HttpError::Failed(error.to_string()))?;
    }
    let output = curl.wait_with_output().map_err(HttpError::Start)?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&printed).into_owned()),
        false => {
            let why = String::from_utf8_lossy(&output.stderr);
            Err(HttpError::Failed(why.trim().to_owned()))
        }
    }
}

/// Returns the lines of a configuration of curl.
fn config(options: &[(&str, &str)]) -> String {
    let mut lines = String::new();
    for (name, value) in options {
        let _ = write!(lines, "{name} = \"");
        for c in value.chars() {
            match c {
                '\\' => lines.push_str("\\\\"),
                '"' => lines.push_str("\\\""),
                '\n' => lines.push_str("\\n"),
                '\r' => lines.push_str("\\r"),
                '\t' => lines.push_str("\\t"),
                other => lines.push(other),
            }
        }
        lines.push_str("\"\n");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_one_option() {
        let lines = config(&[("url", "http://a/\"\noutput = \"/etc/x\\")]);
        let expected = "url = \"http://a/\\\"\\noutput = \\\"/etc/x\\\\\"\n";
        assert_eq!(lines, expected);
    }
}
