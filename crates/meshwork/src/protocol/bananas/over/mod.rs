//! Import of jobs from Bananas and export back, while clients, workers and schedulers of both are at work. `forth` and
//! `back` are the two directions, `report` is their result. Scripts keep each job in exactly one list. No state
//! survives between two calls, so that an interrupted move can be repeated.

mod back;
mod forth;
mod report;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use meshwork_broker::Broker;
use meshwork_broker::bananas::Bananas;
use meshwork_model::bananas::{Peer, Runs};
use meshwork_model::name::{RoutingKey, ScriptType};

pub use report::{Left, MOST_TOLD, Moved};

use super::JOB_TIMEOUT;
use crate::protocol::handlers::{HandlerError, read_script};
use crate::{Client as OurClient, Error};

/// Mover of jobs between the protocols.
#[derive(Debug, Clone)]
pub struct Mover {
    bananas: Bananas,
    broker: Broker,
    peer: Peer,
    handlers: HashMap<String, Runs>,
    routes: Vec<RoutingKey>,
    limit: usize,
    timeout: Duration,
    overdue: bool,
    dry_run: bool,
}

impl Mover {
    /// Between what `theirs` and `ours` name, on one server: all routes, all jobs.
    #[must_use]
    pub fn new(theirs: &super::Client, ours: &OurClient) -> Self {
        Self {
            bananas: theirs.broker().clone(),
            broker: ours.broker().clone(),
            peer: theirs.peer(),
            handlers: HashMap::new(),
            routes: Vec::new(),
            limit: usize::MAX,
            timeout: JOB_TIMEOUT,
            overdue: false,
            dry_run: false,
        }
    }

    /// Jobs of this name become jobs of a script that ends in `.py` or `.rhai`. (Those of a name for which a worker of
    /// ours is there become jobs of that type.)
    ///
    /// # Errors
    /// If the file is none that anything runs, or cannot be read.
    pub fn script(mut self, name: &str, path: &Path) -> Result<Self, HandlerError> {
        let (script_type, text) = read_script(name, path)?;
        let script_type = ScriptType::foreign(script_type.to_owned());
        self.handlers
            .insert(name.to_owned(), Runs::Script { script_type, text });
        Ok(self)
    }

    /// Jobs of this name become jobs of a handler in Rust, though no worker with it is there now.
    #[must_use]
    pub fn function(mut self, name: &str) -> Self {
        self.handlers.insert(name.to_owned(), Runs::Function);
        self
    }

    /// Only those of these routes.
    #[must_use]
    pub fn routes(mut self, routes: Vec<RoutingKey>) -> Self {
        self.routes = routes;
        self
    }

    /// At most so many.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Timeout of an imported job's run, in whole seconds rounded up: Bananas leaves it to the worker. Default: 5 min.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Also those whose time has come or comes in ten seconds. A scheduler of Bananas reads such a job, and pushes it a
    /// moment later whatever has become of it: it would run twice. So only while none is there.
    #[must_use]
    pub fn overdue(mut self, overdue: bool) -> Self {
        self.overdue = overdue;
        self
    }

    /// Changes nothing, and tells what would be moved as far as that can be seen.
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// True if jobs of a route are included.
    fn wants(&self, route: &RoutingKey) -> bool {
        self.routes.is_empty() || self.routes.contains(route)
    }

    fn seconds(&self) -> u64 {
        let more = u64::from(self.timeout.subsec_nanos() > 0);
        self.timeout.as_secs().saturating_add(more)
    }

    /// Counts the jobs to check before an import.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn count_forth(&self) -> Result<usize, Error> {
        let mut count = 0;
        for place in self.places().await? {
            count += self.bananas.peek(&place, 0, 1).await?.0;
        }
        Ok(count)
    }

    /// Counts the jobs to check before an export.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn count_back(&self) -> Result<usize, Error> {
        Ok(self.broker.count_taken_over().await?)
    }
}
