//! Shared helpers for tests of the log, the owner and the listener: a client of the raw protocol, the whole content
//! of a server as text, and child processes.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use bytes::{Buf as _, Bytes, BytesMut};
use meshwork_embedded::{
    Opened, Options, Owner, Protocol, Reply, Session, Socket, decode_reply, encode_command,
    encode_reply, open,
};
use meshwork_test_servers::servers::ServerOptions;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::timeout,
};

/// The log in a data directory.
pub(crate) const LOG: &str = "appendonly.aof";

/// Timeout of actions that take milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Opens a directory that this process must own.
pub(crate) async fn own(dir: &Path, options: Options) -> Owner {
    match open(dir, options).await.unwrap() {
        Opened::Owner(owner) => owner,
        Opened::Attach(_) => panic!("somebody else owns {}", dir.display()),
    }
}

/// Opens a directory that another process must own.
pub(crate) async fn attach_to(dir: &Path, options: Options) -> Socket {
    match open(dir, options).await.unwrap() {
        Opened::Attach(socket) => socket,
        Opened::Owner(_) => panic!("nobody owned {}", dir.display()),
    }
}

/// Runs commands: a session in this process, or a connection.
pub(crate) trait Runs {
    async fn run(&mut self, args: &[&[u8]]) -> Reply;

    async fn text(&mut self, line: &str) -> Reply {
        let args: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        self.run(&args).await
    }

    async fn done(&mut self, line: &str) {
        let reply = self.text(line).await;
        assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
    }
}

impl Runs for Session {
    async fn run(&mut self, args: &[&[u8]]) -> Reply {
        let args: Vec<_> = args.iter().map(|arg| Bytes::copy_from_slice(arg)).collect();
        // The reply as a client of RESP2 gets it.
        let mut bytes = Vec::new();
        encode_reply(&self.call(&args).await, Protocol::Resp2, &mut bytes);
        decode_reply(&bytes).unwrap().expect("a whole reply").0
    }
}

/// A connection for the raw protocol.
pub(crate) struct Raw {
    pub(crate) stream: UnixStream,
    input: BytesMut,
}

impl Raw {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
        }
    }

    pub(crate) async fn connect(path: &Path) -> Self {
        Self::new(UnixStream::connect(path).await.unwrap())
    }

    pub(crate) async fn to(owner: &Owner) -> Self {
        Self::new(meshwork_embedded::attach(owner.dir()).await.unwrap())
    }

    /// Sends a command. A disconnect is reported by the missing reply.
    pub(crate) async fn send(&mut self, line: &str) {
        let args: Vec<_> = line.split_whitespace().collect();
        let mut bytes = Vec::new();
        encode_command(&args, &mut bytes);
        self.stream.write_all(&bytes).await.ok();
    }

    /// Returns the next reply, or `None` at the end of the stream.
    pub(crate) async fn reply(&mut self) -> Option<Reply> {
        loop {
            if let Some((reply, len)) = decode_reply(&self.input).unwrap() {
                self.input.advance(len);
                return Some(reply);
            }
            let read = timeout(PATIENCE, self.stream.read_buf(&mut self.input)).await;
            match read.expect("a reply in time") {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }
}

impl Runs for Raw {
    async fn run(&mut self, args: &[&[u8]]) -> Reply {
        let mut bytes = Vec::new();
        encode_command(args, &mut bytes);
        self.stream.write_all(&bytes).await.unwrap();
        self.reply().await.expect("the connection stays open")
    }
}

/// Every key of every database with its value and deadline, as text.
pub(crate) type Content = BTreeMap<(usize, String), String>;

/// Reads all data.
pub(crate) async fn content(server: &mut impl Runs) -> Content {
    let mut content = Content::new();
    for db in 0..16 {
        server.done(&format!("SELECT {db}")).await;
        let Reply::Array(keys) = server.text("KEYS *").await else {
            panic!("KEYS is an array")
        };
        for key in keys {
            let Reply::Bulk(key) = key else {
                panic!("a key is a bulk string")
            };
            let kind = server.run(&[b"TYPE", &key]).await;
            let value = match &kind {
                Reply::Status(kind) => match kind.as_str() {
                    "string" => server.run(&[b"GET", &key]).await,
                    "list" => server.run(&[b"LRANGE", &key, b"0", b"-1"]).await,
                    "hash" => sorted(server.run(&[b"HGETALL", &key]).await, 2),
                    "set" => sorted(server.run(&[b"SMEMBERS", &key]).await, 1),
                    "zset" => {
                        server
                            .run(&[b"ZRANGE", &key, b"0", b"-1", b"WITHSCORES"])
                            .await
                    }
                    "stream" => stream(server, &key).await,
                    other => panic!("type {other}"),
                },
                other => panic!("TYPE: {other:?}"),
            };
            let deadline = server.run(&[b"PEXPIRETIME", &key]).await;
            let key = String::from_utf8_lossy(&key).into_owned();
            content.insert((db, key), format!("{kind:?} {value:?} {deadline:?}"));
        }
    }
    content
}

/// Reads a stream without the times of its consumers and without its encoding.
async fn stream(server: &mut impl Runs, key: &[u8]) -> Reply {
    let all: [&[u8]; 6] = [b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"];
    without_moments(server.run(&all).await)
}

fn without_moments(reply: Reply) -> Reply {
    const MOMENTS: [&str; 4] = [
        "seen-time",
        "active-time",
        "radix-tree-keys",
        "radix-tree-nodes",
    ];
    let Reply::Array(items) = reply else {
        return reply;
    };
    let is_moment = |item: &Reply| matches!(item, Reply::Bulk(name) if MOMENTS.iter().any(|moment| name == moment));
    let mut kept = Vec::new();
    let mut items = items.into_iter();
    while let Some(item) = items.next() {
        if is_moment(&item) {
            items.next();
        } else {
            kept.push(without_moments(item));
        }
    }
    Reply::Array(kept)
}

/// Hashes and sets have no order.
fn sorted(reply: Reply, width: usize) -> Reply {
    let Reply::Array(items) = reply else {
        panic!("an array: {reply:?}")
    };
    let mut rows: Vec<_> = items.chunks(width).map(<[Reply]>::to_vec).collect();
    rows.sort_by_key(|row| format!("{row:?}"));
    Reply::Array(rows.concat())
}

pub(crate) async fn content_of(owner: &Owner) -> Content {
    content(&mut owner.handle().session()).await
}

/// Returns the data that a server loads from a directory, at each of two starts.
async fn loaded_by(server: ServerOptions, dir: &Path) -> Option<[Content; 2]> {
    let mut server = server
        .append_only()
        .args(&["--dir", dir.to_str().unwrap()])
        .start()?;
    let first = content(&mut Raw::connect(&server.socket()).await).await;
    // An orderly shutdown would take Redis a tenth of a second, times all the cuts below.
    server.kill9();
    server.start_again();
    let second = content(&mut Raw::connect(&server.socket()).await).await;
    Some([first, second])
}

/// Checks that both starts load the same.
pub(crate) async fn assert_same(server: ServerOptions, log: &[u8], expected: &Content) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(LOG), log).unwrap();
    if let Some(loaded) = loaded_by(server, dir.path()).await {
        for seen in loaded {
            assert_eq!(seen, *expected);
        }
    }
}

