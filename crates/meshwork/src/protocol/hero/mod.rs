//! Worker for the jobs of Meshwork and Hero. [`jobs`] claims, runs and reports them over the engine, [`subscription`]
//! has the queues, [`typed`] the handlers of typed jobs, [`registry`] the live workers, [`pool`] shares parts between contexts, [`control_poll`] reads cancel
//! requests, and [`maintenance`] is done by one worker at a time for all.

mod child_adder;
mod claims;
mod control_poll;
#[cfg(feature = "scripts")]
mod flows;
mod job_reads;
mod jobs;
mod maintenance;
mod objects;
mod pool;
mod registry;
mod run_sandbox;
mod state;
mod subscription;
mod typed;

use meshwork_macros::boxed;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::nooble::Nooble;
use meshwork_broker::{Broker, Rescue, Retention};
use meshwork_model::keys::nooble::NoobleKeys;
use meshwork_model::name::{ActorId, Group, Instance, ScriptType};
use meshwork_model::retry::RetryBackoff;
use meshwork_model::route::Listen;
use meshwork_model::route::routes::Routes;
use tokio::sync::watch;

use super::nooble::{self, ScriptCalls};
use crate::client::ObjectAccess;
#[cfg(feature = "scripts")]
use crate::flow::{PlainEnv, Sender};
use crate::handler::function::{self, Handler};
use crate::handler::group::{BatchOptions, GroupHandler, group_handler};
use crate::{Client, Error, handler};
use maintenance::NextDue;
use meshwork_runtime as runtime;
use meshwork_runtime::{Runtime, SandboxPolicy};
use meshwork_worker::{Config, Engine, Identity, LogFolders, Prefetch, WorkerHandle};
pub use pool::{MAX_POOL, WorkerPool};
use pool::{Member, MemberKeys};
use registry::Present;
pub use registry::WorkerInfo;
use state::HeroProtocol;
use subscription::Subscriptions;

/// Builder of a worker.
///
/// ```no_run
/// use meshwork::{Client, State, Worker, shutdown_signal};
///
/// #[meshwork::job]
/// struct Import { file: String }
///
/// async fn import(job: Import, State(folder): State<String>) -> Result<(), std::io::Error> {
///     std::fs::copy(&job.file, folder).map(drop)
/// }
///
/// # async fn run() -> Result<(), meshwork::Error> {
/// let client = Client::open("redis://127.0.0.1").await?;
/// let worker = Worker::new(&client).job(import).state("/data".to_owned()).concurrency(8);
/// // Until Ctrl-C or SIGTERM. A program with a loop of its own has `worker.start()`.
/// worker.run_until(shutdown_signal()).await
/// # }
/// ```
#[derive(Clone)]
pub struct Worker {
    broker: Broker,
    access: Option<Arc<dyn ObjectAccess>>,
    runtimes: Vec<(ScriptType, Arc<dyn Runtime>)>,
    refused: Option<String>,
    group: Group,
    instance: Option<Instance>,
    name_timeout: Duration,
    routes: Option<Routes>,
    config: Config,
    log_dirs: Vec<PathBuf>,
    sandbox: Option<SandboxPolicy>,
    backoff: RetryBackoff,
    legacy_ids: Vec<ActorId>,
    retention: Retention,
    actions: NoobleKeys,
    pool: Option<WorkerPool>,
    #[cfg(feature = "scripts")]
    sender: Option<Sender>,
    handlers: Vec<handler::Route>,
    layers: Vec<handler::Layered>,
    states: handler::States,
}

