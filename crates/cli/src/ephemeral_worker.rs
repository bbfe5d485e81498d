//! Execution of a command's jobs: by running workers if one claims a job soon, otherwise by an ephemeral worker in this
//! process.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use meshwork::runtime::{self, SandboxPaths, SandboxPolicy};
use meshwork::{Client, Unhealthy, Worker, WorkerHandle, WorkerInfo};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::route::Route;
use meshwork_model::sandbox::Profile;
use meshwork_model::time::duration_of;
use meshwork_ops::warnings;
use tokio::time::Instant;

use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::{Interrupt, tell_released};
use crate::out::{note, warn};

/// Interval of checks for live workers.
const WORKER_POLL: Duration = Duration::from_secs(1);
/// Longest wait for a claim by another worker, before the ephemeral one starts. A worker with a free slot claims within
/// milliseconds; a busy, stopped or dead one delays the job by this time only.
const CLAIM_TIMEOUT: Duration = Duration::from_millis(400);
/// Interval of checks for a claim.
pub(crate) const CLAIM_POLL: Duration = Duration::from_millis(200);
/// Longest absence of all workers for a type that cannot run here. The restart of a worker takes less.
const ABSENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// Settings of the ephemeral worker.
#[derive(Debug, Clone)]
pub(crate) struct WorkerTuning {
    pub(crate) concurrency: usize,
    /// None: the default of workers.
    pub(crate) lease: Option<Duration>,
    /// Profile of the command's own jobs. None: `open`.
    pub(crate) sandbox: Option<Profile>,
    /// Paths that the command's own jobs reach in a sandbox.
    pub(crate) paths: SandboxPaths,
}

/// Reason for which no worker runs the jobs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoWorkerError {
    #[error(
        "no worker runs scripts of type `{script_type}`: this process runs {known}, and no worker listens to \
         {queue}; correct the type, or start a worker for it first"
    )]
    Nobody {
        script_type: String,
        known: String,
        queue: String,
    },
    #[error(
        "the workers of {queue} have been absent for {}, and scripts of type \
         `{script_type}` cannot run in this process: start a worker for them, and run the same command again",
        duration_of(ABSENCE_TIMEOUT)
    )]
    Gone { script_type: String, queue: String },
    #[error(
        "{fault}. No other worker listens to {queue}: remove the fault, or start a worker on another host, and run the \
         same command again"
    )]
    Faulty { fault: Unhealthy, queue: String },
}

impl From<NoWorkerError> for CommandError {
    fn from(error: NoWorkerError) -> Self {
        let exit = match error {
            NoWorkerError::Nobody { .. } => Exit::USAGE,
            NoWorkerError::Gone { .. } => Exit::SERVER,
            NoWorkerError::Faulty { .. } => Exit::FAILED,
        };
        Self::new(exit, error)
    }
}

/// Supervisor of a command's jobs: watches for workers, and starts an ephemeral one if needed.
pub(crate) struct EphemeralWorker {
    client: Client,
    interrupt: Interrupt,
    route: Route,
    tuning: WorkerTuning,
    /// Ids of the command's own jobs.
    jobs: Arc<HashSet<String>>,
    own: Option<WorkerHandle>,
    looked: Option<Instant>,
    gone: Option<Instant>,
    /// Start of the time in which jobs wait and none is claimed.
    waiting: Option<Instant>,
    /// True once another worker has claimed a job.
    served: bool,
    /// True once the sandbox of another worker was printed.
    has_said: bool,
}

impl EphemeralWorker {
    /// Checks that some worker can run the jobs of `route`. Starts nothing yet.
    pub(crate) async fn ensure(
        client: &Client,
        interrupt: &Interrupt,
        (route, tuning): (&Route, WorkerTuning),
    ) -> Result<Self, CommandError> {
        let ephemeral = Self {
            client: client.clone(),
            interrupt: interrupt.clone(),
            route: route.clone(),
            tuning,
            jobs: Arc::default(),
            own: None,
            looked: None,
            gone: None,
            waiting: None,
            served: false,
            has_said: false,
        };
        if !ephemeral.can_run() && !client.has_worker(route).await? {
            return Err(nobody(client, route).into());
        }
        Ok(ephemeral)
    }