/// Waits until `INFO persistence` contains the text, and returns all of it.
pub(crate) async fn info_says(owner: &Owner, wanted: &str) -> String {
    let mut session = owner.handle().session();
    // Answered also while the log refuses writes.
    let ask: [&[u8]; 2] = [b"INFO", b"persistence"];
    let look = async {
        loop {
            let Reply::Bulk(info) = session.run(&ask).await else {
                panic!("INFO is text")
            };
            let info = String::from_utf8(info.into()).unwrap();
            if info.lines().any(|line| line == wanted) {
                return info;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, look)
        .await
        .unwrap_or_else(|_| panic!("never {wanted}"))
}

/// Rewrites the log.
pub(crate) async fn rewrite(owner: &Owner) {
    owner.handle().session().done("BGREWRITEAOF").await;
    let info = info_says(owner, "aof_rewrite_in_progress:0").await;
    assert!(info.contains("aof_last_bgrewrite_status:ok"), "{info}");
}

/// The variable that gives a test binary the role of a child.
const ROLE: &str = "MESHWORK_TEST_ROLE";

/// Returns the role of a child, and its directory.
pub(crate) fn role() -> Option<(String, std::path::PathBuf)> {
    let role = std::env::var(ROLE).ok()?;
    let (part, dir) = role.split_once(' ').expect("part and directory");
    Some((part.to_owned(), dir.into()))
}

/// Another process that runs the test `players::child` of this binary with a role. Killed when dropped.
pub(crate) struct Player {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Player {
    pub(crate) fn start(part: &str, dir: &Path) -> Self {
        let exe = std::env::current_exe().unwrap();
        Self::start_as(Command::new(exe), part, dir)
    }

    /// `command` runs this binary.
    pub(crate) fn start_as(mut command: Command, part: &str, dir: &Path) -> Self {
        let mut child = command
            .args(["players::child", "--exact", "--nocapture"])
            .env(ROLE, format!("{part} {}", dir.display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Waits for the next line that begins with `word`, and returns the rest. Skips lines of the test harness and
    /// others.
    pub(crate) fn hears(&self, word: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("no line '{word}': {error}"));
            if let Some(rest) = line.strip_prefix(word) {
                return rest.trim().to_owned();
            }
        }
    }

    /// Returns the rests of all lines so far that begin with `word`; with `to_end`, up to the end of the process.
    pub(crate) fn heard(&self, word: &str, to_end: bool) -> Vec<String> {
        let lines: Vec<String> = if to_end {
            std::iter::from_fn(|| self.lines.recv_timeout(PATIENCE).ok()).collect()
        } else {
            self.lines.try_iter().collect()
        };
        let rest = |line: &String| line.strip_prefix(word).map(|rest| rest.trim().to_owned());
        lines.iter().filter_map(rest).collect()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    /// Suspends the process; returns when it is suspended.
    pub(crate) fn stop(&self) {
        let pid = Pid::from_raw(self.pid()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        let status = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
        assert!(
            status.is_some_and(|(_, status)| status.stopped()),
            "{status:?}"
        );
    }

    /// `kill -9`; returns when the process is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn lines_of(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
