//! Arguments of the processes, and the files in which they record their actions. These files are outside of Redis, so
//! that no failure there can change them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rand::RngExt;
use rand::rngs::StdRng;
use rustix::process::{Signal, getpid, kill_process};

use meshwork_test_servers::account;

/// Arguments of every process.
#[derive(Clone, Debug, clap::Args)]
pub struct Orders {
    /// URL of the server.
    #[arg(long)]
    pub(super) url: String,
    /// Key of the old list.
    #[arg(long)]
    pub(super) list: String,
    /// The old worker's id.
    #[arg(long)]
    pub(super) worker_id: String,
    /// Directory of the records.
    #[arg(long)]
    pub(super) dir: PathBuf,
    /// Name of the process in the records.
    #[arg(long)]
    pub(super) name: String,
    /// Seed of its choices.
    #[arg(long)]
    pub(super) seed: u64,
    /// Probability that it dies at a job, from 0 to 1.
    #[arg(long)]
    pub(super) deadly: f64,
}

/// Point at which a process may be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// A worker between BLPOP and HSET.
    Taken,
    /// A worker between HSET and the script.
    Begun,
    /// A worker after the script, before it says so: the only point that makes a second run necessary.
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

/// A file of the records.
#[derive(Clone, Copy, Debug)]
pub(super) enum Account {
    /// Each start of a job: its id and its worker.
    Starts,
    /// Each job that a client stored.
    Submitted,
    /// Each kill: the point, the job, and the killed process.
    Kills,
    /// Each reply that an old client received.
    Replies,
    /// Time at which an old worker had written `started`: the job, milliseconds since 1970.
    Begun,
    /// Time at which a client had pushed a job to both lists: the job, milliseconds since 1970.
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

    /// Appends a line, completely or not at all.
    pub(super) fn add(self, dir: &Path, line: &str) -> io::Result<()> {
        account::add(&dir.join(self.name()), line)
    }

    /// Appends a job and the time.
    #[allow(
        clippy::disallowed_methods,
        reason = "its processes compare times with each other, not with a server"
    )]
    pub(super) fn stamp(self, dir: &Path, id: &str) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_err(io::Error::other)?.as_millis();
        self.add(dir, &format!("{id} {now}"))
    }

    /// Returns all its lines.
    pub(super) fn read(self, dir: &Path) -> io::Result<Vec<String>> {
        account::read(&dir.join(self.name()))
    }
}

impl Orders {
    /// Returns the file that ends old workers when it exists.
    pub(super) fn closing_time(dir: &Path) -> PathBuf {
        dir.join("closing-time")
    }

    /// Returns one of the points if the process is to die at the next job.
    pub(super) fn doom(&self, random: &mut StdRng, points: &[Point]) -> Option<Point> {
        let choice = random.random_range(0..points.len());
        random.random_bool(self.deadly).then(|| points[choice])
    }

    /// Stops for ever if the process is to die at this point. Its supervisor kills it then.
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
