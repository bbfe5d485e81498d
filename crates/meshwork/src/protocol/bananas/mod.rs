//! A client and a worker for jobs of Bananas (seed 4). Of the worker, [`pull`] takes jobs, [`run`] runs them, [`report`]
//! tells how they ended, [`feed`] waits for them, [`keep`] keeps what runs and brings back what others left,
//! [`left`] finds the way past jobs that are left to others.

mod client;
mod feed;
mod handle;
mod keep;
mod left;
pub mod over;
mod pull;
mod report;
mod run;
mod state;

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::bananas::Bananas;
pub use meshwork_broker::bananas::{Depth, Depths, KeptCron, RouteLimit};
use meshwork_model::bananas::{DEFAULT_MAX_RETRIES, Peer};
use meshwork_model::keys::hero::Hero;
use meshwork_model::route::routes::Routes;

use super::handlers::Handlers;
use crate::runner::{self, Handler};
use crate::worker::Meter;
use crate::{Error, local_name};

pub use super::handlers::{HandlerError, UnknownScript};
pub use client::{Client, Request};
pub use handle::WorkerHandle;
use state::{Setup, State};

/// Jobs that run at once, unless it is said: Bananas' own number.
const CONCURRENCY: usize = 10;
/// The most.
pub const MAX_CONCURRENCY: usize = 1000;
/// How long a run may take, unless it is said: Bananas' own time.
pub const JOB_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a job is a worker's without a renewal.
const LEASE: Duration = Duration::from_secs(10);
/// How long a worker that stops waits for what it runs: Bananas' own time.
const GRACE: Duration = Duration::from_secs(30);

/// What becomes of a job on a list without a route that is for workers of another one, while none of ours is there
/// for it. (While one is, the job goes to the list of its route.)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Foreign {
    /// It is run, as Bananas' own workers do.
    #[default]
    Run,
    /// It is left there. While any is, jobs behind it are brought to the lists of their routes, up to a hundred a second.
    Leave,
}

/// A worker for jobs of Bananas, to be started.
pub struct Worker {
    broker: Bananas,
    handlers: Handlers,
    routes: Routes,
    concurrency: usize,
    timeout: Duration,
    max_retries: u32,
    lease: Duration,
    grace: Duration,
    foreign: Foreign,
    peer: Peer,
    strays: Option<Duration>,
    scheduler: bool,
}

impl Worker {
    /// A worker for the route `default`, without handlers.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self {
            broker: client.broker().clone(),
            handlers: Handlers::default(),
            routes: Routes::default(),
            concurrency: CONCURRENCY,
            timeout: JOB_TIMEOUT,
            max_retries: DEFAULT_MAX_RETRIES,
            lease: LEASE,
            grace: GRACE,
            foreign: Foreign::default(),
            peer: Peer::default(),
            strays: None,
            scheduler: true,
        }
    }

    /// Runs jobs of this name by a function: it takes the payload and gives the result, both as JSON.
    #[must_use]
    pub fn handle<H, Signature>(mut self, name: &str, handler: H) -> Self
    where
        H: Handler<Signature>,
        Signature: 'static,
    {
        self.handlers.add(name, runner::handler(handler));
        self
    }

    /// Runs jobs of this name by a script, whose file says by its ending what runs it: `.py`, `.rhai`. It finds
    /// the payload where scripts find their input; what is no JSON in its result becomes a text of JSON.
    ///
    /// # Errors
    /// If the file cannot be read, or nothing runs such files.
    pub fn script(mut self, name: &str, path: &std::path::Path) -> Result<Self, HandlerError> {
        self.handlers.add_script(name, path)?;
        Ok(self)
    }

    /// Whether jobs of this name have a handler.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.handlers.get(name).is_some()
    }

    /// Takes jobs of these routes, one after the other, or in turns by their weights.
    #[must_use]
    pub fn routes(self, routes: Routes) -> Self {
        Self { routes, ..self }
    }

    /// Runs so many jobs at once, at least 1 and at most [`MAX_CONCURRENCY`].
    #[must_use]
    pub fn concurrency(self, jobs: usize) -> Self {
        Self {
            concurrency: jobs.clamp(1, MAX_CONCURRENCY),
            ..self
        }
    }

    /// A run may take so long.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// A job whose record does not say it gets so many runs.
    #[must_use]
    pub fn max_retries(self, runs: u32) -> Self {
        Self {
            max_retries: runs,
            ..self
        }
    }

    /// A job is this worker's for so long without a renewal: as late it comes back when the worker is killed.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// When it is stopped it waits so long for what it runs.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// What becomes of jobs for others on lists without a route.
    #[must_use]
    pub fn foreign(self, foreign: Foreign) -> Self {
        Self { foreign, ..self }
    }

    /// Where jobs are pushed whose time has come, and those that it puts back: where this make of client pushes.
    #[must_use]
    pub fn peer(self, peer: Peer) -> Self {
        Self { peer, ..self }
    }

    /// Puts back what has stood for so long among the jobs that run and is not run by ours. Off unless it is said:
    /// Bananas' workers say nowhere that they live, and one that runs a job for longer than this runs it twice.
    #[must_use]
    pub fn adopt_strays(self, age: Option<Duration>) -> Self {
        Self {
            strays: age,
            ..self
        }
    }

    /// Whether it moves jobs whose time has come (it does, unless it is said).
    #[must_use]
    pub fn scheduler(self, scheduler: bool) -> Self {
        Self { scheduler, ..self }
    }

    /// Starts it.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub async fn start(self) -> Result<WorkerHandle, Error> {
        if let Some(age) = self.strays {
            tracing::warn!(
                ?age,
                "jobs that workers of Bananas left behind are put back after this time; one that is still run by \
                 such a worker then runs twice, since these say nowhere that they live"
            );
        }
        let lists = self.broker.keys().lists(self.routes.keys());
        let setup = Setup {
            lists,
            identity: crate::worker::Identity::new(&local_name("bananas")),
            broker: self.broker,
            handlers: self.handlers,
            routes: self.routes,
            concurrency: self.concurrency,
            timeout: self.timeout,
            max_retries: self.max_retries,
            lease: self.lease,
            grace: self.grace,
            foreign: self.foreign,
            peer: self.peer,
            strays: self.strays,
            scheduler: self.scheduler,
            meter: Meter::new(&Hero::default(), self.concurrency),
        };
        handle::start(Arc::new(State::new(setup)))
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}
