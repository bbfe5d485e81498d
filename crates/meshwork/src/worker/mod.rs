//! The worker: pull → execute → report, with the leases renewed apart from it.
//!
//! [`pull`] exchanges results for jobs while slots are free (a [`call`] each time), [`start`] gives each job a
//! [`slot`], [`execute`] runs it, [`report`] says how it went, [`renew`] keeps the leases on a thread of its
//! own, [`feed`] waits for ids while the queues are empty and there is [`appetite`] for them, [`control_poll`]
//! learns of jobs that are to stop, [`maintenance`] is what one worker at a time does for all, [`lists`] says what
//! it takes from, [`ship`] keeps what runs say, [`presence`] tells others of it, and [`monitor`] how it is. What a job does is a [`Runner`]'s.

mod appetite;
mod call;
mod control_poll;
pub(crate) mod dedicated_thread;
mod execute;
mod feed;
mod handle;
mod held;
mod identity;
mod lists;
mod logfile;
mod maintenance;
mod meter;
mod monitor;
mod presence;
mod pull;
pub(crate) mod release;
mod renew;
mod report;
mod setup;
mod ship;
mod slot;
mod start;
mod turn;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Broker, Rescue, Retention};
use meshwork_model::name::{ActorId, Group, Instance, ScriptType};
use meshwork_model::retry::RetryBackoff;
use meshwork_model::route::Listen;
use meshwork_model::route::routes::Routes;

use crate::runner::{self, Runner};
use crate::{Client, Error};
pub(crate) use appetite::{Appetite, Holds};
pub use handle::WorkerHandle;
pub(crate) use identity::Identity;
use lists::Places;
pub use logfile::LogDirError;
use logfile::LogFolders;
use maintenance::NextDue;
pub(crate) use meter::Meter;
pub(crate) use monitor::Watched;
pub use monitor::{Monitor, Unfit};
use presence::Present;
pub use presence::WorkerInfo;
use setup::Setup;
use tokio::sync::watch;

/// How many jobs a worker runs at once unless it is told otherwise.
const CONCURRENCY: usize = 10;
/// The most jobs one worker runs at once: what one renewal can carry.
const MAX_CONCURRENCY: usize = meshwork_broker::MAX_ITEMS;
/// How long a job is a worker's without a renewal: so long its jobs lie idle if it is killed.
const LEASE: Duration = Duration::from_secs(10);
/// The shortest lease: three renewals have to fit in.
pub(crate) const MIN_LEASE: Duration = Duration::from_millis(300);
/// How long a stopping worker waits for what it runs, before it hands it back.
const GRACE: Duration = Duration::from_secs(25);

/// A worker to be started.
#[derive(Clone)]
pub struct Worker {
    broker: Broker,
    runners: Vec<(ScriptType, Arc<dyn Runner>)>,
    refused: Option<String>,
    group: Group,
    instance: Option<Instance>,
    routes: Option<Routes>,
    concurrency: usize,
    lease: Duration,
    grace: Duration,
    stop_grace: Duration,
    log_dirs: Vec<PathBuf>,
    backoff: RetryBackoff,
    legacy_ids: Vec<ActorId>,
    retention: Retention,
}

