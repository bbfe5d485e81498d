//! Other job queues, measured beside Meshwork on fresh servers of their own. Each has a program in the folder
//! `peers` of this repository: a workspace of its own, which `cargo xtask bench --peers` builds.

mod call;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::BenchError;
use super::figure::{Counts, Figure, With};
use super::ground::{Engine, Ground};
use super::meter::Cost;
use call::{Answer, call};
use meshwork_test_servers::servers::{Tool, find};

/// Variable with the directory of the built programs, set by `cargo xtask bench --peers`.
pub const PROGRAMS: &str = "MESHWORK_PEERS";

/// Time limit of a call of a program: several times the longest call on a slow machine.
const LIMIT: Duration = Duration::from_secs(300);

/// A job queue that can be measured.
struct Known {
    name: &'static str,
    program: Program,
    /// False if the program starts a server of its own, which is not Redis.
    on_redis: bool,
    /// Largest number of jobs for a worker.
    most_jobs: usize,
    /// Largest number of samples of a latency.
    most_samples: usize,
}

/// The program of a job queue.
enum Program {
    /// A binary of this name among the built programs.
    Built(&'static str),
    /// A file for Python, from the root of the repository. It fails if the library is not installed.
    Python(&'static str),
}

/// All job queues.
const KNOWN: [Known; 4] = [
    Known {
        name: "bullmq",
        program: Program::Built("bullmq"),
        on_redis: true,
        most_jobs: usize::MAX,
        most_samples: usize::MAX,
    },
    // A worker of apalis-redis 1.0.0 ends if more than about 8,000 tasks are due. A sample takes 0.1 s: the interval
    // of its polls.
    Known {
        name: "apalis",
        program: Program::Built("apalis"),
        on_redis: true,
        most_jobs: 7_000,
        most_samples: 200,
    },
    // A job takes about a millisecond of Python's time.
    Known {
        name: "celery",
        program: Program::Python("peers/celery/celery_peer.py"),
        on_redis: true,
        most_jobs: 5_000,
        most_samples: usize::MAX,
    },
    Known {
        name: "nats",
        program: Program::Built("nats"),
        on_redis: false,
        most_jobs: usize::MAX,
        most_samples: usize::MAX,
    },
];

impl Program {
    fn command(&self, programs: &Path) -> Vec<OsString> {
        match self {
            Self::Built(name) => vec![programs.join(name).into()],
            Self::Python(file) => {
                let python = find(Tool::Python).unwrap_or_else(|| Tool::Python.program().into());
                let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
                vec![
                    python.into(),
                    root.unwrap_or(Path::new("")).join(file).into(),
                ]
            }
        }
    }
}

/// A job queue to compare with.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Name in tables.
    pub name: &'static str,
    /// Program with its first arguments.
    command: Vec<OsString>,
    on_redis: bool,
    most_jobs: usize,
    most_samples: usize,
    limit: Duration,
}

impl Peer {
    /// Returns all job queues. Built programs are in this directory.
    #[must_use]
    pub fn all(programs: &Path) -> Vec<Self> {
        let peer = |known: &Known| Self {
            name: known.name,
            command: known.program.command(programs),
            on_redis: known.on_redis,
            most_jobs: known.most_jobs,
            most_samples: known.most_samples,
            limit: LIMIT,
        };
        KNOWN.iter().map(peer).collect()
    }

    /// Returns the number of jobs in one run.
    fn jobs(&self, figure: Figure, counts: &Counts) -> usize {
        let jobs = figure.jobs(counts);
        match figure {
            Figure::Work { .. } => jobs.min(self.most_jobs),
            Figure::Latency => jobs.min(self.most_samples),
            _ => jobs,
        }
    }
}

impl Figure {
    /// Returns true if other job queues have this figure too.
    #[must_use]
    pub fn has_peers(self) -> bool {
        verb(self, 1).is_some()
    }
}

/// Returns the arguments of a program for this figure.
fn verb(figure: Figure, jobs: usize) -> Option<Vec<String>> {
    let words = match figure {
        Figure::EnqueueOne { callers: 1 } => vec!["enqueue-one".to_owned()],
        Figure::EnqueueBulk => vec!["enqueue-bulk".to_owned()],
        Figure::Work {
            concurrency,
            with: With::Nothing,
        } => vec!["work".to_owned(), concurrency.to_string()],
        Figure::Latency => vec!["latency".to_owned()],
        _ => return None,
    };
    Some([words, vec![jobs.to_string()]].concat())
}

/// Runs of one job queue.
#[derive(Debug)]
pub(super) struct PeerRuns {
    pub(super) name: &'static str,
    pub(super) on_redis: bool,
    /// Number of jobs in one run.
    pub(super) jobs: usize,
    /// Results, or the reasons of failures, in the order of the runs.
    pub(super) samples: Vec<Result<PeerSample, String>>,
}

/// Result of one run.
#[derive(Debug)]
pub(super) struct PeerSample {
    /// Version of the library.
    pub(super) version: String,
    /// Values, in the order of the figure's names; `None` for what the library lacks.
    pub(super) values: Vec<Option<f64>>,
    pub(super) cost: Cost,
}

impl PeerSample {
    /// Returns a sample with the cost on the server, and the program's own.
    fn new(answer: Answer, mut cost: Cost) -> Self {
        cost.client_us = answer.client_us;
        Self {
            version: answer.version,
            values: answer.values,
            cost,
        }
    }
}

impl PeerRuns {
    pub(super) fn new(peer: &Peer, figure: Figure, counts: &Counts) -> Self {
        Self {
            name: peer.name,
            on_redis: peer.on_redis,
            jobs: peer.jobs(figure, counts),
            samples: Vec::new(),
        }
    }
}

/// Measures one run of a job queue on a fresh server.
///
/// # Errors
/// The server is missing, or fails. A failure of the program is a result.
pub(super) async fn measure(
    peer: &Peer,
    figure: Figure,
    counts: &Counts,
) -> Result<Result<PeerSample, String>, BenchError> {
    let jobs = peer.jobs(figure, counts);
    let Some(words) = verb(figure, jobs) else {
        let name = figure.name();
        return Ok(Err(format!("other job queues have no figure {name}")));
    };
    if !peer.on_redis {
        let answer = call(&peer.command, &words, "", figure, peer.limit).await;
        return Ok(answer.map(|answer| PeerSample::new(answer, Cost::default())));
    }
    let ground = Ground::start(Engine::Redis, &[]).await?;
    let url = ground.server()?.url();
    if matches!(figure, Figure::Work { .. }) {
        let words = ["enqueue-bulk".to_owned(), jobs.to_string()];
        let figure = Figure::EnqueueBulk;
        if let Err(why) = call(&peer.command, &words, &url, figure, peer.limit).await {
            return Ok(Err(format!("enqueue-bulk: {why}")));
        }
    }
    let before = ground.read()?;
    let answer = match call(&peer.command, &words, &url, figure, peer.limit).await {
        Ok(answer) => answer,
        Err(why) => return Ok(Err(why)),
    };
    let cost = ground.read()?.since(&before, jobs);
    Ok(Ok(PeerSample::new(answer, cost)))
}
