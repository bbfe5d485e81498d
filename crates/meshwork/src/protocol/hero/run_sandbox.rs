//! Sandbox of one run, made from the policy of its worker, the settings of its queue and its record.

use std::fmt;
use std::sync::Arc;

use meshwork_broker::{Broker, Claimed, Error};
use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::sandbox::{Effective, JobOrigin};
use tokio::sync::OnceCell;

use meshwork_runtime::{Confinement, SandboxPolicy};

/// The sandbox of a run. The settings of the queue are read once, and only if the run starts a process or adds a child:
/// all others need no sandbox. Clones share the answer.
#[derive(Clone)]
pub(crate) struct RunSandbox(Arc<Inner>);

struct Inner {
    broker: Broker,
    policy: Arc<SandboxPolicy>,
    claimed: Arc<Claimed>,
    effective: OnceCell<Effective>,
}

/// Reason for which a run has no sandbox.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoSandbox {
    /// The settings of the queue cannot be read now.
    #[error(transparent)]
    Broker(#[from] Error),
    /// No run of the job is allowed on this worker.
    #[error("{0}")]
    Refused(String),
}

impl NoSandbox {
    /// Returns the failure of the run. A refused job is not retried; one whose settings cannot be read has not begun.
    pub(crate) fn into_failure(self) -> Failure {
        let kind = match &self {
            Self::Broker(_) => FailureKind::NotStarted,
            Self::Refused(_) => FailureKind::Permanent,
        };
        Failure::new(kind, self.to_string())
    }
}

impl RunSandbox {
    /// Returns the sandbox for the run of a claimed job.
    pub(crate) fn new(
        broker: &Broker,
        policy: &Arc<SandboxPolicy>,
        claimed: &Arc<Claimed>,
    ) -> Self {
        Self(Arc::new(Inner {
            broker: broker.clone(),
            policy: Arc::clone(policy),
            claimed: Arc::clone(claimed),
            effective: OnceCell::new(),
        }))
    }

    /// Returns the profile and the limits.
    pub(crate) async fn effective(&self) -> Result<Effective, NoSandbox> {
        let found = self.0.effective.get_or_try_init(|| self.find());
        found.await.copied()
    }

    /// Returns the confinement of the run in this sandbox.
    pub(crate) fn confinement(&self, run: Effective) -> Confinement {
        let Inner {
            policy, claimed, ..
        } = &*self.0;
        let is_foreign = claimed.job.node.is_some() || policy.is_of_another(&claimed.job.id);
        policy.confinement(run, is_foreign)
    }

    async fn find(&self) -> Result<Effective, NoSandbox> {
        let Inner {
            broker,
            policy,
            claimed,
            ..
        } = &*self.0;
        let job = claimed.job.sandbox().map_err(|fault| {
            NoSandbox::Refused(format!("the sandbox of the job cannot be read: {fault}"))
        })?;
        let queue = broker.settings_of(&claimed.queue).await?.sandbox;
        let origin = match &claimed.job.node {
            Some(_) => JobOrigin::Foreign {
                granted: broker.granted_sandbox().await?,
            },
            None => policy.origin(&claimed.job.id),
        };
        policy
            .effective(origin, &queue, &job)
            .map_err(NoSandbox::Refused)
    }
}

impl fmt::Debug for RunSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunSandbox")
            .field(&self.0.effective.get())
            .finish()
    }
}
