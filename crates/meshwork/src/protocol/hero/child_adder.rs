//! Children of a running job: the worker adds them, with the token of the claim in force.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork_broker::{AddedChild, Broker, Claimed, Enqueued};
use meshwork_model::job::{ChildDigest, NewChild};
use meshwork_model::name::{JobId, ScriptType};
use meshwork_model::trace::TraceContext;
use meshwork_runtime::{AddChild, AddChildError};
use tokio::sync::Mutex;

use super::run_sandbox::{NoSandbox, RunSandbox};
use crate::{Client, Error};

/// Adds the children of one run.
#[derive(Debug)]
pub(super) struct ChildAdder {
    broker: Broker,
    claimed: Arc<Claimed>,
    trace: Option<TraceContext>,
    sandbox: RunSandbox,
    /// Number of calls in this run. Locked during a call, so that calls are in the order of their numbers.
    calls: Mutex<u32>,
}

impl ChildAdder {
    /// Returns the adder for the run of a claimed job. `None` for an imported job: after an export, its children would be
    /// unknown to the other system.
    pub(super) fn of_run(
        broker: &Broker,
        claimed: &Arc<Claimed>,
        trace: Option<TraceContext>,
        sandbox: &RunSandbox,
    ) -> Option<Arc<dyn AddChild>> {
        let adder = Self {
            broker: broker.clone(),
            claimed: Arc::clone(claimed),
            trace,
            sandbox: sandbox.clone(),
            calls: Mutex::new(0),
        };
        (!claimed.job.taken_over).then(|| Arc::new(adder) as _)
    }

    /// Script type of the parent, from its queue: a foreign record may lack the type.
    fn script_type(&self) -> ScriptType {
        let prefix = self.broker.keys().work_prefix();
        let behind = self.claimed.queue.strip_prefix(&prefix);
        let name = behind.and_then(|behind| behind.split(':').next());
        ScriptType::foreign(name.unwrap_or_default().to_owned())
    }

    async fn add(&self, child: &NewChild) -> Result<JobId, AddChildError> {
        let mut calls = self.calls.lock().await;
        // A refused call counts too, since the next run repeats it with the same number.
        *calls = calls.saturating_add(1);
        let number = *calls;
        let Self {
            broker,
            claimed,
            trace,
            sandbox,
            ..
        } = self;
        let worker = claimed.job.worker.as_deref().unwrap_or_default();
        if broker.keys().context().is_some() {
            return Err(AddChildError::InContext { number });
        }
        let client = Client::new(broker.clone().acting_as(worker));
        let script_type = &self.script_type();
        let refused = |source: Error| {
            let source = Box::new(source);
            AddChildError::Refused { number, source }
        };
        let ran = sandbox.effective().await.map_err(|fault| match fault {
            NoSandbox::Broker(error) => refused(error.into()),
            NoSandbox::Refused(reason) => AddChildError::Sandbox { number, reason },
        })?;
        let parent = (&*claimed.job, script_type, ran.profile);
        let job = child.job(parent, number, trace.clone());
        let job = job.map_err(|source| AddChildError::Invalid { number, source })?;
        let digest = child.digest(script_type);
        let submitted = client.add_child(claimed, number, &job, &digest).await;
        let (child, parent) = (job.id.clone(), claimed.job.id.clone());
        let answer = match submitted.map_err(refused)? {
            AddedChild::Enqueued(answer) => answer,
            AddedChild::Differs(before) => {
                return Err(differs(number, child, &digest, &before));
            }
            AddedChild::Taken => return Err(AddChildError::Taken { number, child }),
            AddedChild::Stopping => return Err(AddChildError::Stopping { number, parent }),
            AddedChild::Stale => return Err(AddChildError::Stale { number, parent }),
        };
        if answer != Enqueued::Exists {
            client.accepted(&job, answer).await.map_err(refused)?;
        }
        Ok(child)
    }
}

fn differs(number: u32, child: JobId, digest: &ChildDigest, before: &str) -> AddChildError {
    let parts = digest.differences(before);
    AddChildError::Differs {
        number,
        child,
        parts,
    }
}

impl AddChild for ChildAdder {
    fn add_child<'a>(&'a self, child: &'a NewChild) -> BoxFuture<'a, Result<JobId, AddChildError>> {
        Box::pin(self.add(child))
    }
}