impl Worker {
    /// A worker of the group `default` that runs nothing yet.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self {
            broker: client.broker().clone(),
            runners: Vec::new(),
            refused: None,
            group: Group::default(),
            instance: None,
            routes: None,
            concurrency: CONCURRENCY,
            lease: LEASE,
            grace: GRACE,
            stop_grace: runner::STOP_GRACE,
            log_dirs: Vec::new(),
            backoff: RetryBackoff::default(),
            legacy_ids: Vec::new(),
            retention: Retention::default(),
        }
    }

    /// Runs jobs of `script_type` with `runner`.
    #[must_use]
    pub fn runner(mut self, script_type: ScriptType, runner: Arc<dyn Runner>) -> Self {
        self.runners.push((script_type, runner));
        self
    }

    /// Runs scripts of a type that Meshwork has a runtime for (`osis`, `python`).
    ///
    /// # Errors
    /// If it has none.
    pub fn script_type(self, script_type: &ScriptType) -> Result<Self, Error> {
        let unknown = || Error::UnknownType {
            script_type: script_type.to_string(),
            known: runner::runtimes().collect::<Vec<_>>().join(", "),
        };
        let found = runner::builtin(script_type.as_str()).ok_or_else(unknown)?;
        Ok(self.runner(script_type.clone(), found))
    }

    /// Calls `handler` for jobs named `name`: its payload is read from the job's script as JSON, its result
    /// is written as JSON. A name that is none is told by [`Worker::start`].
    #[must_use]
    pub fn handle<H: runner::Handler<M>, M: 'static>(mut self, name: &str, handler: H) -> Self {
        match name.parse() {
            Ok(name) => self.runner(name, runner::handler(handler)),
            Err(_) => {
                self.refused.get_or_insert_with(|| name.to_owned());
                self
            }
        }
    }

    /// Calls `handler` for several jobs named `name` at once: up to as many as `many` says, each with a result
    /// of its own. See [`runner::group_handler`]; a group is never larger than [`Worker::concurrency`].
    #[must_use]
    pub fn handle_many<H: runner::GroupHandler<M>, M: 'static>(
        mut self,
        name: &str,
        many: runner::Many,
        handler: H,
    ) -> Self {
        match name.parse() {
            Ok(name) => self.runner(name, runner::group_handler(many, handler)),
            Err(_) => {
                self.refused.get_or_insert_with(|| name.to_owned());
                self
            }
        }
    }

    /// In another group than `default`.
    #[must_use]
    pub fn group(mut self, group: Group) -> Self {
        self.group = group;
        self
    }

    /// With a name of its own within the group, so that jobs can be pinned to it.
    #[must_use]
    pub fn instance(mut self, instance: Instance) -> Self {
        self.instance = Some(instance);
        self
    }

    /// Takes what is for these routes only, route by route, or in turns by their weights (seed 4): jobs of the group
    /// that is called as a route is, and for `default` those that name no group. Without routes it takes what is
    /// for its group and what names none, level by level. Its group is the first route then.
    #[must_use]
    pub fn routes(mut self, routes: Routes) -> Self {
        if let Some(first) = routes.keys().first() {
            self.group = first.into();
        }
        self.routes = Some(routes);
        self
    }

    /// So many jobs at once (default 10, from 1 to 1,000).
    #[must_use]
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency.clamp(1, MAX_CONCURRENCY);
        self
    }

    /// How long a job is this worker's without a renewal (default 10 s, at least 0.3 s): so long its jobs
    /// lie idle if it is killed. It renews three times as often.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(MIN_LEASE);
        self
    }

    /// How long a stopping worker waits for what it runs before it hands it back (default 25 s).
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long a script that somebody asks to stop, or whose timeout is over, has between SIGTERM and SIGKILL
    /// (default 5 s; 0 kills at once). A job that is this worker's no more is killed at once in any case.
    #[must_use]
    pub fn stop_grace(mut self, stop_grace: Duration) -> Self {
        self.stop_grace = stop_grace;
        self
    }

    /// How long a job that failed waits for its next run, where the job does not say it (default: 1 s,
    /// doubled with each run up to 10 minutes).
    #[must_use]
    pub fn backoff(mut self, backoff: RetryBackoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Goes by the names of old workers too (seed 2's `worker_id`, later `actor_id`): it hears requests to
    /// stop jobs on their stop queues, and while the migration of a type is in the phase `canonical` it
    /// takes from their lists, and from that of the type, after all canonical queues.
    #[must_use]
    pub fn legacy_ids(mut self, ids: impl IntoIterator<Item = ActorId>) -> Self {
        self.legacy_ids.extend(ids);
        self
    }

    /// How long ended jobs are kept, and how many (default: seven days, 100,000), dead letters apart. One
    /// worker at a time forgets those of all, by its own rule: give it to all workers alike.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Pushes orphans again after `after`, jobs of foreign clients among them. An orphan is an open job on no list, or
    /// one that a worker without leases started and left. Default: orphans of our clients are pushed again after 30 s,
    /// foreign ones are only noted as stale. Maximum: 1 h. One worker at a time does this for all, by its own setting:
    /// give it to all workers alike.
    #[must_use]
    pub fn rescue_orphans_after(mut self, after: Duration) -> Self {
        let foreign = true;
        self.broker = self.broker.with_rescue(Rescue { after, foreign });
        self
    }

    /// Allows jobs to have log files (`log_path`) in this folder and below; may be said several times. The
    /// folder belongs to the worker's user or to root, and not everybody may write to it. Without any, a job
    /// that names a `log_path` fails.
    ///
    /// A file holds a line per line of the job: time, job, stream, text, without the job's secrets. Only the
    /// worker's user may read it. At 10 MiB it begins anew; five old ones are kept, all but the last
    /// compressed.
    #[must_use]
    pub fn log_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.log_dirs.push(folder.into());
        self
    }

    /// Starts it on the current runtime.
    ///
    /// # Errors
    /// If it has nothing to run, a live worker has its name already ([`Error::NameTaken`]), the server is away,
    /// a folder cannot hold log files, or the system has no thread left.
    pub async fn start(self) -> Result<WorkerHandle, Error> {
        if let Some(name) = &self.refused {
            name.parse::<ScriptType>()?;
        }
        if self.runners.is_empty() {
            return Err(Error::NothingToRun);
        }
        let log_folders = LogFolders::open(&self.log_dirs)?;
        let mut runners = HashMap::new();
        let mut listens = Vec::new();
        for (script_type, runner) in self.runners {
            if runners.contains_key(script_type.as_str()) {
                continue;
            }
            runners.insert(script_type.as_str().to_owned(), runner);
            listens.push(Listen {
                script_type,
                group: self.group.clone(),
                instance: self.instance.clone(),
                routes: self.routes.clone(),
            });
        }
        let places = Places {
            listens,
            legacy_ids: self.legacy_ids,
        };
        let lists = places.lists(self.broker.keys(), &[]);
        let name = self.instance.as_ref().map_or("worker", Instance::as_str);
        let identity = Identity::new(name);
        let keys = self.broker.keys();
        let meter = Arc::new(Meter::new(keys, self.concurrency));
        let mut present = Present::new(keys, &places.listens, identity.worker(), self.concurrency);
        present.register(&self.broker).await?;
        let setup = Setup {
            identity,
            places,
            present,
            lists: watch::Sender::new(Arc::new(lists)),
            runners,
            concurrency: self.concurrency,
            lease: self.lease,
            grace: self.grace,
            stop_grace: self.stop_grace,
            log_folders: Arc::new(log_folders),
            backoff: self.backoff,
            retention: self.retention,
            next_due: NextDue::new(),
            meter,
            broker: self.broker,
            listening: tokio::sync::Mutex::new(true),
        };
        handle::start(Arc::new(setup))
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<_> = self.runners.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Worker")
            .field("types", &types)
            .field("group", &self.group)
            .finish()
    }
}
