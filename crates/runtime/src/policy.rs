//! Policy of a worker's sandbox: the profile and the limits that it gives, and to which jobs. The rule is
//! [`effective`](meshwork_model::sandbox::effective()).

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Once};

use meshwork_model::sandbox::{
    Effective, JobOrigin, Limit, Limits, Profile, SandboxSettings, WorkerSandbox, effective,
};

use super::Confinement;
use super::host_memory::host_memory;
#[cfg(feature = "scripts")]
use super::sandbox;

/// Default limit of processes in `standard` and `strict`.
const PROCESSES: u64 = 256;
/// Default limit of the work folder in `standard` and `strict`: 1 GiB.
const DISK: u64 = 1 << 30;

/// Set once this process has warned of the missing launcher.
static WARNED: Once = Once::new();

/// The program cannot start launchers, so it has no sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this program has no launcher: call meshwork::runtime::init() first in main")]
pub struct NoLauncher;

/// This host cannot run scripts in the profile of the worker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this host cannot confine scripts in the sandbox `{profile}`: {missing}. Allow what is missing, or choose another \
     profile with --sandbox"
)]
pub struct CannotConfine {
    profile: Profile,
    missing: String,
}

/// Reason why a worker with a policy cannot start.
#[derive(Debug, thiserror::Error)]
pub enum NoPolicy {
    /// The program has no launcher.
    #[error(transparent)]
    NoLauncher(#[from] NoLauncher),
    /// The host lacks a part.
    #[error(transparent)]
    CannotConfine(#[from] CannotConfine),
}

/// The sandbox that a worker gives to the scripts of its jobs. Handlers in Rust run in the worker's own process, without
/// a sandbox.
#[derive(Clone)]
pub struct SandboxPolicy {
    worker: WorkerSandbox,
    paths: Arc<SandboxPaths>,
    own_jobs: Option<AreOwn>,
}

/// Accepts the ids of own jobs.
type AreOwn = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Paths of the host that scripts in the worker's profile can reach beside the system's folders and their work folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxPaths {
    /// Paths that scripts can read.
    pub read: Vec<PathBuf>,
    /// Paths that scripts can read and write.
    pub write: Vec<PathBuf>,
}

impl SandboxPolicy {
    /// Returns a policy of one profile for all jobs. `standard` and `strict` have default limits: half of the memory
    /// of the host or its container, 256 processes and 1 GiB in the work folder.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        let memory = host_memory().map(|bytes| (Limit::Memory, bytes / 2));
        let defaults = memory
            .into_iter()
            .chain([(Limit::Processes, PROCESSES), (Limit::Disk, DISK)])
            .collect();
        Self {
            worker: WorkerSandbox {
                profile,
                command: profile,
                limits: Limits::NONE,
                defaults,
            },
            paths: Arc::default(),
            own_jobs: None,
        }
    }

    /// Sets another profile for the jobs whose ids `are_own` accepts: those that the program of this worker enqueued
    /// itself.
    #[must_use]
    pub fn own_jobs(
        mut self,
        profile: Profile,
        are_own: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.worker.command = profile;
        self.own_jobs = Some(Arc::new(are_own));
        self
    }

    /// Sets limits for all runs. They replace the default limits of the same resources.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.worker.limits = limits;
        self
    }

    /// Sets the paths that confined scripts can reach.
    #[must_use]
    pub fn paths(mut self, paths: SandboxPaths) -> Self {
        self.paths = Arc::new(paths);
        self
    }

