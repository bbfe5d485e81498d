//! Driving the real command: a folder of its own per test, data on a server or in a directory, and
//! processes that never outlive their test.

pub(crate) mod http;
mod process;
pub(crate) mod pty;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_broker::{Broker, Claim, Claimed, PrefetchLists};
use meshwork_conformance::footprint::{Trace, footprint};
use meshwork_conformance::snapshot;
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::{FreshDatabase, RealServer, Tool, shared};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) use process::{Done, Running};

/// Longest time of any step, on a machine that builds at the same time.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// Location of the command's data.
enum Data {
    Server(FreshDatabase),
    Url(String),
    Directory(PathBuf),
}

/// A folder for one test, and where its data is.
pub(crate) struct Ground {
    dir: TempDir,
    data: Data,
}

impl Ground {
    /// With a database of its own on the shared Redis; none if there is no Redis.
    pub(crate) fn redis() -> Option<Self> {
        shared(Tool::Redis).map(|database| Self::over(Data::Server(database)))
    }

    /// With a data directory.
    pub(crate) fn embedded() -> Option<Self> {
        let mut ground = Self::over(Data::Url(String::new()));
        ground.data = Data::Directory(ground.path("data"));
        Some(ground)
    }

    /// With this data directory.
    pub(crate) fn directory(path: PathBuf) -> Self {
        let mut ground = Self::over(Data::Url(String::new()));
        ground.data = Data::Directory(path);
        ground
    }

    /// With a server at `url`.
    pub(crate) fn url(url: impl Into<String>) -> Self {
        Self::over(Data::Url(url.into()))
    }

    fn over(data: Data) -> Self {
        // A short name: a socket's address holds about 100 bytes.
        let dir = tempfile::Builder::new().prefix("mw-").tempdir().unwrap();
        Self { dir, data }
    }

    /// True with a data directory, which only its owner reaches.
    pub(crate) fn is_private(&self) -> bool {
        matches!(self.data, Data::Directory(_))
    }

    /// A path in the test's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// The command, in the test's folder, with nothing set but where the data is.
    pub(crate) fn command<S: AsRef<str>>(&self, args: &[S]) -> Command {
        let mut command = bare(self.dir.path());
        match &self.data {
            Data::Server(database) => command.env("REDIS_URL", database.url()),
            Data::Url(url) => command.env("REDIS_URL", url),
            Data::Directory(path) => command.env("MESHWORK_DATA", path),
        };
        // Scripts of tests leave marks outside of their folders.
        command.env("MESHWORK_SANDBOX", "open");
        command.args(args.iter().map(AsRef::as_ref));
        command
    }

    /// A worker that listens, with the sandbox of its options, else the default one.
    pub(crate) fn confining_worker(&self, args: &[&str]) -> Running {
        let mut command = self.command(&[&["worker", "--json"], args].concat());
        command.env_remove("MESHWORK_SANDBOX");
        let mut worker = Running::start(command);
        assert_eq!(json(&worker.line())["event"], "listening");
        worker
    }

    /// Runs the command to its end.
    pub(crate) fn run<S: AsRef<str>>(&self, args: &[S]) -> Done {
        self.start(args).ended()
    }

    /// Runs the command to its end without its log, which tells of other things than the command itself.
    pub(crate) fn run_without_log(&self, args: &[&str]) -> Done {
        let mut command = self.command(args);
        command.env("RUST_LOG", "off");
        Running::start(command).ended()
    }

    /// Starts the command.
    pub(crate) fn start<S: AsRef<str>>(&self, args: &[S]) -> Running {
        Running::start(self.command(args))
    }

    /// A worker that listens.
    pub(crate) fn worker(&self, args: &[&str]) -> Running {
        let mut worker = self.start(&[&["worker", "--json"], args].concat());
        assert_eq!(json(&worker.line())["event"], "listening");
        worker
    }

    /// All that is stored, as text.
    pub(crate) fn stored(&self) -> String {
        wait(async {
            snapshot::snapshot(&self.conn().await, "hero")
                .await
                .unwrap()
        })
    }

    /// The names of all keys that are stored.
    pub(crate) fn keys(&self) -> Vec<Vec<u8>> {
        wait(async {
            snapshot::keys_outside(&self.conn().await, &[])
                .await
                .unwrap()
        })
    }

    /// The verbs over the data, as another program has them.
    pub(crate) fn broker(&self) -> Broker {
        Broker::new(wait(self.conn()), Default::default())
    }

