//! Children of a running job. The run never gets access to the store: its worker adds them, with the
//! token of the claim in force.

mod options;

use std::sync::Arc;

use meshwork_broker::{AddedChild, Broker, Claimed, Enqueued};
use meshwork_model::job::{ChildDigest, InvalidChild, NewChild};
use meshwork_model::name::{JobId, ScriptType};
use meshwork_model::trace::TraceContext;
use tokio::sync::Mutex;

use super::{NoSandbox, RunSandbox};
use crate::{Client, Error};
pub(super) use options::child;

/// Reason why no child was added; nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddChildError {
    /// The run is not a job of Meshwork.
    #[error(
        "add_child() works only in jobs of Meshwork: this run belongs to another system (Bananas, Nooble4), or to no \
         worker"
    )]
    NotHere,
    /// The parent is a job of a context, whose jobs have numbers.
    #[error(
        "call {number} of add_child(): jobs of a context have no children: send a message with several jobs, or let a later \
         job wait for this one"
    )]
    InContext {
        /// The call within the run, from 1.
        number: u32,
    },
    /// The child is invalid, or exceeds a limit.
    #[error("call {number} of add_child(): {source}")]
    Invalid {
        /// The call within the run, from 1.
        number: u32,
        /// The fault.
        source: InvalidChild,
    },
    /// An earlier run added another child with the call of this number.
    #[error(
        "call {number} of add_child() differs from that of an earlier run in its {}: job {child} is unchanged. A job \
         that runs again has to add the same children in the same order",
        parts.join(" and its ")
    )]
    Differs {
        /// The call within the run, from 1.
        number: u32,
        /// Id of the child.
        child: JobId,
        /// The parts that differ: type, script, input, options.
        parts: Vec<&'static str>,
    },
    /// Another job has the child's id.
    #[error(
        "call {number} of add_child(): job {child} exists and is no child of this job: delete it, or give the parent \
         another id"
    )]
    Taken {
        /// The call within the run, from 1.
        number: u32,
        /// The id.
        child: JobId,
    },
    /// The parent may not run in a sandbox of this worker.
    #[error("call {number} of add_child(): {reason}")]
    Sandbox {
        /// The call within the run, from 1.
        number: u32,
        /// Reason.
        reason: String,
    },
    /// The parent is being cancelled.
    #[error(
        "call {number} of add_child(): job {parent} is being cancelled, and can add no children"
    )]
    Stopping {
        /// The call within the run, from 1.
        number: u32,
        /// The parent.
        parent: String,
    },
    /// The parent belongs to another worker, or has ended.
    #[error(
        "call {number} of add_child(): job {parent} no longer belongs to this run: its lease was lost, or it has ended"
    )]
    Stale {
        /// The call within the run, from 1.
        number: u32,
        /// The parent.
        parent: String,
    },
    /// The store refused the child as it would refuse any job, or the call failed.
    #[error("call {number} of add_child(): {source}")]
    Refused {
        /// The call within the run, from 1.
        number: u32,
        /// Reason.
        source: Box<Error>,
    },
}

/// Adds the children of one run. Clones share the count of calls.
#[derive(Debug, Clone)]
pub(crate) struct ChildAdder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
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
    pub(crate) fn new(
        broker: &Broker,
        claimed: &Arc<Claimed>,
        trace: Option<TraceContext>,
        sandbox: &RunSandbox,
    ) -> Option<Self> {
        let inner = Inner {
            broker: broker.clone(),
            claimed: Arc::clone(claimed),
            trace,
            sandbox: sandbox.clone(),
            calls: Mutex::new(0),
        };
        (!claimed.job.taken_over).then(|| Self(Arc::new(inner)))
    }

    /// Script type of the parent, from its queue: a foreign record may lack the type.
    fn script_type(&self) -> ScriptType {
        let prefix = self.0.broker.keys().work_prefix();
        let behind = self.0.claimed.queue.strip_prefix(&prefix);
        let name = behind.and_then(|behind| behind.split(':').next());
        ScriptType::foreign(name.unwrap_or_default().to_owned())
    }

    /// Adds a child and returns its id. If an earlier run has made the same call, that is the id of its child.
    pub(crate) async fn add_child(&self, child: &NewChild) -> Result<JobId, AddChildError> {
        let mut calls = self.0.calls.lock().await;
        // A refused call counts too, since the next run repeats it with the same number.
        *calls = calls.saturating_add(1);
        let number = *calls;
        let Inner {
            broker,
            claimed,
            trace,
            sandbox,
            ..
        } = &*self.0;
        let worker = claimed.job.worker.as_deref().unwrap_or_default();
        if broker.keys().context().is_some() {
            return Err(AddChildError::InContext { number });
        }
        let client = Client::new(broker.clone().acting_as(worker));
        let script_type = &self.script_type();
        let refused = |source| {
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

/// Adds a child of a run, if the run can have children.
pub(super) async fn add_child(
    child_adder: Option<&ChildAdder>,
    child: &NewChild,
) -> Result<JobId, AddChildError> {
    match child_adder {
        Some(child_adder) => child_adder.add_child(child).await,
        None => Err(AddChildError::NotHere),
    }
}
