//! An example that runs as a process: what it says, and how it is killed.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::support::{BOUND, Ground};
use crate::examples::example;

/// A process, killed when dropped.
pub(crate) struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// All that it said.
    said: Vec<String>,
    /// Output received while another line was awaited.
    unheard: Vec<String>,
}

impl Process {
    /// Starts an example in a role, on this ground.
    pub(crate) async fn start(ground: &Ground, name: &str, role: &str, rest: &[&str]) -> Self {
        let dialect = ground.dialect.as_str();
        let mut child = Command::new(example(name))
            .args(["--redis", &ground.url(), "--dialect", dialect])
            .args(["--env", "dev", "--lease", "1", "--role", role])
            .args(rest)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            lines,
            said: Vec::new(),
            unheard: Vec::new(),
        }
    }

    /// The same of a service, which takes actions when this returns.
    pub(crate) async fn service(ground: &Ground, name: &str, role: &str, rest: &[&str]) -> Self {
        let mut process = Self::start(ground, name, role, rest).await;
        process.says("listening on ").await;
        process
    }

    /// Waits until it says something that begins so, or gives what it said so before that nobody waited for: a service
    /// may take what stands there before it has said that it listens.
    pub(crate) async fn says(&mut self, begins: &str) -> String {
        let is_it = |line: &String| line.starts_with(begins);
        if let Some(at) = self.unheard.iter().position(is_it) {
            return self.unheard.remove(at);
        }
        let said = tokio::time::timeout(BOUND, async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                self.said.push(line.clone());
                if is_it(&line) {
                    return line;
                }
                self.unheard.push(line);
            }
            panic!("it ended, and never said {begins:?}, but {:?}", self.said)
        });
        let line = said.await;
        line.unwrap_or_else(|_| panic!("{begins:?} was not said in {BOUND:?}"))
    }

    /// Waits until it has ended by itself. Whether it went well.
    pub(crate) async fn ended(&mut self) -> bool {
        let ended = tokio::time::timeout(BOUND, self.child.wait()).await;
        ended.unwrap().unwrap().success()
    }

    /// `kill -9`.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Kills it, and gives all that it ever said.
    pub(crate) async fn end(mut self) -> Vec<String> {
        self.child.kill().await.unwrap();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            self.said.push(line);
        }
        self.said
    }
}
