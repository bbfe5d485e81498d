//! Client and worker for jobs of Bananas. In the worker, [`jobs`] claims, runs and reports jobs, [`maintenance`]
//! promotes due jobs, and [`left`] handles foreign jobs that stay on their lists.

mod client;
mod jobs;
mod left;
mod maintenance;
pub mod migrate;
mod state;

use meshwork_macros::boxed;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::bananas::Bananas;
pub use meshwork_broker::bananas::{Depth, Depths, RouteLimit, StoredCron};
pub use meshwork_model::bananas::ClientVariant;
use meshwork_model::bananas::DEFAULT_MAX_RETRIES;
use meshwork_model::route::routes::Routes;
use tokio::sync::watch;

use super::handlers::Handlers;
use crate::handler::function::{self, Handler};
use crate::{Error, local_name};
use meshwork_worker::{Config, Engine, Identity, LogFolders};

pub use super::handlers::{HandlerError, UnknownScript};
pub use client::{Client, Request};
pub use meshwork_model::keys::bananas::BananasKeys;
pub use meshwork_worker::{MAX_CONCURRENCY, TIMEOUT as JOB_TIMEOUT, WorkerHandle};
use state::BananasProtocol;

/// Policy for a foreign job on a list without a route while no worker of Meshwork serves its route. (Otherwise the job
/// is moved to its route's list.)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Foreign {
    /// Runs the job, as Bananas' own workers do.
    #[default]
    Run,
    /// Leaves the job there. Jobs behind it are moved to the lists of their routes, up to a hundred per second.
    Leave,
}

/// Builder of a worker for jobs of Bananas.
pub struct Worker {
    broker: Bananas,
    handlers: Handlers,
    routes: Routes,
    config: Config,
    max_retries: u32,
    foreign: Foreign,
    peer: ClientVariant,
    rescue_orphans_after: Option<Duration>,
    scheduler: bool,
}

impl Worker {
    /// Creates a worker for the route `default`, without handlers.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self {
            broker: client.broker().clone(),
            handlers: Handlers::default(),
            routes: Routes::default(),
            config: Config::default(),
            max_retries: DEFAULT_MAX_RETRIES,
            foreign: Foreign::default(),
            peer: ClientVariant::default(),
            rescue_orphans_after: None,
            scheduler: true,
        }
    }

    /// Runs jobs of this name with a function from the payload to the result, both in JSON.
    #[must_use]
    pub fn handle<H, Signature>(mut self, name: &str, handler: H) -> Self
    where
        H: Handler<Signature>,
        Signature: 'static,
    {
        self.handlers.add(name, function::handler(handler));
        self
    }

    /// Runs jobs of this name with a script: `.py`, `.rhai`, `.sh`, or with a `#!` line. Its input is the payload. A result that is not JSON is
    /// stored as a JSON string.
    ///
    /// # Errors
    /// The file cannot be read, or no runtime runs such files.
    pub fn script(mut self, name: &str, path: &std::path::Path) -> Result<Self, HandlerError> {
        self.handlers.add_script(name, path)?;
        Ok(self)
    }

    /// Returns true if jobs of this name have a handler.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.handlers.get(name).is_some()
    }

    /// Sets the routes from which the worker claims: in this order, or by their weights. Default: `default`.
    #[must_use]
    pub fn routes(self, routes: Routes) -> Self {
        Self { routes, ..self }
    }

    /// Sets the greatest number of jobs that run at once. Default: 10, minimum: 1, maximum: 1,000.
    #[must_use]
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.config.concurrency = jobs;
        self
    }

    /// Sets the timeout of a job. Default: 5 min, minimum: 1 ms, maximum: 10 years.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.config.timeout = timeout;
        self
    }

    /// Sets the greatest number of attempts of a job whose record has none. Default: 3.
    #[must_use]
    pub fn max_retries(self, runs: u32) -> Self {
        Self {
            max_retries: runs,
            ..self
        }
    }

    /// Sets the lease of a job. If the process dies, its jobs wait for that time. Default: 10 s, minimum: 300 ms,
    /// maximum: 1 h.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.lease = lease;
        self
    }

    /// Sets the timeout of running jobs at shutdown, before they are released. Default: 25 s, maximum: 10 years.
    #[must_use]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.config.shutdown_timeout = timeout;
        self
    }

    /// Sets the policy for foreign jobs on lists without a route. Default: [`Foreign::Run`].
    #[must_use]
    pub fn foreign(self, foreign: Foreign) -> Self {
        Self { foreign, ..self }
    }

    /// Sets the variant of client whose lists are used for promoted and requeued jobs. Default: Go.
    #[must_use]
    pub fn client_variant(self, peer: ClientVariant) -> Self {
        Self { peer, ..self }
    }

    /// Requeues jobs that foreign workers have held longer than `age`. Default: off, since workers of Bananas do not
    /// show that they are alive: a job that runs longer than this on such a worker runs twice.
    #[must_use]
    pub fn rescue_orphans_after(self, age: Option<Duration>) -> Self {
        Self {
            rescue_orphans_after: age,
            ..self
        }
    }

    /// Sets whether the worker promotes delayed jobs and fires schedules. Default: true.
    #[must_use]
    pub fn scheduler(self, scheduler: bool) -> Self {
        Self { scheduler, ..self }
    }

    /// Starts the worker.
    ///
    /// # Errors
    /// A setting is outside of its limits ([`Error::Setting`]), or the system has no thread left.
    #[boxed]
    pub async fn start(self) -> Result<WorkerHandle, Error> {
        self.config.validate()?;
        if let Some(age) = self.rescue_orphans_after {
            tracing::warn!(
                ?age,
                "jobs that workers of Bananas left behind are put back after this time; one that is still run by \
                 such a worker then runs twice, since these have no registration"
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
            rescue_orphans_after: self.rescue_orphans_after,
            scheduler: self.scheduler,
            rests: watch::Sender::new(None),
            behind: tokio::sync::Mutex::default(),
        };
        let engine = Engine::new(protocol, self.config, LogFolders::default());
        Ok(meshwork_worker::start_engine(engine)?)
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}
