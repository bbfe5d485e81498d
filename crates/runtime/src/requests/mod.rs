//! Requests of the processes of a run: `add_child()` and actions, over a Unix socket in the folder of the run, or over an
//! inherited one ([`inherited`]). Clients are `bootstrap.py` and the command. A process that writes anything else harms only itself.

mod inherited;
mod wire;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64;
use meshwork_model::job::NewChild;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::Run;
use super::action::{ActionCall, ActionCallError, ActionReply, Callback, Delivery, RunCalls};
use super::children::{self, AddChild};
use super::sandbox::Orders;
use super::workdir::Folder;
use inherited::Inherited;
pub use wire::{ActionDelivery, ActionFault, ActionMessage, CALLS_VARIABLE, RunAnswer, ask};
use wire::{MAX_LINE, Request};

/// Size of one read: the buffer of a socket.
const CHUNK: usize = 64 * 1024;

/// Longest error text, in bytes: more than any error needs, and short in logs.
const MAX_WHY: usize = 2048;

/// Greatest number of requests in progress: each may take [`MAX_LINE`] bytes. Further ones wait.
const MAX_REQUESTS: usize = 16;

/// Pause after a connection could not be accepted, as when the worker has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Server of the requests of one run. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Requests {
    _task: AbortOnDropHandle<()>,
    inherited: Option<OwnedFd>,
}

/// Source of connections.
enum Listener {
    Path(UnixListener),
    Inherited(Inherited),
}

impl Listener {
    /// Waits for a connection. Returns `None` if there will be no more.
    async fn accept(&self) -> io::Result<Option<UnixStream>> {
        match self {
            Self::Path(listener) => listener.accept().await.map(|(stream, _)| Some(stream)),
            Self::Inherited(inherited) => inherited.accept().await,
        }
    }
}

/// Carries out the requests of a run.
struct Worker {
    child_adder: Option<Arc<dyn AddChild>>,
    calls: RunCalls,
}

impl Requests {
    /// Creates the socket in `folder`, or the one to be inherited, and answers requests.
    pub(super) fn listen(folder: &Folder, run: &Run, orders: &Orders) -> io::Result<Self> {
        let worker = Worker {
            child_adder: run.child_adder.clone(),
            calls: RunCalls::of(run),
        };
        let (listener, inherited) = if orders.inherits_calls() {
            let (ours, theirs) = Inherited::pair()?;
            (Listener::Inherited(ours), Some(theirs))
        } else {
            let (path, _folder) = wire::reachable(&folder.calls())?;
            (Listener::Path(UnixListener::bind(path)?), None)
        };
        let task = tokio::spawn(serve(listener, Arc::new(worker)));
        Ok(Self {
            _task: AbortOnDropHandle::new(task),
            inherited,
        })
    }

    /// Takes the socket that the processes of the run inherit.
    pub(super) fn inherited(&mut self) -> Option<OwnedFd> {
        self.inherited.take()
    }
}

