//! A database with waiting jobs, and the calls to be measured on it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_broker::{
    Broker, Cancelled, Claim, Claimed, Enqueued, ObjectPage, PrefetchLists, Quota, SavedObject,
};
use meshwork_model::job::{Job, NewJob};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::{JobId, Namespace};
use meshwork_model::object::{NewObject, Space, field_set};
use meshwork_model::route::Route;
use serde_json::{Map, json};

use super::ScaleError;
use meshwork_test_servers::servers::RealServer;

/// Lease longer than a run of the measurement.
const LEASE: Duration = Duration::from_secs(3600);

/// A prime, so that the status calls reach all waiting jobs.
const STRIDE: usize = 7_919;

/// Type of the objects.
const KIND: &str = "note";

/// A measured call, in the order of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Enqueues one job.
    Enqueue,
    /// Reads the status of one job.
    Status,
    /// Lists one page of all jobs; the cost is per job on it.
    List,
    /// Cancels the new job, which waits.
    Cancel,
    /// Claims the job that has waited longest.
    Claim,
    /// Finds one object of scripts by a field.
    Find,
}

impl Call {
    /// All calls.
    pub const ALL: [Self; 6] = [
        Self::Enqueue,
        Self::Status,
        Self::List,
        Self::Cancel,
        Self::Claim,
        Self::Find,
    ];

    /// Returns the name of the call.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Status => "status",
            Self::List => "list, per job",
            Self::Cancel => "cancel",
            Self::Claim => "claim",
            Self::Find => "find an object",
        }
    }
}

/// Measurement of one call.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    /// Duration at the caller.
    pub(super) took: Duration,
    /// Commands that the server ran for it, including those inside of scripts.
    pub(super) commands: BTreeMap<String, u64>,
    /// Number of jobs by which both are divided.
    pub(super) jobs: usize,
}

/// A database.
pub(super) struct Ground {
    pub(super) broker: Broker,
    route: Route,
    made: usize,
    /// Number of objects of scripts.
    objects: usize,
    found: usize,
    /// Numbers of the waiting jobs, the next one first.
    waiting: VecDeque<usize>,
    page: u64,
    newest: Option<Job>,
    claimed: Vec<Claimed>,
    // The server is stopped with its last user.
    server: Arc<RealServer>,
}

impl Ground {
    /// Creates an empty database on a server of its own.
    pub(super) async fn start() -> Result<Self, ScaleError> {
        let server = RealServer::redis().start_for("scale");
        Self::on(Arc::new(server.ok_or(ScaleError::Missing)?), 0).await
    }

    /// Creates another empty database on the same server, so that the server's placement makes no difference.
    pub(super) async fn beside(&self, database: u32) -> Result<Self, ScaleError> {
        Self::on(Arc::clone(&self.server), database).await
    }

    async fn on(server: Arc<RealServer>, database: u32) -> Result<Self, ScaleError> {
        let namespace = Namespace::default();
        let target = Target::parse(&server.url_of(database), TlsFiles::default());
        let target = target.map_err(|why| odd("connect", why))?;
        let conn = Conn::open(&target, &namespace).await?;
        let broker = Broker::new(conn, JobKeys::new(namespace));
        broker.load().await?;
        Ok(Self {
            broker,
            route: Route::to("osis".parse()?),
            made: 0,
            objects: 0,
            found: 0,
            waiting: VecDeque::new(),
            page: 0,
            newest: None,
            claimed: Vec::new(),
            server,
        })
    }

    /// Returns the key of the queue of all its jobs.
    pub(super) fn queue(&self) -> String {
        self.route.queue(self.broker.keys())
    }

    fn job(&mut self) -> Result<NewJob, ScaleError> {
        self.made += 1;
        let id = format!("j{}", self.made);
        Ok(NewJob::new(id.parse()?, self.route.clone(), "40 + 2"))
    }

    /// Adds waiting jobs.
    pub(super) async fn fill(&mut self, jobs: usize) -> Result<(), ScaleError> {
        let mut left = jobs;
        while left > 0 {
            let part = left.min(1_000);
            self.waiting.extend(self.made + 1..=self.made + part);
            let jobs: Result<Vec<_>, _> = (0..part).map(|_| self.job()).collect();
            let stored = self.broker.enqueue(&jobs?).await?;
            if stored.iter().any(|stored| *stored != Enqueued::Stored) {
                return Err(odd("enqueue", "not all were stored"));
            }
            left -= part;
        }
        Ok(())
    }

