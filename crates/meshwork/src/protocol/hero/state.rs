//! State of a worker that only Hero's protocol has.

use std::collections::HashMap;
use std::sync::Arc;

use meshwork_broker::{Broker, Retention};
use meshwork_model::retry::RetryBackoff;
use tokio::sync::watch;

use super::maintenance::NextDue;
use super::pool::{Member, WorkerPool};
use super::registry::Present;
use super::subscription::{Lists, Subscriptions};
use crate::client::ObjectAccess;
#[cfg(feature = "scripts")]
use crate::flow::PlainEnv;
use meshwork_runtime::{CallActions, Runtime, SandboxPolicy};
use meshwork_worker::Identity;

/// The protocol of Hero, for one worker.
pub(super) struct HeroProtocol {
    pub(super) broker: Broker,
    pub(super) identity: Identity,
    pub(super) places: Subscriptions,
    pub(super) present: Present,
    /// Queues from which it claims now.
    pub(super) lists: watch::Sender<Arc<Lists>>,
    /// Runtimes, by script type.
    pub(super) runtimes: HashMap<String, Arc<dyn Runtime>>,
    /// Calls actions of services for all runs.
    pub(super) calls: Arc<dyn CallActions>,
    /// Rights of callers to objects, in a context.
    pub(super) access: Option<Arc<dyn ObjectAccess>>,
    pub(super) sandbox: Arc<SandboxPolicy>,
    pub(super) backoff: RetryBackoff,
    pub(super) retention: Retention,
    /// Time of the next retry of jobs that failed here.
    pub(super) next_due: NextDue,
    /// Environment of flows of plain clients, in a context.
    #[cfg(feature = "scripts")]
    pub(super) plain_env: Option<PlainEnv>,
    /// Its pool, and its entry there.
    pub(super) pooled: Option<(WorkerPool, Arc<Member>)>,
}

impl HeroProtocol {
    /// Returns its entry in its pool, if it is in one.
    pub(super) fn member(&self) -> Option<&Member> {
        self.pooled.as_ref().map(|(_, member)| &**member)
    }
}
