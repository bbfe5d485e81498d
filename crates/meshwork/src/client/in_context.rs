//! Clients of a context: the same calls over the keys of the context, where the key of a job is its id.

use meshwork_macros::boxed;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork_broker::context::{ContextStore, Database};
use meshwork_model::access::Operation;
use meshwork_model::keys::context::{ActorId, ContextKeys, Counter, JobKey};
use meshwork_model::name::JobId;

use super::{Client, JobRequest, Placed};
use crate::Error;

/// Greatest number of attempts to find a number for one job, when plain clients use the same numbers.
const TRIES: usize = 16;

/// Numbers of new jobs of one caller in one context.
#[derive(Debug)]
pub(super) struct Numbers {
    store: ContextStore,
    keys: ContextKeys,
    caller: ActorId,
}

impl Numbers {
    async fn next(&self) -> Result<JobId, Error> {
        let caller = self.caller;
        let (counter, prefix) = (
            self.keys.next_id(Counter::Job),
            self.keys.job_prefix(caller),
        );
        let drawn = self.store.draw(Database::Node, &counter, &prefix).await?;
        let id = drawn.ok_or(Error::NoJobNumber { caller })?;
        Ok(self.keys.job_id(JobKey { caller, id }))
    }
}

/// Rights of the callers of a context's jobs.
pub(crate) trait ObjectAccess: Send + Sync {
    /// Returns the reason if the caller of a job may not do this with objects of the context. A refusal is in the audit
    /// trail.
    fn allow<'a>(
        &'a self,
        caller: &'a str,
        operation: Operation,
    ) -> BoxFuture<'a, Result<(), String>>;
}

impl Client {
    /// Returns a client for the jobs of a context, over the same store. A job without an id gets the next number of
    /// `caller`. Permissions are not checked here; use [`ContextHandle::client`](crate::context::ContextHandle::client)
    /// for that.
    ///
    /// # Errors
    /// The connection fails, or the store has no such database.
    #[boxed]
    pub async fn in_context(&self, keys: ContextKeys, caller: ActorId) -> Result<Self, Error> {
        let broker = self.broker.of_context(keys.clone()).await?;
        let numbers = Numbers {
            // The connection uses the database of the context.
            store: ContextStore::of(&broker),
            keys,
            caller,
        };
        Ok(Self {
            numbers: Some(Arc::new(numbers)),
            ..Self::new(broker)
        })
    }

    /// Reserves the id of a job of the client's caller. No other call returns the same id.
    ///
    /// # Errors
    /// [`Error::NoContext`] if this client has no context, [`Error::NoJobNumber`] if all numbers are used, or the call
    /// to the server fails.
    #[boxed]
    pub async fn next_job_id(&self) -> Result<JobId, Error> {
        let numbers = self.numbers.as_ref().ok_or(Error::NoContext)?;
        numbers.next().await
    }

    /// Opens a gate of the context permanently, and releases the jobs that only wait for this gate. Returns true if the
    /// gate was closed. May be repeated.
    ///
    /// # Errors
    /// This client has no context; the name is empty, or that of a job, a message or a flow; or a call to the server
    /// fails.
    #[boxed]
    pub async fn open_gate(&self, name: &str) -> Result<bool, Error> {
        Ok(self.broker.open_gate(name).await?)
    }

    /// Enqueues a job under the next free number.
    pub(super) async fn enqueue_numbered(
        &self,
        numbers: &Numbers,
        request: JobRequest,
    ) -> Result<Placed, Error> {
        let mut taken = None;
        for _ in 0..TRIES {
            let id = numbers.next().await?;
            match self.enqueue_named(request.clone().id(id)).await? {
                Placed::IdExists(id) => taken = Some(Error::JobExists { id }),
                placed => return Ok(placed),
            }
        }
        let caller = numbers.caller;
        Err(taken.unwrap_or(Error::NoJobNumber { caller }))
    }
}