    /// Adds objects of scripts.
    pub(super) async fn fill_objects(&mut self, objects: usize) -> Result<(), ScaleError> {
        let space = space()?;
        for number in self.objects..self.objects + objects {
            let map = json!({"number": number, "odd": number % 2, "text": "red car"});
            let object = NewObject::new(KIND, map.as_object().unwrap_or(&Map::new()))?;
            let id = format!("o{number}");
            let saved = self
                .broker
                .save_object(&space, (&id, &object), "scale", Quota::default());
            let saved = saved.await?;
            if saved != SavedObject::Saved(1) {
                return Err(odd("save an object", format!("{saved:?}")));
            }
        }
        self.objects += objects;
        Ok(())
    }

    /// Replaces the claimed job and deletes ended ones, so that the same number waits as before.
    pub(super) async fn refill(&mut self) -> Result<(), ScaleError> {
        for claimed in std::mem::take(&mut self.claimed) {
            self.broker.complete(&claimed, b"42", b"", b"").await?;
            self.broker.delete(&claimed.job).await?;
        }
        if let Some(job) = self.newest.take() {
            self.broker.delete(&job).await?;
        }
        self.fill(1).await
    }

    /// Makes a call, counts its commands and times it.
    pub(super) async fn sample(&mut self, call: Call) -> Result<Sample, ScaleError> {
        let new = match call {
            Call::Enqueue => Some(self.job()?),
            _ => None,
        };
        let before = self.commands().await?;
        let begun = Instant::now();
        let jobs = self.call(call, new).await?;
        let took = begun.elapsed();
        let mut commands = self.commands().await?;
        commands.retain(|name, count| {
            *count -= before.get(name).copied().unwrap_or_default();
            *count > 0
        });
        if call == Call::Enqueue {
            let id: JobId = format!("j{}", self.made).parse()?;
            self.newest = self.broker.inspect(&id).await?;
        }
        Ok(Sample {
            took,
            commands,
            jobs,
        })
    }

    async fn call(&mut self, call: Call, new: Option<NewJob>) -> Result<usize, ScaleError> {
        match call {
            Call::Enqueue => {
                let stored = self.broker.enqueue(new.as_slice()).await?;
                is(call, stored == [Enqueued::Stored], stored)?;
            }
            Call::Status => {
                // A different job each time, far from the last one.
                let at = self.made * STRIDE % self.waiting.len();
                let id: JobId = format!("j{}", self.waiting[at]).parse()?;
                let status = self.broker.statuses(&[id]).await?;
                is(call, status.iter().all(Option::is_some), status)?;
            }
            Call::List => {
                let page = self.broker.list(self.page).await?;
                self.page = page.next;
                return Ok(page.jobs.len());
            }
            Call::Cancel => {
                let job = self
                    .newest
                    .as_ref()
                    .ok_or_else(|| odd("cancel", "no job"))?;
                let said = self.broker.cancel(job, "stopped", false).await?;
                is(call, said == Cancelled::Cancelled, said)?;
            }
            Call::Claim => {
                let claim = Claim {
                    queues: &[self.queue()],
                    old: &[],
                    reverse: false,
                    prefetch: PrefetchLists::All,
                    want: 1,
                    ahead: 0,
                    lease: LEASE,
                    worker: "w1",
                    token: "t1",
                };
                let taken = self.broker.claim(claim).await?;
                is(call, taken.jobs.len() == 1, &taken)?;
                self.claimed = taken.jobs;
                self.waiting.pop_front();
            }
            Call::Find => {
                self.found = (self.found + STRIDE) % self.objects;
                let set = field_set(KIND, "number", &self.found.into())?;
                let page = ObjectPage::after(0);
                let found = self.broker.objects(&space()?, set.as_slice(), page).await?;
                is(call, found.len() == 1, found)?;
            }
        }
        Ok(1)
    }

    /// Returns the number of calls of each command on the server.
    async fn commands(&self) -> Result<BTreeMap<String, u64>, ScaleError> {
        let mut info = redis::cmd("INFO");
        info.arg("commandstats");
        let text: String = info.query_async(&mut self.broker.conn().clone()).await?;
        let count = |line: &str| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
        };
        let all = text.lines().filter_map(count);
        Ok(all.filter(|(name, _)| name != "info").collect())
    }
}

/// Returns the space of all objects.
fn space() -> Result<Space, ScaleError> {
    Ok(Space::new(["scale"])?)
}

pub(super) fn odd(call: &'static str, what: impl ToString) -> ScaleError {
    ScaleError::Odd {
        call,
        what: what.to_string(),
    }
}

fn is(call: Call, holds: bool, came: impl std::fmt::Debug) -> Result<(), ScaleError> {
    match holds {
        true => Ok(()),
        false => Err(odd(call.name(), format!("{came:?}"))),
    }
}