impl Worker {
    /// Creates a worker of the group `default`, without handlers.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self {
            broker: client.broker().clone(),
            access: client.object_access().cloned(),
            runtimes: Vec::new(),
            refused: None,
            group: Group::default(),
            instance: None,
            name_timeout: registry::PATIENCE,
            routes: None,
            config: Config::default(),
            log_dirs: Vec::new(),
            sandbox: None,
            backoff: RetryBackoff::default(),
            legacy_ids: Vec::new(),
            retention: Retention::default(),
            actions: nooble::usual_names(),
            #[cfg(feature = "scripts")]
            sender: None,
            pool: None,
            handlers: Vec::new(),
            layers: Vec::new(),
            states: handler::States::default(),
        }
    }

    /// Runs jobs of `script_type` with `runtime`.
    #[must_use]
    pub fn runtime(mut self, script_type: ScriptType, runtime: Arc<dyn Runtime>) -> Self {
        self.runtimes.push((script_type, runtime));
        self
    }

    /// Runs scripts of a built-in script type (`osis`, `python`, `exec`), which the feature `scripts` has.
    ///
    /// # Errors
    /// No runtime has this script type.
    pub fn script_type(self, script_type: &ScriptType) -> Result<Self, Error> {
        let unknown = || Error::UnknownType {
            script_type: script_type.to_string(),
            known: runtime::runtimes().collect::<Vec<_>>().join(", "),
        };
        let found = runtime::builtin(script_type.as_str()).ok_or_else(unknown)?;
        Ok(self.runtime(script_type.clone(), found))
    }

    /// Runs jobs of the type `name` with `handler`, for names that are known at run time only; [`Worker::job`] has typed
    /// jobs. Its payload is the job's script, and its result the job's output,
    /// both in JSON. [`Worker::start`] reports an invalid name.
    #[must_use]
    pub fn handle<H: Handler<M>, M: 'static>(mut self, name: &str, handler: H) -> Self {
        match name.parse() {
            Ok(name) => self.runtime(name, function::handler(handler)),
            Err(_) => {
                self.refused.get_or_insert_with(|| name.to_owned());
                self
            }
        }
    }

    /// Runs several jobs of the type `name` with one call of `handler`, up to the limit in `many`. Each job has its own
    /// result. A group is never larger than [`Worker::concurrency`]. See [`crate::runtime::group_handler`].
    #[must_use]
    pub fn handle_batch<H: GroupHandler<M>, M: 'static>(
        mut self,
        name: &str,
        many: BatchOptions,
        handler: H,
    ) -> Self {
        match name.parse() {
            Ok(name) => self.runtime(name, group_handler(many, handler)),
            Err(_) => {
                self.refused.get_or_insert_with(|| name.to_owned());
                self
            }
        }
    }

    /// Sets the group. Default: `default`.
    #[must_use]
    pub fn group(mut self, group: Group) -> Self {
        self.group = group;
        self
    }

    /// Sets a name within the group, so that jobs can be pinned to this worker.
    #[must_use]
    pub fn instance(mut self, instance: Instance) -> Self {
        self.instance = Some(instance);
        self
    }

    /// Sets the longest wait for the name if another worker has it whose process may have ended, such as one in a
    /// container that was restarted. Its registration expires if the worker does not refresh it. Default: 15.5 s.
    #[must_use]
    pub fn name_timeout(mut self, timeout: Duration) -> Self {
        self.name_timeout = timeout;
        self
    }

    /// Claims only jobs of these routes, in this order, or by their weights: jobs of the group of the same name, and
    /// for `default` jobs without a group. The worker's group is then the first route. Without routes, the worker
    /// claims jobs of its group and jobs without a group, priority by priority.
    #[must_use]
    pub fn routes(mut self, routes: Routes) -> Self {
        if let Some(first) = routes.keys().first() {
            self.group = first.into();
        }
        self.routes = Some(routes);
        self
    }

    /// Sets the greatest number of jobs that run at once. Default: 10, minimum: 1, maximum: 1,000.
    #[must_use]
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.config.concurrency = concurrency;
        self
    }

    /// Sets how many jobs are claimed beyond the free slots. Default: [`Prefetch::Auto`].
    #[must_use]
    pub fn prefetch(mut self, prefetch: Prefetch) -> Self {
        self.config.prefetch = prefetch;
        self
    }

    /// Sets the lease of a job, which is renewed three times in its duration. If the process dies, its jobs wait for
    /// that time. Default: 10 s, minimum: 300 ms, maximum: 1 h.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.lease = lease;
        self
    }

    /// Sets the clock of leases.
    #[cfg(test)]
    pub(crate) fn lease_clock(mut self, clock: meshwork_runtime::lease::LeaseClock) -> Self {
        self.config.clock = clock;
        self
    }

    /// Sets the timeout of running jobs at shutdown, before they are released. Default: 25 s, maximum: 10 years.
    #[must_use]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.config.shutdown_timeout = timeout;
        self
    }

    /// Sets the time between SIGTERM and SIGKILL for a script after a cancel request or its timeout. Default: 5 s; 0
    /// kills at once. After a lost lease a script is killed at once.
    #[must_use]
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.config.cancel_grace = grace;
        self
    }

    /// Sets the backoff of failed jobs without their own. Default: 1 s, doubled with each attempt, up to 10 min, or up
    /// to the job's own backoff if that is longer.
    #[must_use]
    pub fn backoff(mut self, backoff: RetryBackoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Acts for old workers of these names too (Hero's `worker_id`, later `actor_id`). It reads their stop queues.
    /// While a type is in the migration phase `canonical`, it also claims from their lists, and from that of the type,
    /// after all canonical queues.
    #[must_use]
    pub fn legacy_ids(mut self, ids: impl IntoIterator<Item = ActorId>) -> Self {
        self.legacy_ids.extend(ids);
        self
    }

    /// Sets the retention of ended jobs, by time and number; dead letters are separate. Default: seven days, 100,000
    /// jobs. The leader prunes for all workers by its own setting, so use the same one everywhere.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Sets the names of the services to which scripts send actions, and their wire format. They are on the
    /// worker's own server. Default: those of [`nooble::Client::open`].
    #[must_use]
    pub fn actions(mut self, names: NoobleKeys) -> Self {
        self.actions = names;
        self
    }

    /// Rescues orphans after this time, also those of foreign clients. An orphan is an open job on no list, or one that
    /// a worker without leases started and left. Default: orphans of Meshwork's clients after 30 s; foreign ones are
    /// only recorded as stale. Maximum: 1 h. The leader does this for all workers by its own setting, so use the same
    /// one everywhere.
    #[must_use]
    pub fn rescue_orphans_after(mut self, after: Duration) -> Self {
        let foreign = true;
        self.broker = self.broker.with_rescue(Rescue { after, foreign });
        self
    }

    /// Allows jobs to have log files (`log_path`) in this folder and below. May be called several times. The folder
    /// must belong to the worker's user or to root, and must not be writable for all. Without a folder, a job with a
    /// `log_path` fails.
    ///
    /// A file has a line per line of output: time, job, stream, text, with secrets masked. Only the worker's user may
    /// read it. It is rotated at 10 MiB; five old files are kept, all but the newest compressed.
    #[must_use]
    pub fn log_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.log_dirs.push(folder.into());
        self
    }

    /// Sets the sandbox of scripts. Default: `open` in a data directory, where only its owner can enqueue jobs; `standard`
    /// on a server, or `open` with a warning in a program without a launcher ([`crate::runtime::init`]).
    #[must_use]
    pub fn sandbox(mut self, policy: SandboxPolicy) -> Self {
        self.sandbox = Some(policy);
        self
    }

    /// Adds the worker to a pool with workers of other contexts. Its client has to be one of the pool's node
    /// ([`WorkerPool::node`]), and its concurrency is that of the pool.
    #[must_use]
    pub fn pool(mut self, pool: &WorkerPool) -> Self {
        self.config.concurrency = pool.concurrency();
        self.pool = Some(pool.clone());
        self
    }

    /// Returns the sandbox, if this host can enforce it.
    async fn checked_sandbox(&self) -> Result<SandboxPolicy, Error> {
        let starts_processes = self.runtimes.iter().any(|(_, one)| one.starts_processes());
        let is_private = self.broker.conn().is_private();
        let policy = SandboxPolicy::checked(self.sandbox.clone(), is_private, starts_processes);
        Ok(policy.await?)
    }

    /// Starts the worker on the current runtime.
    ///
    /// # Errors
    /// A setting is outside of its limits ([`Error::Setting`]), the worker has no handler, a live worker has its name
    /// ([`Error::WorkerNameTaken`]), the server is unreachable, a folder for log files is refused, or the system has no
    /// thread left.
    #[boxed]
    pub async fn start(mut self) -> Result<WorkerHandle, Error> {
        self.add_handlers()?;
        if self.runtimes.is_empty() {
            return Err(Error::NoHandlers);
        }
        #[cfg(not(feature = "scripts"))]
        if meshwork_broker::flow::Flows::of(&self.broker).is_some() {
            return Err(Error::NoFlows);
        }
        self.config.validate()?;
        let sandbox = self.checked_sandbox().await?;
        let log_folders = LogFolders::open(&self.log_dirs)?;
        let mut runtimes = HashMap::new();
        let mut listens = Vec::new();
        for (script_type, runtime) in self.runtimes {
            if runtimes.contains_key(script_type.as_str()) {
                continue;
            }
            runtimes.insert(script_type.as_str().to_owned(), runtime);
            listens.push(Listen {
                script_type,
                group: self.group.clone(),
                instance: self.instance.clone(),
                routes: self.routes.clone(),
            });
        }
        let places = Subscriptions {
            listens,
            legacy_ids: self.legacy_ids,
        };
        let lists = places.lists(self.broker.keys(), &[]);
        let name = self.instance.as_ref().map_or("worker", Instance::as_str);
        let identity = Identity::new(name);
        let (keys, slots) = (self.broker.keys(), self.config.concurrency);
        let mut present = Present::new(keys, &places.listens, identity.worker(), slots);
        let size = self.pool.as_ref().map_or(1, WorkerPool::size);
        present.share_calls(size, self.name_timeout);
        present.register(&self.broker, self.name_timeout).await?;
        let lists = watch::Sender::new(Arc::new(lists));
        let pooled = self.pool.map(|pool| {
            let keys = MemberKeys::of(keys, &places, identity.worker());
            let member = Member::new(&self.broker, lists.subscribe(), keys, size);
            (pool, Arc::new(member))
        });
        #[cfg(feature = "scripts")]
        let wakeups = pooled.as_ref().map(|(_, member)| &member.flow);
        #[cfg(feature = "scripts")]
        let flows = flows::start_stepper(&self.broker, wakeups, self.sender);
        let calls = ScriptCalls::of_jobs(Nooble::new(self.broker.conn().clone(), self.actions));
        let shared = pooled.as_ref().map(|(pool, member)| pool.join(member));
        let hero = HeroProtocol {
            calls: Arc::new(calls),
            identity,
            places,
            present,
            lists,
            runtimes,
            sandbox: Arc::new(sandbox),
            access: self.access,
            backoff: self.backoff,
            retention: self.retention,
            next_due: NextDue::new(),
            pooled,
            #[cfg(feature = "scripts")]
            plain_env: PlainEnv::of(&self.broker),
            broker: self.broker,
        };
        let engine = Engine::new(hero, self.config, log_folders);
        let engine = match shared {
            Some(parts) => engine.sharing(parts),
            None => engine,
        };
        let started = meshwork_worker::start_engine(engine)?;
        #[cfg(feature = "scripts")]
        let started = started.beside(flows);
        Ok(started)
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<_> = self
            .runtimes
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        f.debug_struct("Worker")
            .field("types", &types)
            .field("group", &self.group)
            .finish()
    }
}