    /// Returns the profile of jobs that the worker's program did not enqueue itself.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.worker.profile
    }

    /// Returns true if the worker itself gives a profile or a limit that needs the launcher.
    pub fn needs_launcher(&self) -> bool {
        let greatest = Effective {
            profile: self.worker.profile.max(self.worker.command),
            limits: self.worker.limits,
        };
        !greatest.is_open()
    }

    /// Returns the given policy, or the default of a store. `is_private` is true if only this user can enqueue jobs. If
    /// the worker starts processes, this host has to be able to confine them.
    ///
    /// # Errors
    /// The program has no launcher, or the host lacks a part.
    pub async fn checked(
        given: Option<Self>,
        is_private: bool,
        starts_processes: bool,
    ) -> Result<Self, NoPolicy> {
        let policy = match given {
            Some(given) if given.needs_launcher() && !has_launcher() => {
                return Err(NoLauncher.into());
            }
            Some(given) => given,
            None if is_private || has_launcher() => Self::new(Profile::of_store(is_private)),
            None => {
                if starts_processes {
                    WARNED.call_once(|| {
                        tracing::warn!("scripts run without a sandbox: {NoLauncher}");
                    });
                }
                Self::new(Profile::Open)
            }
        };
        #[cfg(feature = "scripts")]
        if starts_processes {
            policy.check_host().await?;
        }
        Ok(policy)
    }

    /// Checks that this host can confine scripts in the profile of the worker.
    ///
    /// # Errors
    /// The missing part.
    #[cfg(feature = "scripts")]
    async fn check_host(&self) -> Result<(), CannotConfine> {
        let profile = self.worker.profile.max(self.worker.command);
        if profile == Profile::Open {
            return Ok(());
        }
        match sandbox::sandbox_host().await {
            Ok(host) => host
                .allows(profile)
                .map_err(|missing| CannotConfine { profile, missing }),
            Err(error) => {
                // The worker's probe finds the same fault, and waits for its end.
                tracing::warn!(%error, "the sandbox was not tried");
                Ok(())
            }
        }
    }

    /// Returns true for a job that the command, whose worker this is, did not enqueue itself.
    pub fn is_of_another(&self, id: &str) -> bool {
        self.own_jobs.as_ref().is_some_and(|are_own| !are_own(id))
    }

    /// Returns the confinement of a run. Neither a run in a stricter profile than that of the worker nor a job of another
    /// node or command reaches its paths: the operator named them for jobs of this one.
    pub fn confinement(&self, run: Effective, is_foreign: bool) -> Confinement {
        let paths = match is_foreign || run.profile > self.worker.profile {
            true => SandboxPaths::default(),
            false => (*self.paths).clone(),
        };
        Confinement {
            profile: run.profile,
            read: paths.read,
            write: paths.write,
            limits: run.limits,
        }
    }

    /// Returns the profile and limits of a run, from those of the worker, its queue and its job.
    ///
    /// # Errors
    /// The reason why the job may not run on this worker.
    pub fn effective(
        &self,
        origin: JobOrigin,
        queue: &SandboxSettings,
        job: &SandboxSettings,
    ) -> Result<Effective, String> {
        let found =
            effective(&self.worker, origin, queue, job).map_err(|fault| fault.to_string())?;
        if !found.is_open() && !has_launcher() {
            return Err(format!("the sandbox `{}`: {NoLauncher}", found.profile));
        }
        Ok(found)
    }

    /// Returns the origin of a job of this node.
    #[must_use]
    pub fn origin(&self, id: &str) -> JobOrigin {
        match &self.own_jobs {
            Some(are_own) if are_own(id) => JobOrigin::Command,
            _ => JobOrigin::Node,
        }
    }
}

/// Returns true if the program has a launcher.
fn has_launcher() -> bool {
    #[cfg(feature = "scripts")]
    return sandbox::is_on();
    #[cfg(not(feature = "scripts"))]
    false
}

impl Default for SandboxPolicy {
    fn default() -> Self {
        Self::new(Profile::Open)
    }
}

impl fmt::Debug for SandboxPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxPolicy")
            .field("worker", &self.worker)
            .field("paths", &self.paths)
            .field("own_jobs", &self.own_jobs.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_memory_is_a_default_limit_of_confined_runs() {
        let policy = SandboxPolicy::new(Profile::Standard);
        let memory = policy.worker.defaults.get(Limit::Memory);
        assert_eq!(memory, host_memory().map(|bytes| bytes / 2));
        assert!(memory.is_some_and(|bytes| bytes > 64 << 20), "{memory:?}");
    }

    #[test]
    fn only_jobs_of_this_node_in_the_profile_of_the_worker_reach_its_paths() {
        let paths = SandboxPaths {
            read: vec!["/srv/models".into()],
            write: vec!["/srv/reports".into()],
        };
        let policy = SandboxPolicy::new(Profile::Standard).paths(paths);
        let run = |profile| Effective {
            profile,
            limits: Limits::NONE,
        };
        let reached = |profile, is_foreign| {
            let confinement = policy.confinement(run(profile), is_foreign);
            !confinement.read.is_empty() || !confinement.write.is_empty()
        };
        assert!(reached(Profile::Standard, false));
        assert!(!reached(Profile::Standard, true));
        assert!(!reached(Profile::Strict, false));
        assert!(!reached(Profile::Strict, true));
    }

    #[test]
    fn the_paths_of_a_command_are_for_its_own_jobs() {
        let policy = SandboxPolicy::new(Profile::Standard);
        assert!(!policy.is_of_another("a"));
        let of_command = policy.own_jobs(Profile::Standard, |id| id == "a");
        assert!(!of_command.is_of_another("a"));
        assert!(of_command.is_of_another("b"));
    }

    #[test]
    fn a_policy_that_confines_needs_the_launcher() {
        let open = SandboxPolicy::new(Profile::Open);
        assert!(!open.needs_launcher());
        assert!(SandboxPolicy::new(Profile::Strict).needs_launcher());
        let limited = [(Limit::Cpu, 1000)].into_iter().collect();
        assert!(open.clone().limits(limited).needs_launcher());
        assert!(open.own_jobs(Profile::Strict, |_| true).needs_launcher());
    }
}
