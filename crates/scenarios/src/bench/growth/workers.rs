//! Worker processes: the program `bench` itself, started again.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use meshwork::Worker;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::super::ground::connect;
use super::super::{BenchError, ours};

/// Argument that makes the program a worker. Its server is in `REDIS_URL`.
pub(super) const WORKER: &str = "--worker";
/// Line that a worker prints when it is registered.
const READY: &str = "ready";
/// Longest time for the start or the end of all processes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Running processes. They are killed when this is dropped.
pub(super) struct Processes(Vec<Child>);

impl Processes {
    /// Starts `count` workers. Returns when all are registered.
    pub(super) async fn start(program: &Path, url: &str, count: usize) -> Result<Self, BenchError> {
        let mut all = Self(Vec::with_capacity(count));
        for _ in 0..count {
            let mut command = Command::new(program);
            command.arg(WORKER).env("REDIS_URL", url).kill_on_drop(true);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            all.0.push(command.spawn()?);
        }
        for child in &mut all.0 {
            let output = child.stdout.take();
            let output = output.ok_or_else(|| BenchError::Odd("a worker has no output".into()))?;
            let mut line = String::new();
            let mut output = BufReader::new(output);
            bounded(output.read_line(&mut line)).await??;
            if line.trim_end() != READY {
                return Err(BenchError::Odd(format!("a worker did not start: {line:?}")));
            }
        }
        Ok(all)
    }

    /// Ends all workers, and waits until they have ended.
    pub(super) async fn stop(mut self) -> Result<(), BenchError> {
        for child in &mut self.0 {
            drop(child.stdin.take());
        }
        for child in &mut self.0 {
            let status = bounded(child.wait()).await??;
            if !status.success() {
                return Err(BenchError::Odd(format!("a worker ended with {status}")));
            }
        }
        Ok(())
    }
}

async fn bounded<T>(future: impl Future<Output = T>) -> Result<T, BenchError> {
    let ended = tokio::time::timeout(PATIENCE, future).await;
    ended.map_err(|_| BenchError::Odd(format!("a worker did not answer in {PATIENCE:?}")))
}

/// Is a worker process: runs jobs until its standard input ends.
///
/// # Errors
/// `REDIS_URL` is missing or wrong, or the worker cannot start.
pub async fn serve() -> Result<(), BenchError> {
    let url = std::env::var("REDIS_URL");
    let url = url.map_err(|_| BenchError::Odd("set REDIS_URL to the server's address".into()))?;
    let client = connect(&url).await?;
    let handler = async |_: ours::Noop| Ok::<_, String>("ok".to_owned());
    let worker = Worker::new(&client).job(handler).start().await?;
    worker.registered().await;
    meshwork_test_servers::say(READY);
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let ended = ended
        .await
        .map_err(|why| BenchError::Odd(why.to_string()))?;
    ended?;
    worker.stop().await;
    Ok(())
}
