//! Children of a running job. The run never gets access to the store: its worker adds them, with the
//! token of the claim in force.

mod options;

use std::sync::Arc;

use meshwork_broker::{AddedChild, Broker, Claimed, Enqueued};
use meshwork_model::job::{ChildDigest, InvalidChild, NewChild};
use meshwork_model::name::{JobId, ScriptType};
use meshwork_model::trace::TraceContext;
use tokio::sync::Mutex;

use crate::{Client, Error};
pub(super) use options::child;

/// Why a run got no child; nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddChildError {
    /// The run is not a job of Meshwork.
    #[error(
        "add_child() is only there for jobs of Meshwork: what runs here belongs to another system (Bananas, Nooble4), or \
         to no worker"
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
    /// The child cannot be meant, or is one too many.
    #[error("call {number} of add_child(): {source}")]
    Invalid {
        /// The call within the run, from 1.
        number: u32,
        /// The fault.
        source: InvalidChild,
    },
    /// An earlier run submitted something else at this place.
    #[error(
        "call {number} of add_child() differs from that of an earlier run in its {}: job {child} stays as it was submitted \
         then. A job that runs again has to submit the same children in the same order",
        parts.join(" and its ")
    )]
    Differs {
        /// The call within the run, from 1.
        number: u32,
        /// The child that is there, or was.
        child: JobId,
        /// The parts that differ: type, script, input, options.
        parts: Vec<&'static str>,
    },
    /// Another job has the child's id.
    #[error(
        "call {number} of add_child(): there is a job {child} already, which this job has not submitted: delete that one, \
         or give the parent another id"
    )]
    Taken {
        /// The call within the run, from 1.
        number: u32,
        /// The id.
        child: JobId,
    },
    /// Somebody wants the parent stopped.
    #[error(
        "call {number} of add_child(): job {parent} is being stopped, and submits nothing more"
    )]
    Stopping {
        /// The call within the run, from 1.
        number: u32,
        /// The parent.
        parent: String,
    },
    /// The parent is run by another worker by now, or has ended.
    #[error(
        "call {number} of add_child(): job {parent} is not this run's any more: its lease was lost, or it has ended"
    )]
    Stale {
        /// The call within the run, from 1.
        number: u32,
        /// The parent.
        parent: String,
    },
    /// The store refused it as it would refuse any job, or did not take the call.
    #[error("call {number} of add_child(): {source}")]
    Refused {
        /// The call within the run, from 1.
        number: u32,
        /// Why.
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
    /// Number of calls in this run. Locked during a call, so that calls are in the order of their numbers.
    calls: Mutex<u32>,
}

impl ChildAdder {
    /// For the run of a job that was claimed. None if it is a job of another system: it may go back there, and then
    /// nobody knows which children it had.
    pub(crate) fn new(
        broker: &Broker,
        claimed: &Arc<Claimed>,
        trace: Option<TraceContext>,
    ) -> Option<Self> {
        let inner = Inner {
            broker: broker.clone(),
            claimed: Arc::clone(claimed),
            trace,
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

    /// Submits a child and returns its id: that of the one which an earlier run has submitted by the same call, if
    /// there was one.
    pub(crate) async fn add_child(&self, child: &NewChild) -> Result<JobId, AddChildError> {
        let mut calls = self.0.calls.lock().await;
        // A call that is refused counts too: the next run asks for it again, in the same place.
        *calls = calls.saturating_add(1);
        let number = *calls;
        let Inner {
            broker,
            claimed,
            trace,
            ..
        } = &*self.0;
        let worker = claimed.job.worker.as_deref().unwrap_or_default();
        if broker.keys().context().is_some() {
            return Err(AddChildError::InContext { number });
        }
        let client = Client::new(broker.clone().acting_as(worker));
        let script_type = &self.script_type();
        let job = child.job((&claimed.job, script_type), number, trace.clone());
        let job = job.map_err(|source| AddChildError::Invalid { number, source })?;
        let refused = |source| {
            let source = Box::new(source);
            AddChildError::Refused { number, source }
        };
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

/// A child for a run, or the error that there is none to be had.
pub(super) async fn add_child(
    child_adder: Option<&ChildAdder>,
    child: &NewChild,
) -> Result<JobId, AddChildError> {
    match child_adder {
        Some(child_adder) => child_adder.add_child(child).await,
        None => Err(AddChildError::NotHere),
    }
}