    async fn conn(&self) -> Conn {
        let target = match &self.data {
            Data::Server(database) => Target::parse(&database.url(), TlsFiles::default()).unwrap(),
            Data::Url(url) => Target::parse(url, TlsFiles::default()).unwrap(),
            Data::Directory(path) => Target::Directory(path.clone()),
        };
        Conn::open(&target, &Default::default()).await.unwrap()
    }

    /// Says a command to the shared Redis, as another client may; it answers one line.
    pub(crate) fn raw(&self, words: &str) {
        let Data::Server(database) = &self.data else {
            panic!("this is for the shared Redis");
        };
        let mut stream = TcpStream::connect(("127.0.0.1", database.server.port())).unwrap();
        write!(stream, "SELECT {}\r\n{words}\r\n", database.number).unwrap();
        for reply in BufReader::new(stream).lines().take(2) {
            let reply = reply.unwrap();
            assert!(!reply.starts_with('-'), "{words}: {reply}");
        }
    }

    /// The number of its database on the shared Redis.
    pub(crate) fn database(&self) -> u32 {
        let Data::Server(database) = &self.data else {
            panic!("this is for the shared Redis");
        };
        database.number
    }

    /// A foreign client of the shared Redis.
    pub(crate) fn plain(&self) -> Plain {
        let Data::Server(database) = &self.data else {
            panic!("this is for the shared Redis");
        };
        Plain::connect(&database.url()).unwrap()
    }

    /// The shape of all that is stored in keys that are not ours alone.
    pub(crate) fn footprint(&self) -> BTreeSet<Trace> {
        wait(async { footprint(&self.conn().await).await.unwrap() })
    }

    /// The records of all jobs.
    pub(crate) fn jobs(&self) -> Vec<Value> {
        self.run(&["job", "list", "--json"]).ok().jsons()
    }

    /// Waits until a job in this state is there, and returns its id.
    pub(crate) fn job_that_is(&self, state: &str) -> String {
        eventually(&format!("a job is {state}"), || {
            let args = ["job", "list", "--json", "--state", state];
            let job = self.run(&args).ok().jsons().into_iter().next()?;
            Some(job["id"].as_str().unwrap().to_owned())
        })
    }
}

/// The command without any settings.
pub(crate) fn bare(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meshwork"));
    command.current_dir(dir).env_clear().env("HOME", dir);
    // Tests of servers that are away and stay away do not wait for them.
    command.env("MESHWORK_CONNECT_TIMEOUT", "0");
    for name in ["PATH", "TMPDIR", "LLVM_PROFILE_FILE"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// Looks again and again, for [`BOUND`] at most.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    wait(meshwork_test_servers::eventually(what, BOUND, async || {
        look()
    }))
}

/// Claims the next job of the type osis for ten minutes, as a worker does.
pub(crate) fn claimed(worker: &Broker) -> Claimed {
    let queue = worker.keys().work_queue_type(&"osis".parse().unwrap());
    let claim = Claim {
        queues: &[queue],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 1,
        ahead: 0,
        lease: Duration::from_secs(600),
        worker: "w.1.1",
        token: "w.1.1.0",
    };
    wait(worker.claim(claim)).unwrap().jobs.remove(0)
}

/// The result of a future, on the one runtime that all of a test binary's connections live on.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    });
    RUNTIME.block_on(future)
}

/// A line of JSON.
pub(crate) fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// The names in an object, sorted.
pub(crate) fn names(object: &Value) -> Vec<&str> {
    let mut names: Vec<_> = object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

/// Runs a test on a redis-server of its own, since contexts are databases, and on the embedded engine.
pub(crate) fn on_both(test: impl Fn(&Ground)) {
    if let Some(server) = RealServer::redis().start() {
        test(&Ground::url(server.url()));
    }
    if let Some(ground) = Ground::embedded() {
        test(&ground);
    }
}

/// Makes each function `fn name(ground: &Ground)` a test on every kind of data.
macro_rules! on_all_data {
    ($($(#[$meta:meta])* fn $name:ident($ground:ident: &Ground) $body:block)+) => {
        $(
            $(#[$meta])*
            mod $name {
                use super::*;

                fn test($ground: &Ground) $body

                #[test]
                fn on_redis() {
                    if let Some(ground) = Ground::redis() {
                        test(&ground);
                    }
                }

                #[test]
                fn embedded() {
                    if let Some(ground) = Ground::embedded() {
                        test(&ground);
                    }
                }
            }
        )+
    };
}
pub(crate) use on_all_data;