    /// Sets the ids of the command's own jobs.
    pub(crate) fn own_jobs<'a>(&mut self, ids: impl IntoIterator<Item = &'a JobId>) {
        self.jobs = Arc::new(ids.into_iter().map(ToString::to_string).collect());
    }

    fn can_run(&self) -> bool {
        runtime::runtimes().any(|known| known == self.route.script_type.as_str())
    }

    /// Returns true until a worker has claimed a job or the ephemeral one runs. Call [`Self::seen`] until then.
    pub(crate) fn is_open(&self) -> bool {
        !self.served && self.own.is_none()
    }

    /// Records the state of the jobs: `claimed` if a worker claimed one, `waits` if one waits in a queue.
    pub(crate) fn seen(&mut self, claimed: bool, waits: bool) {
        if claimed && self.is_open() {
            self.say_sandbox();
        }
        self.served |= claimed;
        self.waiting = match waits && !self.served {
            true => self.waiting.or_else(|| Some(Instant::now())),
            false => None,
        };
    }

    /// Records the end of a job. Another worker may have claimed it although the ephemeral one runs.
    pub(crate) fn ended(&mut self, job: &Job) {
        let own = self.own.as_ref().map(WorkerHandle::name);
        if job.worker.is_some() && job.worker.as_deref() != own {
            self.say_sandbox();
        }
    }

    /// Prints once that a job runs in the sandbox of another worker, if the command names `open`.
    fn say_sandbox(&mut self) {
        if self.tuning.sandbox == Some(Profile::Open) && !self.has_said {
            self.has_said = true;
            note(
                "a running worker takes the job and runs it in its own sandbox: --sandbox open is for a worker that this \
                 command starts",
            );
        }
    }

    fn is_unclaimed(&self) -> bool {
        self.waiting
            .is_some_and(|since| since.elapsed() >= CLAIM_TIMEOUT)
    }

    /// Starts the ephemeral worker if needed. Call it repeatedly; it checks every [`WORKER_POLL`].
    pub(crate) async fn poll(&mut self) -> Result<(), CommandError> {
        if let Some(fault) = self
            .own
            .as_ref()
            .and_then(|own| own.monitor().sound().err())
        {
            return self.check_others(fault).await;
        }
        let unclaimed = self.can_run() && self.is_unclaimed();
        let looked = self
            .looked
            .is_some_and(|looked| looked.elapsed() < WORKER_POLL);
        if self.own.is_some() || (looked && !unclaimed) {
            return Ok(());
        }
        let listened = match self.listened().await {
            // The state of the workers is unknown for now.
            Err(meshwork::Error::Broker(error)) if error.is_temporary() => return Ok(()),
            answer => answer?,
        };
        self.looked = Some(Instant::now());
        if listened && !unclaimed {
            self.gone = None;
        } else if self.can_run() {
            self.own = Some(self.start(listened).await?);
        } else if self.gone.get_or_insert_with(Instant::now).elapsed() > ABSENCE_TIMEOUT {
            let script_type = self.route.script_type.to_string();
            let queue = queue_name(&self.client, &self.route);
            return Err(NoWorkerError::Gone { script_type, queue }.into());
        }
        Ok(())
    }

    /// Refuses to wait if the ephemeral worker cannot start the jobs and no other worker listens that can.
    async fn check_others(&mut self, fault: Unhealthy) -> Result<(), CommandError> {
        let looked = self.looked.replace(Instant::now());
        if looked.is_some_and(|looked| looked.elapsed() < WORKER_POLL) {
            self.looked = looked;
            return Ok(());
        }
        let own = self.own.as_ref().map(WorkerHandle::name);
        let workers = match self.client.workers().await {
            Err(meshwork::Error::Broker(error)) if error.is_temporary() => return Ok(()),
            answer => answer?,
        };
        let (script_type, group) = (&self.route.script_type, self.route.group.as_ref());
        let may_run = |worker: &WorkerInfo| {
            worker.script_type == script_type.as_str()
                && group.is_none_or(|group| worker.group == group.as_str())
                && worker.worker.as_deref() != own
                && worker.fault.is_none()
        };
        if workers.iter().any(may_run) {
            return Ok(());
        }
        let queue = queue_name(&self.client, &self.route);
        Err(NoWorkerError::Faulty { fault, queue }.into())
    }

    /// Returns true if a worker listens that is not known to be dead.
    async fn listened(&self) -> Result<bool, meshwork::Error> {
        self.client.reclaim_dead().await?;
        self.client.has_worker(&self.route).await
    }

    async fn start(&self, listened: bool) -> Result<WorkerHandle, CommandError> {
        // A claimed job of another client is released at once when the command's own jobs have ended.
        let mut worker = Worker::new(&self.client)
            .script_type(&self.route.script_type)?
            .concurrency(self.tuning.concurrency)
            .shutdown_timeout(Duration::ZERO)
            .sandbox(self.sandbox());
        if let Some(lease) = self.tuning.lease {
            worker = worker.lease(lease);
        }
        if let Some(group) = &self.route.group {
            worker = worker.group(group.clone());
        }
        let own = worker.start().await?;
        self.interrupt.holds(&own);
        let reason = match listened {
            true => "no worker claims a job",
            false => "no worker listens",
        };
        tracing::info!(worker = own.name(), reason, "ephemeral worker started");
        Ok(own)
    }

    /// Returns the sandbox: the command's own jobs run as its user would run them. Jobs of others, which this worker may
    /// claim too, are confined if others can enqueue jobs.
    fn sandbox(&self) -> SandboxPolicy {
        let own = self.tuning.sandbox.unwrap_or(Profile::Open);
        let is_private = self.client.broker().conn().is_private();
        let others = own.max(Profile::of_store(is_private));
        let jobs = Arc::clone(&self.jobs);
        SandboxPolicy::new(others)
            .paths(self.tuning.paths.clone())
            .own_jobs(own, move |id| is_of(&jobs, id))
    }

    /// Stops the ephemeral worker, if there is one, and releases its jobs without counting an attempt.
    pub(crate) async fn shutdown(&mut self) {
        if let Some(own) = self.own.take() {
            let released = self.interrupt.stop(own).await;
            tracing::info!(released, "ephemeral worker stopped");
            if self.interrupt.is_urgent() {
                tell_released(released);
            }
        }
    }
}

