//! Import of jobs from Bananas, and export back, while clients, workers and schedulers of both run. Each job is in
//! exactly one list at each moment. No state survives between two calls, so an interrupted import or export can be
//! repeated.

mod export;
mod import;
mod report;

use meshwork_macros::boxed;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use meshwork_broker::Broker;
use meshwork_broker::bananas::Bananas;
use meshwork_model::bananas::{ClientVariant, HandlerKind};
use meshwork_model::name::{RoutingKey, ScriptType};

pub use report::{MAX_SKIPPED, MigrationReport, SkippedJob};

use super::JOB_TIMEOUT;
use crate::protocol::handlers::{HandlerError, read_script};
use crate::{Client as OurClient, Error};

/// Imports and exports jobs of Bananas.
#[derive(Debug, Clone)]
pub struct Migrator {
    bananas: Bananas,
    broker: Broker,
    peer: ClientVariant,
    handlers: HashMap<String, HandlerKind>,
    routes: Vec<RoutingKey>,
    limit: usize,
    timeout: Duration,
    overdue: bool,
    dry_run: bool,
}

impl Migrator {
    /// Creates an importer and exporter between two clients of one server, for all routes and jobs.
    #[must_use]
    pub fn new(theirs: &super::Client, ours: &OurClient) -> Self {
        Self {
            bananas: theirs.broker().clone(),
            broker: ours.broker().clone(),
            peer: theirs.variant(),
            handlers: HashMap::new(),
            routes: Vec::new(),
            limit: usize::MAX,
            timeout: JOB_TIMEOUT,
            overdue: false,
            dry_run: false,
        }
    }

    /// Imports jobs of this name as jobs of a script that ends in `.py`, `.rhai` or `.sh`. (Jobs of a name that a worker of
    /// Meshwork handles become jobs of that type.)
    ///
    /// # Errors
    /// No runtime runs such files, or the file cannot be read.
    pub fn script(mut self, name: &str, path: &Path) -> Result<Self, HandlerError> {
        let (script_type, text) = read_script(name, path)?;
        let script_type = ScriptType::foreign(script_type.to_owned());
        self.handlers
            .insert(name.to_owned(), HandlerKind::Script { script_type, text });
        Ok(self)
    }

    /// Imports jobs of this name as jobs of a handler in Rust, even if no worker has the handler now.
    #[must_use]
    pub fn function(mut self, name: &str) -> Self {
        self.handlers.insert(name.to_owned(), HandlerKind::Function);
        self
    }

    /// Selects the jobs of these routes. Default: all.
    #[must_use]
    pub fn routes(mut self, routes: Vec<RoutingKey>) -> Self {
        self.routes = routes;
        self
    }

    /// Sets the greatest number of moved jobs. Default: no limit.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the timeout of imported jobs, in whole seconds, rounded up, since Bananas leaves it to the worker. Default:
    /// 5 min.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Includes jobs that are due now or within ten seconds. Default: false. A scheduler of Bananas may have read such
    /// a job and push it later, so the job would run twice. Use this only without a scheduler of Bananas.
    #[must_use]
    pub fn overdue(mut self, overdue: bool) -> Self {
        self.overdue = overdue;
        self
    }

    /// Changes nothing, and reports the jobs that would move, as far as they are known. Default: false.
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Returns true if jobs of a route are selected.
    fn wants(&self, route: &RoutingKey) -> bool {
        self.routes.is_empty() || self.routes.contains(route)
    }

    fn seconds(&self) -> u64 {
        let more = u64::from(self.timeout.subsec_nanos() > 0);
        self.timeout.as_secs().saturating_add(more)
    }

    /// Returns the number of jobs to check before an import.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn count_import(&self) -> Result<usize, Error> {
        let mut count = 0;
        for place in self.places().await? {
            count += self.bananas.peek(&place, 0, 1).await?.0;
        }
        Ok(count)
    }

    /// Returns the number of jobs to check before an export.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn count_export(&self) -> Result<usize, Error> {
        Ok(self.broker.count_imported().await?)
    }
}