/// Answers each connection in a task of its own, so a process that reads no answer blocks only itself.
async fn serve(listener: Listener, worker: Arc<Worker>) {
    let (slots, mut tasks) = (Arc::new(Semaphore::new(MAX_REQUESTS)), JoinSet::new());
    loop {
        // The semaphore is never closed.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        while tasks.try_join_next().is_some() {}
        match listener.accept().await {
            Ok(None) => break,
            Ok(Some(stream)) => {
                let worker = Arc::clone(&worker);
                tasks.spawn(async move {
                    // An error means that the process is gone.
                    let _ = serve_one(stream, &worker).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a request of a script was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// Reads a request and answers it. A process that disconnects abandons its request.
async fn serve_one(mut stream: UnixStream, worker: &Worker) -> io::Result<()> {
    let Some(line) = read_line(&mut stream).await? else {
        return Ok(());
    };
    let (mut reader, mut writer) = stream.split();
    let answer = tokio::select! {
        answer = answer(line, worker) => answer,
        () = disconnected(&mut reader) => return Ok(()),
    };
    writer.write_all(&encode_answer(&answer)).await
}

/// Reads a line. A longer one than [`MAX_LINE`] is cut after one byte more. Returns `None` if the line has no end.
async fn read_line(stream: &mut UnixStream) -> io::Result<Option<Vec<u8>>> {
    let (mut chunk, mut line) = (vec![0; CHUNK], Vec::new());
    loop {
        let read = stream.read(&mut chunk).await?;
        let end = chunk[..read].iter().position(|byte| *byte == b'\n');
        let room = (MAX_LINE + 1).saturating_sub(line.len());
        line.extend_from_slice(&chunk[..end.unwrap_or(read).min(room)]);
        if end.is_some() || line.len() > MAX_LINE {
            return Ok(Some(line));
        }
        if read == 0 {
            return Ok(None);
        }
    }
}

/// Returns when the other side has disconnected. What it still writes is dropped.
async fn disconnected(reader: &mut (impl AsyncReadExt + Unpin)) {
    let mut chunk = [0; 1024];
    while let Ok(1..) = reader.read(&mut chunk).await {}
}

fn encode_answer(answer: &RunAnswer) -> Vec<u8> {
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    line
}

async fn answer(line: Vec<u8>, worker: &Worker) -> RunAnswer {
    // The largest request takes a tenth of a second.
    let read = tokio::task::spawn_blocking(move || read(&line)).await;
    let order = match read {
        Ok(Ok(order)) => order,
        Ok(Err(why)) => return refusal(&why),
        Err(_) => return RunAnswer::default(),
    };
    match order {
        Order::Child(child) => {
            match children::add_child(worker.child_adder.as_deref(), &child).await {
                Ok(id) => RunAnswer {
                    id: Some(id.to_string()),
                    ..RunAnswer::default()
                },
                Err(error) => refusal(&error.to_string()),
            }
        }
        Order::Action(action) => match worker.calls.call(action).await {
            Ok(ActionReply { json, ids }) => match RawValue::from_string(json) {
                Ok(reply) => RunAnswer {
                    reply: Some(reply),
                    ids: Some(ids),
                    ..RunAnswer::default()
                },
                Err(error) => refusal(&format!("the reply is no JSON: {error}")),
            },
            Err(error) => failed(&error),
        },
        Order::None(why) => refusal(&why),
    }
}

fn failed(error: &ActionCallError) -> RunAnswer {
    let failed = ActionFault {
        kind: error.kind().to_owned(),
        code: error.code().map(ToOwned::to_owned),
        details: error.details().cloned(),
    };
    RunAnswer {
        failed: Some(failed),
        ids: error.ids().cloned(),
        ..refusal(&error.to_string())
    }
}

fn refusal(why: &str) -> RunAnswer {
    RunAnswer {
        error: Some(why[..why.floor_char_boundary(MAX_WHY)].to_owned()),
        ..RunAnswer::default()
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

/// Parses a line.
fn read(line: &[u8]) -> Result<Order, String> {
    if line.len() > MAX_LINE {
        // The bootstrap checks the length before it writes.
        return Err(format!("a request takes at most {MAX_LINE} bytes"));
    }
    let unreadable = |why: &dyn std::fmt::Display| format!("this is no request of a script: {why}");
    let request: Request = serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
    let Request {
        action,
        script,
        input,
        options,
    } = request;
    if let Some(action) = action {
        return Ok(Order::Action(action_call(action)));
    }
    let script = script.ok_or_else(|| unreadable(&"it has no script"))?;
    let input = input
        .map(|input| BASE64.decode(input.as_bytes()))
        .transpose();
    let input = input.map_err(|error| format!("the input is no base64: {error}"))?;
    let child = children::child(script, input, options);
    Ok(child.map_or_else(|error| Order::None(error.to_string()), Order::Child))
}

fn action_call(action: ActionMessage) -> ActionCall {
    let delivery = match action.delivery {
        ActionDelivery::Call => Delivery::Call {
            timeout: action.timeout,
        },
        ActionDelivery::Send => Delivery::Send {
            callback: action.callback.map(|event| Callback {
                event,
                remember: action.remember,
            }),
        },
        ActionDelivery::Notify => Delivery::Notify,
    };
    ActionCall {
        action_type: action.action_type,
        data: action.data.text().to_owned(),
        delivery,
    }
}

#[cfg(test)]
mod tests {
    use meshwork_model::job::limits::{MAX_ENV, MAX_INPUT, MAX_SCRIPT};

    use super::*;

    #[test]
    fn the_largest_child_fits_into_a_line() {
        let request = serde_json::json!({
            "script": "\u{1}".repeat(MAX_SCRIPT),
            "input": BASE64.encode(&vec![0; MAX_INPUT]),
            "options": {"env": {"A": "\u{1}".repeat(MAX_ENV)}, "key": "\u{1}".repeat(256), "priority": "normal"},
        });
        let line = serde_json::to_vec(&request).unwrap();
        assert!(line.len() <= MAX_LINE, "{} of {MAX_LINE}", line.len());
        let order = read(&line).unwrap();
        let Order::Child(child) = order else {
            panic!("no child: {order:?}")
        };
        assert_eq!(child.input.unwrap().len(), MAX_INPUT);
    }

    #[test]
    fn what_is_no_request_is_answered_with_why() {
        for line in [&b"x"[..], b"{}", b"\xff\0", b"[1]", b"{\"script\":1}"] {
            let why = read(line).unwrap_err();
            assert!(why.contains("no request"), "{why}");
        }
        let why = read(br#"{"script":"1","input":"-"}"#).unwrap_err();
        assert!(why.contains("no base64"), "{why}");
        let order = read(br#"{"script":"1","options":{"x":1}}"#).unwrap();
        assert!(matches!(order, Order::None(why) if why.contains("no option `x`")));
        let why = read(br#"{"action":{"type":"a.b"}}"#).unwrap_err();
        assert!(why.contains("missing field `data`"), "{why}");
    }

    #[test]
    fn the_data_of_a_call_keeps_its_numbers() {
        let line =
            br#"{"action":{"type":"a.b","data":{"n":12345678901234567890123},"timeout":null}}"#;
        let order = read(line).unwrap();
        let Order::Action(action) = order else {
            panic!("no call: {order:?}")
        };
        assert_eq!(action.delivery, Delivery::Call { timeout: None });
        assert_eq!(action.data, r#"{"n":12345678901234567890123}"#);
    }

    #[tokio::test]
    async fn an_endless_line_is_not_kept() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let writes = tokio::spawn(async move {
            let (mut there, chunk) = (there, [b'x'; CHUNK]);
            while there.write_all(&chunk).await.is_ok() {}
        });
        let line = read_line(&mut here).await.unwrap().unwrap();
        assert_eq!(line.len(), MAX_LINE + 1);
        drop(here);
        writes.await.unwrap();
        assert!(read(&line).unwrap_err().contains("at most"));
    }

    #[test]
    fn an_error_is_short() {
        let answer = encode_answer(&refusal(&"ä\u{1}".repeat(MAX_WHY)));
        assert!(answer.len() < 64 * 1024, "{}", answer.len());
    }
}
