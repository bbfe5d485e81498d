//! Children of a running job. The run never gets access to the store: its worker adds them, with the
//! token of the claim in force.

#[cfg(feature = "scripts")]
mod options;

use std::error::Error;
use std::fmt;

use futures_util::future::BoxFuture;
use meshwork_model::job::{InvalidChild, NewChild};
use meshwork_model::name::JobId;

#[cfg(feature = "scripts")]
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
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Adds the children of one run. Implementations share the count of its calls.
pub trait AddChild: fmt::Debug + Send + Sync {
    /// Adds a child and returns its id. If an earlier run has made the same call, that is the id of its child.
    ///
    /// # Errors
    /// The child was not added; nothing was written.
    fn add_child<'a>(&'a self, child: &'a NewChild) -> BoxFuture<'a, Result<JobId, AddChildError>>;
}

/// Adds a child of a run, if the run can have children.
///
/// # Errors
/// The child was not added; nothing was written.
pub async fn add_child(
    child_adder: Option<&dyn AddChild>,
    child: &NewChild,
) -> Result<JobId, AddChildError> {
    match child_adder {
        Some(child_adder) => child_adder.add_child(child).await,
        None => Err(AddChildError::NotHere),
    }
}
