//! `submit()` of a Python script, over two named pipes in the folder of the run: one for requests, a line of JSON per
//! child, and one for answers. The other end is in `bootstrap.py`. A script that writes anything else harms only
//! itself.

use std::io;
use std::path::Path;

use data_encoding::BASE64;
use meshwork_model::job::NewChild;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio_util::task::AbortOnDropHandle;

use super::super::submit::{self, Submitter};

/// Names of the pipes, also used in `bootstrap.py`.
const ASKS: &str = "submit";
const ANSWERS: &str = "submitted";

/// Greatest length of a line. It can contain the largest input in base64, and the largest script and environment with
/// each byte escaped (`\u0001`). Also used in `bootstrap.py`.
const MAX_LINE: usize = 32 * 1024 * 1024;

/// Size of one read: the capacity of a pipe.
const CHUNK: usize = 64 * 1024;

/// Longest error text, in bytes: its line, with each byte escaped, fits into a pipe.
const MAX_WHY: usize = 2048;

/// Server of the requests of one run, one after another.
#[derive(Debug)]
pub(super) struct Requests {
    /// Held, so that the pipe does not end before the run.
    _ask: pipe::Sender,
    /// Held, so that the pipe does not end before the run.
    _answer: pipe::Receiver,
    _task: AbortOnDropHandle<()>,
}

/// Request of a script.
#[derive(Debug, Deserialize)]
struct Request {
    /// Number of the call, since a script may have given up an earlier one.
    call: u64,
    script: String,
    /// Base64.
    input: Option<String>,
    #[serde(default)]
    options: Map<String, Value>,
}

#[derive(Debug, Default, Serialize)]
struct Answer {
    /// Number of the call; 0 for an invalid line.
    call: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Requests {
    /// Creates the pipes in `folder`, and answers requests.
    pub(super) fn listen(folder: &Path, submitter: Option<Submitter>) -> io::Result<Self> {
        let [asks, answers] = [ASKS, ANSWERS].map(|name| folder.join(name));
        for path in [&asks, &answers] {
            mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        }
        let open = pipe::OpenOptions::new;
        let (receiver, ask) = (open().open_receiver(&asks)?, open().open_sender(&asks)?);
        let (answer, sender) = (
            open().open_receiver(&answers)?,
            open().open_sender(&answers)?,
        );
        let task = tokio::spawn(serve(receiver, sender, submitter));
        Ok(Self {
            _ask: ask,
            _answer: answer,
            _task: AbortOnDropHandle::new(task),
        })
    }
}

/// Answers each line before it reads the next one, so a script that reads no answers blocks only itself.
async fn serve(mut asks: pipe::Receiver, mut answers: pipe::Sender, submitter: Option<Submitter>) {
    let (mut chunk, mut line, mut length) = (vec![0; CHUNK], Vec::new(), 0_usize);
    while let Ok(read @ 1..) = asks.read(&mut chunk).await {
        let mut rest = &chunk[..read];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            keep(&mut line, &mut length, &rest[..end]);
            rest = &rest[end + 1..];
            let request = std::mem::take(&mut line);
            // An incomplete request was abandoned by the bootstrap.
            if std::mem::take(&mut length) == 0 {
                continue;
            }
            let answer = answer(request, submitter.as_ref()).await;
            if answers.write_all(&encode_answer(&answer)).await.is_err() {
                return;
            }
        }
        keep(&mut line, &mut length, rest);
    }
}

/// Appends to a line. Beyond the limit it only counts bytes.
fn keep(line: &mut Vec<u8>, length: &mut usize, more: &[u8]) {
    *length = length.saturating_add(more.len());
    let room = (MAX_LINE + 1).saturating_sub(line.len());
    line.extend_from_slice(&more[..more.len().min(room)]);
}

fn encode_answer(answer: &Answer) -> Vec<u8> {
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    line
}

