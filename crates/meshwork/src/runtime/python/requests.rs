//! `submit()` and `call_action()` of a Python script, over two named pipes in the folder of the run: one for requests, a
//! line of JSON per child or call, and one for answers. The other end is in `bootstrap.py`. A script that writes
//! anything else harms only itself.

use std::io;
use std::path::Path;

use data_encoding::BASE64;
use meshwork_model::job::NewChild;
use meshwork_model::nooble::Data;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio_util::task::AbortOnDropHandle;

use super::super::Run;
use super::super::action::{ActionCall, ActionCallError, RunCalls};
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
    /// A call of an action. Without it, the request is for a child.
    action: Option<Action>,
    script: Option<String>,
    /// Base64.
    input: Option<String>,
    #[serde(default)]
    options: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Action {
    #[serde(rename = "type")]
    action_type: String,
    data: Data,
    timeout: Option<f64>,
}

/// The parts of an error of `call_action()` for programs.
#[derive(Debug, Serialize)]
struct Kind {
    kind: String,
    code: Option<String>,
    details: Option<Data>,
}

#[derive(Debug, Default, Serialize)]
struct Answer {
    /// Number of the call; 0 for an invalid line.
    call: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<Kind>,
}

/// Carries out the requests of a script.
struct Worker {
    submitter: Option<Submitter>,
    calls: RunCalls,
}

impl Requests {
    /// Creates the pipes in `folder`, and answers requests.
    pub(super) fn listen(folder: &Path, run: &Run) -> io::Result<Self> {
        let worker = Worker {
            submitter: run.submitter.clone(),
            calls: RunCalls::of(run),
        };
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
        let task = tokio::spawn(serve(receiver, sender, worker));
        Ok(Self {
            _ask: ask,
            _answer: answer,
            _task: AbortOnDropHandle::new(task),
        })
    }
}

/// Answers each line before it reads the next one, so a script that reads no answers blocks only itself.
async fn serve(mut asks: pipe::Receiver, mut answers: pipe::Sender, worker: Worker) {
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
            let answer = answer(request, &worker).await;
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

async fn answer(line: Vec<u8>, worker: &Worker) -> Answer {
    // The largest request takes a tenth of a second.
    let read = tokio::task::spawn_blocking(move || read(&line)).await;
    let (call, order) = match read {
        Ok(Ok((call, order))) => (call, order),
        Ok(Err((call, why))) => return refusal(call, &why),
        Err(_) => return Answer::default(),
    };
    match order {
        Order::Child(child) => match submit::submit(worker.submitter.as_ref(), &child).await {
            Ok(id) => Answer {
                call,
                id: Some(id.to_string()),
                ..Answer::default()
            },
            Err(error) => refusal(call, &error.to_string()),
        },
        Order::Action(action) => match worker.calls.call(action).await {
            Ok(data) => Answer {
                call,
                data: Some(data),
                ..Answer::default()
            },
            Err(error) => failed(call, &error),
        },
        Order::None(why) => refusal(call, &why),
    }
}

fn failed(call: u64, error: &ActionCallError) -> Answer {
    let failed = Kind {
        kind: error.kind().to_owned(),
        code: error.code().map(ToOwned::to_owned),
        details: error.details().cloned(),
    };
    Answer {
        failed: Some(failed),
        ..refusal(call, &error.to_string())
    }
}

fn refusal(call: u64, why: &str) -> Answer {
    Answer {
        call,
        error: Some(why[..why.floor_char_boundary(MAX_WHY)].to_owned()),
        ..Answer::default()
    }
}

/// A request that was read.
#[derive(Debug)]
enum Order {
    Child(NewChild),
    Action(ActionCall),
    /// The reason why the request for a child is invalid.
    None(String),
}

/// Parses a line. Returns the call's number with the request, or the error.
fn read(line: &[u8]) -> Result<(u64, Order), (u64, String)> {
    if line.len() > MAX_LINE {
        // The bootstrap checks the length before it writes.
        return Err((0, format!("a request takes at most {MAX_LINE} bytes")));
    }
    let unreadable = |why: &dyn std::fmt::Display| {
        let why = format!("this is no request of submit() or call_action(): {why}");
        (0, why)
    };
    let request: Request = serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
    let Request {
        call,
        action,
        script,
        input,
        options,
    } = request;
    if let Some(action) = action {
        let action = ActionCall {
            action_type: action.action_type,
            data: action.data.text().to_owned(),
            timeout: action.timeout,
        };
        return Ok((call, Order::Action(action)));
    }
    let script = script.ok_or_else(|| unreadable(&"it has no script"))?;
    let input = input
        .map(|input| BASE64.decode(input.as_bytes()))
        .transpose();
    let input = input.map_err(|error| (call, format!("the input is no base64: {error}")))?;
    let child = submit::child(script, input, options);
    let order = child.map_or_else(|error| Order::None(error.to_string()), Order::Child);
    Ok((call, order))
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
        let (_, order) = read(&line).unwrap();
        let Order::Child(child) = order else {
            panic!("no child: {order:?}")
        };
        assert_eq!(child.input.unwrap().len(), MAX_INPUT);
    }

    #[test]
    fn what_is_no_request_is_answered_with_why() {
        for line in [
            &b"x"[..],
            b"{}",
            b"\xff\0",
            b"[1]",
            b"{\"call\":1}",
            b"{\"call\":-1,\"script\":\"\"}",
        ] {
            let (call, why) = read(line).unwrap_err();
            assert!(call == 0 && why.contains("no request"), "{why}");
        }
        let (call, why) = read(br#"{"call":7,"script":"1","input":"-"}"#).unwrap_err();
        assert!(call == 7 && why.contains("no base64"), "{why}");
        let (call, order) = read(br#"{"call":7,"script":"1","options":{"x":1}}"#).unwrap();
        assert!(call == 7 && matches!(order, Order::None(why) if why.contains("no option `x`")));
        let (_, why) = read(br#"{"call":7,"action":{"type":"a.b"}}"#).unwrap_err();
        assert!(why.contains("missing field `data`"), "{why}");
    }

    #[test]
    fn the_data_of_a_call_keeps_its_numbers() {
        let line = br#"{"call":7,"action":{"type":"a.b","data":{"n":12345678901234567890123},"timeout":null}}"#;
        let (call, order) = read(line).unwrap();
        let Order::Action(action) = order else {
            panic!("no call: {order:?}")
        };
        assert_eq!((call, action.timeout), (7, None));
        assert_eq!(action.data, r#"{"n":12345678901234567890123}"#);
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
