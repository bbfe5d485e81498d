//! A client and a worker for jobs of Bananas. Of the worker, [`jobs`] claims, runs and reports them over the engine,
//! [`maintenance`] moves jobs that are due, and [`left`] finds the way past jobs that are left to others.

mod client;
mod jobs;
mod left;
mod maintenance;
pub mod over;
mod state;

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::bananas::Bananas;
pub use meshwork_broker::bananas::{Depth, Depths, KeptCron, RouteLimit};
use meshwork_model::bananas::{DEFAULT_MAX_RETRIES, Peer};
use meshwork_model::route::routes::Routes;
use tokio::sync::watch;

use super::handlers::Handlers;
use crate::runner::{self, Handler};
use crate::worker::{self, Config, Engine, Identity, LogFolders};
use crate::{Error, local_name};

pub use super::handlers::{HandlerError, UnknownScript};
pub use crate::worker::{MAX_CONCURRENCY, TIMEOUT as JOB_TIMEOUT, WorkerHandle};
pub use client::{Client, Request};
use state::BananasProtocol;

/// Policy for a job of another route on a list without one, while no native worker serves the route. (While one does,
/// the job is moved to its route's list.)
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
    config: Config,
    max_retries: u32,
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
            config: Config::default(),
            max_retries: DEFAULT_MAX_RETRIES,
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

    /// True if jobs of this name have a handler.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.handlers.get(name).is_some()
    }

    /// Takes jobs of these routes, one after the other, or in turns by their weights.
    #[must_use]
    pub fn routes(self, routes: Routes) -> Self {
        Self { routes, ..self }
    }

    /// The most jobs that run at once. Default: 10, minimum: 1, maximum: 1,000.
    #[must_use]
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.config.concurrency = jobs;
        self
    }

    /// The longest run of a job. Default: 5 min, minimum: 1 ms, maximum: 10 years.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.config.timeout = timeout;
        self
    }

    /// A job whose record does not say it gets so many runs.
    #[must_use]
    pub fn max_retries(self, runs: u32) -> Self {
        Self {
            max_retries: runs,
            ..self
        }
    }

    /// Lease of a job. If the process dies, its jobs wait for that time. Default: 10 s, minimum: 300 ms, maximum: 1 h.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.lease = lease;
        self
    }

    /// Timeout of running jobs at shutdown, before they are released. Default: 25 s, maximum: 10 years.
    #[must_use]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.config.shutdown_timeout = timeout;
        self
    }

    /// Policy for foreign jobs on lists without a route.
    #[must_use]
    pub fn foreign(self, foreign: Foreign) -> Self {
        Self { foreign, ..self }
    }

    /// Destination of promoted and requeued jobs: the lists that this variant of client uses.
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

    /// True if the worker promotes delayed jobs. Default: true.
    #[must_use]
    pub fn scheduler(self, scheduler: bool) -> Self {
        Self { scheduler, ..self }
    }

    /// Starts it.
    ///
    /// # Errors
    /// If a setting is out of its limits ([`Error::Setting`]), or the system has no thread left.
    pub async fn start(self) -> Result<WorkerHandle, Error> {
        self.config.validate()?;
        if let Some(age) = self.strays {
            tracing::warn!(
                ?age,
                "jobs that workers of Bananas left behind are put back after this time; one that is still run by \
                 such a worker then runs twice, since these say nowhere that they live"
            );
        }
        let lists = self.broker.keys().lists(self.routes.keys());
        let protocol = BananasProtocol {
            lists: watch::Sender::new(Arc::new(lists)),
            identity: Identity::new(&local_name("bananas")),
            broker: self.broker,
            handlers: self.handlers,
            routes: self.routes,
            max_retries: self.max_retries,
            foreign: self.foreign,
            peer: self.peer,
            strays: self.strays,
            scheduler: self.scheduler,
            rests: watch::Sender::new(None),
            behind: tokio::sync::Mutex::default(),
        };
        let engine = Engine::new(protocol, self.config, LogFolders::default());
        Ok(worker::start_engine(engine)?)
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}