/// Returns true for a job of `jobs`, and for its children: a child's id is that of its parent, a dot and a number.
fn is_of(jobs: &HashSet<String>, id: &str) -> bool {
    let mut id = id;
    loop {
        if jobs.contains(id) {
            return true;
        }
        match id.rsplit_once('.') {
            Some((parent, number)) if number.parse::<u32>().is_ok() => id = parent,
            _ => return false,
        }
    }
}

/// Options about types that no worker runs.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct WorkerCheck {
    /// Refuse a job whose type no worker runs now and no built-in runtime knows; without it, a warning is printed
    #[arg(long, help_heading = "Job")]
    require_worker: bool,
}

impl WorkerCheck {
    /// Returns true with `--require-worker`.
    pub(crate) fn is_required(self) -> bool {
        self.require_worker
    }

    /// Prints and returns the warnings about a job for a route. With `--require-worker`, refuses it.
    pub(crate) async fn check(
        self,
        client: &Client,
        route: &Route,
    ) -> Result<Vec<String>, CommandError> {
        let warnings = warnings::of_job(client, route, false).await?;
        if self.require_worker && !warnings.is_empty() {
            return Err(nobody(client, route).into());
        }
        warn(&warnings);
        Ok(warnings)
    }
}

/// Returns the error of `--require-worker` with `--api`.
pub(crate) fn required() -> CommandError {
    CommandError::usage(
        "--require-worker does not work with --api: `meshwork worker list` lists the workers",
    )
}

/// Returns the error that no worker runs jobs of this type.
fn nobody(client: &Client, route: &Route) -> NoWorkerError {
    NoWorkerError::Nobody {
        script_type: route.script_type.to_string(),
        known: runtime::runtimes().collect::<Vec<_>>().join(", "),
        queue: queue_name(client, route),
    }
}

/// Returns the name of a route's queue.
fn queue_name(client: &Client, route: &Route) -> String {
    let keys = client.broker().keys();
    keys.queue_name(&route.queue(keys)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_own_jobs_are_own_jobs() {
        let jobs = ["a", "b.7"].map(str::to_owned).into_iter().collect();
        for (id, is_own) in [
            ("a", true),
            ("a.1", true),
            ("a.1.22", true),
            ("b.7", true),
            ("b.7.1", true),
            ("b", false),
            ("b.8", false),
            ("a.x", false),
            ("aa.1", false),
            ("", false),
        ] {
            assert_eq!(is_of(&jobs, id), is_own, "{id}");
        }
    }
}
