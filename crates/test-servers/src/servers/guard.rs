//! The process that guards a server and ends it.
//!
//! A test that is killed runs no destructor, and a server must not outlive it. Each server is therefore the child of
//! a small shell that waits for the end of its stdin. Only the test's process has the other end, which the kernel
//! closes however that process ends.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The shell's script: it starts the server, prints its process id, and waits for the end of stdin. Then it kills the
/// server, and removes the directory unless the word `keep` was sent. It closes its own stdout, so that the end of
/// the stream is the end of the server. It reaps the server only at the end, so that the process id is not reused
/// meanwhile.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
dir=$1; shift
"$@" </dev/null 2>&1 &
server=$!
echo "guarded process $server"
exec >/dev/null
read -r word
kill -9 "$server" 2>/dev/null
wait "$server" 2>/dev/null
[ "$word" = keep ] || rm -rf "$dir"
"#;

/// Lines that a server, a sentinel and PgBouncer print when they accept connections, from Redis 7 to Valkey 9.
const READY: [&str; 3] = [
    "eady to accept connections",
    "Sentinel ID is",
    "process up: PgBouncer",
];

/// Time for a server to start or to die: far more than needed, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Number of output lines that are kept to explain a failed start.
const KEPT_LINES: usize = 200;

pub(crate) struct Guard {
    shell: Child,
    server: Pid,
    /// In a mutex only because several threads use a shared server.
    output: Mutex<Receiver<String>>,
}

/// The output of a server that did not start.
#[derive(Debug)]
pub(crate) struct StartError {
    pub(crate) output: String,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server did not start; it said:\n{}", self.output)
    }
}

impl Guard {
    /// Starts `program` and returns when it accepts connections.
    pub(crate) fn start(program: &Path, args: &[String], dir: &Path) -> Result<Self, StartError> {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "guard"])
            .arg(dir)
            .arg(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("/bin/sh can be started");
        let output = lines_of(shell.stdout.take().expect("stdout is piped"));
        match wait_until_ready(&output) {
            Ok(server) => Ok(Self {
                shell,
                server,
                output: Mutex::new(output),
            }),
            Err(error) => {
                finish(&mut shell, "keep");
                Err(error)
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.server, signal)
            .expect("the server's process is not reaped before its guard ends");
    }

    /// Waits until the process is gone: its stdout is closed by then.
    pub(crate) fn wait_for_death(&mut self) {
        let output = self
            .output
            .get_mut()
            .expect("nobody panics with the lock held");
        let deadline = Instant::now() + PATIENCE;
        loop {
            match output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("the server is still there after {PATIENCE:?}")
                }
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.as_raw_nonzero().get().unsigned_abs()
    }

    /// Kills the server if it still runs, and keeps its directory.
    pub(crate) fn end_and_keep_files(mut self) {
        finish(&mut self.shell, "keep");
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        finish(&mut self.shell, "");
    }
}

fn finish(shell: &mut Child, word: &str) {
    if let Some(mut stdin) = shell.stdin.take() {
        // A guard that is gone has already done this.
        stdin.write_all(word.as_bytes()).ok();
        drop(stdin);
        shell.wait().ok();
    }
}

/// Reads the stream to its end, even without a receiver: a full pipe would block the server. Excess lines are
/// dropped.
fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(KEPT_LINES);
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            sender.try_send(line).ok();
        }
    });
    receiver
}

fn wait_until_ready(output: &Receiver<String>) -> Result<Pid, StartError> {
    let deadline = Instant::now() + PATIENCE;
    let mut server = None;
    let mut said = String::new();
    let mut ready = false;
    loop {
        if let (true, Some(pid)) = (ready, server) {
            return Ok(pid);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(line) = output.recv_timeout(left) else {
            return Err(StartError { output: said });
        };
        if let Some(number) = line.strip_prefix("guarded process ") {
            server = number.trim().parse().ok().and_then(Pid::from_raw);
        }
        ready |= READY.iter().any(|words| line.contains(words));
        said.push_str(&line);
        said.push('\n');
    }
}