async fn answer(line: Vec<u8>, submitter: Option<&Submitter>) -> Answer {
    // The largest request takes a tenth of a second.
    let read = tokio::task::spawn_blocking(move || read(&line)).await;
    let (call, child) = match read {
        Ok(Ok((call, child))) => (call, child),
        Ok(Err((call, why))) => return refusal(call, &why),
        Err(_) => return Answer::default(),
    };
    match child {
        Ok(child) => match submit::submit(submitter, &child).await {
            Ok(id) => Answer {
                call,
                id: Some(id.to_string()),
                error: None,
            },
            Err(error) => refusal(call, &error.to_string()),
        },
        Err(why) => refusal(call, &why),
    }
}

fn refusal(call: u64, why: &str) -> Answer {
    Answer {
        call,
        id: None,
        error: Some(why[..why.floor_char_boundary(MAX_WHY)].to_owned()),
    }
}

/// A child, or the reason why the request is invalid.
type Parsed = Result<NewChild, String>;

/// Parses a line. Returns the call's number with the child, or the error.
fn read(line: &[u8]) -> Result<(u64, Parsed), (u64, String)> {
    if line.len() > MAX_LINE {
        // The bootstrap checks the length before it writes.
        return Err((0, format!("a request takes at most {MAX_LINE} bytes")));
    }
    let request: Request = serde_json::from_slice(line)
        .map_err(|error| (0, format!("this is no request of submit(): {error}")))?;
    let Request {
        call,
        script,
        input,
        options,
    } = request;
    let input = input
        .map(|input| BASE64.decode(input.as_bytes()))
        .transpose();
    let input = input.map_err(|error| (call, format!("the input is no base64: {error}")))?;
    let child = submit::child(script, input, options);
    Ok((call, child.map_err(|error| error.to_string())))
}

#[cfg(test)]
mod tests {
    use meshwork_model::job::limits::{MAX_ENV, MAX_INPUT, MAX_SCRIPT};

    use super::*;

    #[test]
    fn the_largest_child_fits_into_a_line() {
        let request = serde_json::json!({
            "call": u64::MAX,
            "script": "\u{1}".repeat(MAX_SCRIPT),
            "input": BASE64.encode(&vec![0; MAX_INPUT]),
            "options": {"env": {"A": "\u{1}".repeat(MAX_ENV)}, "key": "\u{1}".repeat(256), "priority": "normal"},
        });
        let line = serde_json::to_vec(&request).unwrap();
        assert!(line.len() <= MAX_LINE, "{} of {MAX_LINE}", line.len());
        let (_, child) = read(&line).unwrap();
        assert_eq!(child.unwrap().input.unwrap().len(), MAX_INPUT);
    }

    #[test]
    fn what_is_no_request_is_answered_with_why() {
        for line in [
            &b"x"[..],
            b"{}",
            b"\xff\0",
            b"[1]",
            b"{\"call\":-1,\"script\":\"\"}",
        ] {
            let (call, why) = read(line).unwrap_err();
            assert!(call == 0 && why.contains("no request"), "{why}");
        }
        let (call, why) = read(br#"{"call":7,"script":"1","input":"-"}"#).unwrap_err();
        assert!(call == 7 && why.contains("no base64"), "{why}");
        let (call, child) = read(br#"{"call":7,"script":"1","options":{"x":1}}"#).unwrap();
        assert!(call == 7 && child.unwrap_err().contains("no option `x`"));
    }

    #[test]
    fn an_endless_line_is_not_kept() {
        let (mut line, mut length) = (Vec::new(), 0);
        for _ in 0..=MAX_LINE / CHUNK + 1 {
            keep(&mut line, &mut length, &[b'x'; CHUNK]);
        }
        assert_eq!(line.len(), MAX_LINE + 1);
        assert!(length > line.len());
        assert!(read(&line).unwrap_err().1.contains("at most"));
    }

    #[test]
    fn an_error_fits_into_a_pipe_as_a_whole() {
        let answer = encode_answer(&refusal(u64::MAX, &"ä\u{1}".repeat(MAX_WHY)));
        assert!(answer.len() < 64 * 1024, "{}", answer.len());
    }
}
