//! A process of the command: what it says, how it ends, and that it ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{BOUND, json};

/// More lines than any test prints.
const LINES: usize = 100_000;

/// A process that runs, killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    /// Output that was read before the end.
    said: String,
}

/// A process that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    /// None if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Running {
    pub(crate) fn start(command: Command) -> Self {
        Self::with_stdin(command, Stdio::null())
    }

    /// With this as its stdin.
    pub(crate) fn with_stdin(mut command: Command, stdin: impl Into<Stdio>) -> Self {
        let mut child = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = lines_of(child.stdout.take().unwrap());
        let stderr = lines_of(child.stderr.take().unwrap());
        Self {
            child,
            stdout,
            stderr,
            said: String::new(),
        }
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line of its stdout.
    pub(crate) fn line(&mut self) -> String {
        let line = self.stdout.recv_timeout(BOUND);
        let line = line.unwrap_or_else(|error| panic!("no line ({error}): {}", self.words()));
        self.said.push_str(&line);
        line
    }

    /// The next line of its stdout; none if it has ended.
    pub(crate) fn try_line(&mut self) -> Option<String> {
        self.stdout.recv_timeout(BOUND).ok()
    }

    /// The next line of its stderr.
    pub(crate) fn said(&mut self) -> String {
        self.stderr.recv_timeout(BOUND).unwrap()
    }

    /// The next line of its stderr; none if it has ended.
    pub(crate) fn says(&mut self) -> Option<String> {
        self.stderr.recv_timeout(BOUND).ok()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Ends it as a service manager does; it has to end well.
    pub(crate) fn stop(self) -> Done {
        self.signal(Signal::TERM);
        self.ended().ok()
    }

    /// `kill -9`; returns when it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// `kill -9`; what it had written to its stdout.
    pub(crate) fn killed(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.said.clone() + all(&self.stdout, BOUND).as_str()
    }

    /// Waits for its end.
    pub(crate) fn ended(self) -> Done {
        self.ended_after_silence(BOUND)
    }

    /// Waits for the end of a process that may say nothing for this long.
    pub(crate) fn ended_after_silence(mut self, longest: Duration) -> Done {
        // Both streams end with the process.
        let stdout = self.said.clone() + all(&self.stdout, longest).as_str();
        let stderr = all(&self.stderr, longest);
        let status = self.child.wait().unwrap();
        Done {
            code: status.code(),
            stdout,
            stderr,
        }
    }

    /// Returns the output on stderr so far.
    fn words(&self) -> String {
        self.stderr.try_iter().collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended before.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Done {
    /// Itself, if its exit code is `code`.
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Itself, if all went well.
    pub(crate) fn ok(self) -> Self {
        self.exits(0)
    }

    /// Its stdout as lines of JSON.
    pub(crate) fn jsons(&self) -> Vec<Value> {
        self.stdout.lines().map(json).collect()
    }

    /// Its stdout as one JSON object.
    pub(crate) fn json(&self) -> Value {
        let mut jsons = self.jsons();
        assert_eq!(jsons.len(), 1, "{self:#?}");
        jsons.remove(0)
    }
}

/// The lines of a stream, each with its end.
fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(LINES);
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        loop {
            let mut line = Vec::new();
            let read = stream.read_until(b'\n', &mut line).unwrap_or(0);
            let line = String::from_utf8_lossy(&line).into_owned();
            if read == 0 || sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn all(lines: &Receiver<String>, longest: Duration) -> String {
    let mut text = String::new();
    loop {
        match lines.recv_timeout(longest) {
            Ok(line) => text.push_str(&line),
            Err(mpsc::RecvTimeoutError::Disconnected) => return text,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("it does not end; it said: {text}"),
        }
    }
}
