//! NATS JetStream, for comparison with a server that is not Redis: `nats JOBS…` (the verbs are in the library). Starts
//! a nats-server of its own, with a stream in files. Messages are acknowledged, and each acknowledgement is confirmed.
//! There are no results.

use std::net::TcpListener;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::{self, Context, stream};
use futures_util::StreamExt;
use meshwork_peers::{BULK, Failure, Latencies, PACE, Peer, Starts, WARM_UP, payload};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Name of the stream and of its subject.
const STREAM: &str = "bench";
/// Program of the server.
const SERVER: &str = "nats-server";
/// Interval between attempts to connect to a server that starts, and their number.
const ATTEMPTS: (Duration, usize) = (Duration::from_millis(50), 200);

/// Runs the server until the standard input ends, so that it does not outlive this program, and removes its data.
const KEEPER: &str =
    r#""$@" & server=$!; read -r _; kill "$server"; wait "$server"; rm -rf "$DATA""#;

struct Nats {
    context: Context,
    consumer: PullConsumer,
    _server: Child,
}

impl Peer for Nats {
    const CRATE: &'static str = "async-nats";

    /// Starts a server; the URL is that of a Redis server, which is not used.
    async fn connect(_: &str, waiting: usize) -> Result<Self, Failure> {
        let (server, port) = start()?;
        let context = jetstream::new(connect(port).await?);
        let stream = stream::Config {
            name: STREAM.to_owned(),
            subjects: vec![STREAM.to_owned()],
            retention: stream::RetentionPolicy::WorkQueue,
            storage: stream::StorageType::File,
            ..stream::Config::default()
        };
        let stream = context.create_stream(stream).await?;
        let consumer = pull::Config {
            durable_name: Some(STREAM.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ..pull::Config::default()
        };
        let consumer = stream.create_consumer(consumer).await?;
        publish(&context, waiting).await?;
        Ok(Self {
            context,
            consumer,
            _server: server,
        })
    }

    async fn enqueue_one(self, jobs: usize) -> Result<Duration, Failure> {
        let began = Instant::now();
        for _ in 0..jobs {
            let stored = self.context.publish(STREAM, payload().into()).await?;
            stored.await?;
        }
        Ok(began.elapsed())
    }

    async fn enqueue_bulk(self, jobs: usize) -> Result<Duration, Failure> {
        let began = Instant::now();
        publish(&self.context, jobs).await?;
        Ok(began.elapsed())
    }

    async fn work(mut self, concurrency: usize, jobs: usize) -> Result<Duration, Failure> {
        let starts = Arc::new(Starts::default());
        let messages = self.consumer.messages().await?.take(jobs);
        let handled = messages.map(|message| {
            let starts = Arc::clone(&starts);
            async move {
                let message = message?;
                starts.add(jobs);
                message.double_ack().await
            }
        });
        let mut handled = handled.buffer_unordered(concurrency);
        while let Some(acknowledged) = handled.next().await {
            acknowledged?;
        }
        let took = starts.elapsed(jobs)?;
        match self.consumer.info().await?.num_pending {
            0 => Ok(took),
            left => Err(format!("{left} messages are left").into()),
        }
    }

    async fn latency(self, samples: usize) -> Result<Latencies, Failure> {
        let (sender, mut starts) = mpsc::unbounded_channel();
        let mut messages = self.consumer.messages().await?;
        tokio::spawn(async move {
            while let Some(Ok(message)) = messages.next().await {
                // The receiver is dropped when all samples are taken.
                let _ = sender.send(Instant::now());
                message.double_ack().await?;
            }
            Ok::<_, async_nats::Error>(())
        });
        let (mut pace, mut taken) = (tokio::time::interval(PACE), Latencies::default());
        for sample in 0..samples + WARM_UP {
            pace.tick().await;
            let began = Instant::now();
            let stored = self.context.publish(STREAM, payload().into()).await?;
            stored.await?;
            let start: Instant = starts.recv().await.ok_or("the worker has ended")?;
            if sample >= WARM_UP {
                taken.add(start.duration_since(began), None);
            }
        }
        Ok(taken)
    }
}

/// Publishes in the shape [`BULK`].
async fn publish(context: &Context, jobs: usize) -> Result<(), Failure> {
    let (callers, batch) = BULK;
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let context = context.clone();
        tasks.spawn(async move {
            for from in (caller * batch..jobs).step_by(callers * batch) {
                let mut stored = Vec::with_capacity(batch);
                for _ in from..jobs.min(from + batch) {
                    stored.push(context.publish(STREAM, payload().into()).await?);
                }
                for one in stored {
                    one.await?;
                }
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

/// Starts a server on a free port of loopback.
fn start() -> Result<(Child, u16), Failure> {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(SERVER).is_file());
    if !found {
        return Err(format!("not installed: there is no {SERVER} in PATH").into());
    }
    let data = tempfile::tempdir()?.keep();
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = Command::new("sh");
    command.args(["-c", KEEPER, "sh", SERVER, "-a", "127.0.0.1", "-js", "-sd"]);
    command.arg(&data).args(["-p", &port.to_string()]);
    command.env("DATA", data).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok((command.spawn()?, port))
}

async fn connect(port: u16) -> Result<async_nats::Client, Failure> {
    let (interval, attempts) = ATTEMPTS;
    let mut ticks = tokio::time::interval(interval);
    for _ in 0..attempts {
        ticks.tick().await;
        if let Ok(client) = async_nats::connect(format!("127.0.0.1:{port}")).await {
            return Ok(client);
        }
    }
    Err(format!("{SERVER} does not answer on port {port}").into())
}

#[tokio::main]
async fn main() -> ExitCode {
    meshwork_peers::main::<Nats>().await
}
