//! What all parts of a running worker share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Broker, Retention};
use meshwork_model::retry::RetryBackoff;
use tokio::sync::watch;

use super::identity::Identity;
use super::lists::{Lists, Places};
use super::logfile::LogFolders;
use super::maintenance::NextDue;
use super::meter::Meter;
use super::presence::Present;
use crate::runner::Runner;

/// What all parts of a running worker share.
pub(crate) struct Setup {
    pub(super) broker: Broker,
    pub(super) identity: Identity,
    pub(super) places: Places,
    pub(super) present: Present,
    /// What it takes from now.
    pub(super) lists: watch::Sender<Arc<Lists>>,
    /// By script type.
    pub(super) runners: HashMap<String, Arc<dyn Runner>>,
    pub(super) concurrency: usize,
    pub(super) lease: Duration,
    pub(super) grace: Duration,
    pub(super) stop_grace: Duration,
    pub(super) log_folders: Arc<LogFolders>,
    pub(super) backoff: RetryBackoff,
    pub(super) retention: Retention,
    /// When a job that failed here is due again.
    pub(super) next_due: NextDue,
    /// What it counts.
    pub(super) meter: Arc<Meter>,
    /// Whether it is, or is to be, on the list of listeners.
    pub(super) listening: tokio::sync::Mutex<bool>,
}

impl Setup {
    /// The runner of a queue's jobs: the queue says the type, a foreign record may not.
    pub(super) fn runner(&self, queue: &str) -> Option<&Arc<dyn Runner>> {
        let prefix = self.broker.keys().work_prefix();
        let script_type = queue.strip_prefix(&prefix)?.split(':').next()?;
        self.runners.get(script_type)
    }

    /// What it takes from now.
    pub(super) fn lists(&self) -> Arc<Lists> {
        Arc::clone(&self.lists.borrow())
    }

    /// Between two renewals: two may fail before a lease is lost.
    pub(super) fn renew_every(&self) -> Duration {
        self.lease / 3
    }

    /// How long one wait on a queue lasts: it ends before this worker, should it fail to renew, counts as
    /// gone, so that no id comes into a feed list that nobody looks after.
    pub(super) fn park_for(&self) -> Duration {
        self.lease.mul_f64(0.6)
    }
}
