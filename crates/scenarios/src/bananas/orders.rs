//! What the processes of the worlds are told, what each job is, and the files in which they say what they do.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use meshwork_model::bananas::Peer;

use meshwork_test_servers::account;

/// What every process is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Orders {
    /// The server.
    #[arg(long)]
    pub(super) url: String,
    /// Where the files of the account are.
    #[arg(long)]
    pub(super) dir: PathBuf,
    /// What it calls itself in them.
    #[arg(long)]
    pub(super) name: String,
    /// The make it is of; of ours, whose records and lists they are like.
    #[arg(long)]
    pub(super) make: Peer,
}

/// What a client is to submit.
#[derive(Clone, Debug, clap::Args)]
pub struct Batch {
    /// Its number among the clients.
    #[arg(long)]
    pub(super) client: u64,
    /// How many jobs.
    #[arg(long)]
    pub(super) jobs: u64,
    /// All jobs have this name and no routes, wait for nothing, and nobody waits for them.
    #[arg(long)]
    pub(super) only: Option<String>,
}

/// What a worker is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Shift {
    /// The routes.
    #[arg(long, value_delimiter = ',')]
    pub(super) routes: Vec<String>,
    /// Jobs at once.
    #[arg(long)]
    pub(super) slots: usize,
}

/// The routes of the worlds.
pub(super) const ROUTES: [&str; 3] = ["gpu", "email", "default"];
const PRIORITIES: [&str; 3] = ["high", "normal", "low"];
/// Of so many jobs one fails at first, one waits for its time, one is waited for.
const FLAKY: u64 = 100;
const LATER: u64 = 50;
const WAITED_FOR: u64 = 100;
/// How long a job waits that waits for its time.
pub(super) const LATE: Duration = Duration::from_secs(1);

/// A job: what it is follows from its number.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) id: String,
    pub(super) name: String,
    /// The number, which is its payload and its result.
    pub(super) number: u64,
    pub(super) route: &'static str,
    pub(super) priority: &'static str,
    /// It waits for its time.
    pub(super) later: bool,
    /// Its client waits for it.
    pub(super) waited_for: bool,
}

impl Batch {
    /// The jobs, in order. The clients in Go have no working way to let a job wait.
    pub(super) fn wishes(&self, can_wait: bool) -> impl Iterator<Item = Wish> + '_ {
        (0..self.jobs).map(move |number| {
            let id = format!("{:08x}-0000-4000-8000-{number:012x}", self.client);
            let at = number as usize;
            match &self.only {
                Some(name) => Wish {
                    id,
                    name: name.clone(),
                    number,
                    route: "default",
                    priority: "normal",
                    later: false,
                    waited_for: false,
                },
                None => Wish {
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

/// Whether a name is that of jobs whose first run fails.
pub(super) fn is_flaky(name: &str) -> bool {
    name == "flaky"
}

/// Why the first run of such a job fails.
pub(super) const BOOM: &str = "boom";

/// A file of the account.
#[derive(Clone, Copy, Debug)]
pub(super) enum Account {
    /// Each job that a client submitted: its id, the list, whether it is flaky.
    Submitted,
    /// Each start of a job: its id, and who ran it.
    Starts,
    /// How each job ended that was waited for: its id, and what its client saw.
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

/// A client has submitted a job.
pub(super) fn submitted(orders: &Orders, wish: &Wish, list: &str) -> io::Result<()> {
    let line = format!("{} {list} {}", wish.id, wish.name);
    Account::Submitted.add(&orders.dir, &line)
}

/// The file whose presence sends the workers and schedulers of Bananas home.
pub(super) fn closing_time(dir: &Path) -> PathBuf {
    dir.join("closing-time")
}

/// Lets time pass between two looks, in a program of theirs that is told of nothing.
pub(super) fn pause(time: Duration) {
    let (_nobody, told) = mpsc::channel::<()>();
    let _ = told.recv_timeout(time);
}

/// The time of this machine, since 1970.
#[allow(
    clippy::disallowed_methods,
    reason = "all of theirs go by their host's clock"
)]
pub(super) fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
