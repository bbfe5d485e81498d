//! What the processes of the world are told, and the files in which they say what they do: these are
//! outside of Redis, so that nothing that goes wrong there can change the account.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rand::RngExt;
use rand::rngs::StdRng;
use rustix::process::{Signal, getpid, kill_process};

use meshwork_test_servers::account;

/// What every process is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Orders {
    /// The server.
    #[arg(long)]
    pub(super) url: String,
    /// The old list.
    #[arg(long)]
    pub(super) list: String,
    /// The old worker's id.
    #[arg(long)]
    pub(super) worker_id: String,
    /// Where the files of the account are.
    #[arg(long)]
    pub(super) dir: PathBuf,
    /// What it calls itself in them.
    #[arg(long)]
    pub(super) name: String,
    /// For its choices.
    #[arg(long)]
    pub(super) seed: u64,
    /// How likely it dies at a job, from 0 to 1.
    #[arg(long)]
    pub(super) deadly: f64,
}

/// Where a process may be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// A worker between BLPOP and HSET.
    Taken,
    /// A worker between HSET and the script.
    Begun,
    /// A worker after the script, before it says so: the one that makes a second run needed.
    Run,
    /// A client between HSET and LPUSH.
    Stored,
    /// A client between LPUSH and BLPOP.
    Pushed,
}

impl Point {
    pub(super) const ALL: [Self; 5] = [
        Self::Taken,
        Self::Begun,
        Self::Run,
        Self::Stored,
        Self::Pushed,
    ];
    pub(super) const OF_WORKERS: [Self; 3] = [Self::Taken, Self::Begun, Self::Run];
    pub(super) const OF_CLIENTS: [Self; 2] = [Self::Stored, Self::Pushed];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Begun => "begun",
            Self::Run => "run",
            Self::Stored => "stored",
            Self::Pushed => "pushed",
        }
    }
}

/// A file of the account.
#[derive(Clone, Copy, Debug)]
pub(super) enum Account {
    /// Each start of a job: its id, and who ran it.
    Starts,
    /// Each job that a client stored.
    Submitted,
    /// Each kill: the point, the job, who was killed.
    Kills,
    /// Each reply that an old client got.
    Replies,
    /// When an old worker had written `started`: the job, milliseconds since 1970.
    Begun,
    /// When a client had pushed a job to both sides: the job, milliseconds since 1970.
    Pushed,
}

impl Account {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Starts => "starts",
            Self::Submitted => "submitted",
            Self::Kills => "kills",
            Self::Replies => "replies",
            Self::Begun => "begun",
            Self::Pushed => "pushed",
        }
    }

    /// Adds a line, whole or not at all.
    pub(super) fn add(self, dir: &Path, line: &str) -> io::Result<()> {
        account::add(&dir.join(self.name()), line)
    }

    /// Adds a job and the time.
    #[allow(
        clippy::disallowed_methods,
        reason = "its processes compare times with each other, not with a server"
    )]
    pub(super) fn stamp(self, dir: &Path, id: &str) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_err(io::Error::other)?.as_millis();
        self.add(dir, &format!("{id} {now}"))
    }

    /// All its lines.
    pub(super) fn read(self, dir: &Path) -> io::Result<Vec<String>> {
        account::read(&dir.join(self.name()))
    }
}

impl Orders {
    /// The file whose presence sends old workers home.
    pub(super) fn closing_time(dir: &Path) -> PathBuf {
        dir.join("closing-time")
    }

    /// One of the points, if it is to die at the next job.
    pub(super) fn doom(&self, random: &mut StdRng, points: &[Point]) -> Option<Point> {
        let choice = random.random_range(0..points.len());
        random.random_bool(self.deadly).then(|| points[choice])
    }

    /// Stands still for ever if this is the point at which it is to die: who keeps it kills it then.
    pub(super) fn die(&self, doom: Option<Point>, at: Point, job: &str) -> io::Result<()> {
        if doom != Some(at) {
            return Ok(());
        }
        let line = format!("{} {job} {}", at.name(), self.name);
        Account::Kills.add(&self.dir, &line)?;
        kill_process(getpid(), Signal::STOP)?;
        Ok(())
    }
}
