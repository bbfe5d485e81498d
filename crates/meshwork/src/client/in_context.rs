//! Clients of a context: the same calls over the keys of the context, where the id of a job is its key.

use std::sync::Arc;

use meshwork_broker::context::{ContextStore, Database};
use meshwork_model::keys::context::{ActorId, ContextKeys, Counter, JobKey};
use meshwork_model::name::JobId;

use super::{Client, JobRequest};
use crate::Error;

/// Most draws for one job, where plain clients take the numbers in between.
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

impl Client {
    /// A client for the jobs of a context, over the same store. A job that is submitted without an id gets the next number
    /// of `caller`. What the caller may do is not checked here:
    /// [`ContextHandle::client`](crate::context::ContextHandle::client) does that.
    ///
    /// # Errors
    /// If the connection cannot be made, or the store has no such database.
    pub async fn in_context(&self, keys: ContextKeys, caller: ActorId) -> Result<Self, Error> {
        let broker = self.broker.of_context(keys.clone()).await?;
        let numbers = Numbers {
            // Its connection is one to the database of the context.
            store: ContextStore::of(&broker),
            keys,
            caller,
        };
        Ok(Self {
            numbers: Some(Arc::new(numbers)),
            ..Self::new(broker)
        })
    }

    /// The id of the next job of the client's caller, for a job that is stored later. No other call returns it again.
    ///
    /// # Errors
    /// [`Error::NoContext`] if this client is of no context, [`Error::NoJobNumber`] if all numbers are taken, and if the
    /// server does not take the call.
    pub async fn next_job_id(&self) -> Result<JobId, Error> {
        let numbers = self.numbers.as_ref().ok_or(Error::NoContext)?;
        numbers.next().await
    }

    /// Opens a gate of the context, for good, and releases the jobs that wait for it and for nothing else. True if it was not
    /// open. May be repeated.
    ///
    /// # Errors
    /// If this client is of no context, the name is that of a job, a message or a flow, or none at all, and if the server
    /// does not take a call.
    pub async fn open_gate(&self, name: &str) -> Result<bool, Error> {
        Ok(self.broker.open_gate(name).await?)
    }

    /// Submits a job under the next number that is free.
    pub(super) async fn submit_numbered(
        &self,
        numbers: &Numbers,
        request: JobRequest,
    ) -> Result<JobId, Error> {
        let mut taken = None;
        for _ in 0..TRIES {
            let id = numbers.next().await?;
            match self.submit_named(request.clone().id(id)).await {
                Err(error @ Error::Exists { .. }) => taken = Some(error),
                submitted => return submitted,
            }
        }
        let caller = numbers.caller;
        Err(taken.unwrap_or(Error::NoJobNumber { caller }))
    }
}
