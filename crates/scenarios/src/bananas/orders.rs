//! Arguments of the processes, the jobs, and the files in which the processes record their actions.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use meshwork_model::bananas::ClientVariant;

use meshwork_test_servers::account;

/// Arguments of every process.
#[derive(Clone, Debug, clap::Args)]
pub struct Orders {
    /// URL of the server.
    #[arg(long)]
    pub(super) url: String,
    /// Directory of the records.
    #[arg(long)]
    pub(super) dir: PathBuf,
    /// Name of the process in the records.
    #[arg(long)]
    pub(super) name: String,
    /// Variant of Bananas; for Meshwork, the variant whose records and lists it uses.
    #[arg(long)]
    pub(super) make: ClientVariant,
}

/// Jobs that a client submits.
#[derive(Clone, Debug, clap::Args)]
pub struct Batch {
    /// Number of the client.
    #[arg(long)]
    pub(super) client: u64,
    /// Number of jobs.
    #[arg(long)]
    pub(super) jobs: u64,
    /// Name of all jobs, which then have no routes and no delay, and whose client does not wait for them.
    #[arg(long)]
    pub(super) only: Option<String>,
}

/// Arguments of a worker.
#[derive(Clone, Debug, clap::Args)]
pub struct Shift {
    /// Routes of the worker.
    #[arg(long, value_delimiter = ',')]
    pub(super) routes: Vec<String>,
    /// Number of jobs at once.
    #[arg(long)]
    pub(super) slots: usize,
}

/// Routes of the scenarios.
pub(super) const ROUTES: [&str; 3] = ["gpu", "email", "default"];
const PRIORITIES: [&str; 3] = ["high", "normal", "low"];
/// One job in this many fails at first, has a delay, or has a client that waits for it.
const FLAKY: u64 = 100;
const LATER: u64 = 50;
const WAITED_FOR: u64 = 100;
/// Delay of a delayed job.
pub(super) const LATE: Duration = Duration::from_secs(1);

/// A job: all its properties follow from its number.
#[derive(Debug, Clone)]
pub(super) struct Submission {
    pub(super) id: String,
    pub(super) name: String,
    /// Number of the job, which is its payload and its result.
    pub(super) number: u64,
    pub(super) route: &'static str,
    pub(super) priority: &'static str,
    /// True if the job has a delay.
    pub(super) later: bool,
    /// True if its client waits for it.
    pub(super) waited_for: bool,
}

impl Batch {
    /// Returns the jobs, in order. The clients in Go cannot delay a job.
    pub(super) fn submissions(&self, can_wait: bool) -> impl Iterator<Item = Submission> + '_ {
        (0..self.jobs).map(move |number| {
            let id = format!("{:08x}-0000-4000-8000-{number:012x}", self.client);
            let at = number as usize;
            match &self.only {
                Some(name) => Submission {
                    id,
                    name: name.clone(),
                    number,
                    route: "default",
                    priority: "normal",
                    later: false,
                    waited_for: false,
                },
                None => Submission {
                    id,
                    name: if number.is_multiple_of(FLAKY) {
                        "flaky"
                    } else {
                        "work"
                    }
                    .to_owned(),
                    number,
                    route: ROUTES[at % ROUTES.len()],
                    priority: PRIORITIES[at / ROUTES.len() % PRIORITIES.len()],
                    later: can_wait && number % LATER == 1,
                    waited_for: number % WAITED_FOR == 7,
                },
            }
        })
    }
}

/// Returns true for the name of jobs whose first run fails.
pub(super) fn is_flaky(name: &str) -> bool {
    name == "flaky"
}

/// Error of the first run of such a job.
pub(super) const BOOM: &str = "boom";

/// A file of the records.
#[derive(Clone, Copy, Debug)]
pub(super) enum Account {
    /// Each job that a client submitted: its id, its list, and its name.
    Submitted,
    /// Each start of a job: its id and its worker.
    Starts,
    /// The end of each job for which a client waited: its id, and the client's view of it.
    Answers,
}

impl Account {
    fn path(self, dir: &Path) -> PathBuf {
        dir.join(match self {
            Self::Submitted => "submitted",
            Self::Starts => "starts",
            Self::Answers => "answers",
        })
    }

    pub(super) fn add(self, dir: &Path, line: &str) -> io::Result<()> {
        account::add(&self.path(dir), line)
    }

    pub(super) fn read(self, dir: &Path) -> io::Result<Vec<String>> {
        account::read(&self.path(dir))
    }
}

/// Records that a client has submitted a job.
pub(super) fn submitted(orders: &Orders, submission: &Submission, list: &str) -> io::Result<()> {
    let line = format!("{} {list} {}", submission.id, submission.name);
    Account::Submitted.add(&orders.dir, &line)
}

/// Returns the file that ends the workers and schedulers of Bananas when it exists.
pub(super) fn closing_time(dir: &Path) -> PathBuf {
    dir.join("closing-time")
}

/// Sleeps between two polls of a program of Bananas, which gets no wake-up.
pub(super) fn pause(time: Duration) {
    let (_nobody, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(time);
}

/// Returns the time since 1970.
#[allow(
    clippy::disallowed_methods,
    reason = "programs of Bananas use the clock of their host"
)]
pub(super) fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
