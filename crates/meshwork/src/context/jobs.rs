//! Client for the jobs of a context, after a permission check.

use meshwork_model::access::{Object, Operation};

use super::audit::Change;
use super::{ContextError, ContextHandle, Identity};
use crate::Client;

impl ContextHandle {
    /// Returns a client for the jobs of this context with the identity `me`, after a check that `me` may do `operation`
    /// with `object`. A refusal is recorded in the audit trail. Other uses of the client are not checked. A
    /// [`Worker`](crate::Worker) over it needs [`Operation::Pop`] of [`Object::Queue`].
    ///
    /// # Errors
    /// [`ContextError::Denied`], or a call to the server fails.
    pub async fn client(
        &self,
        me: &Identity,
        object: Object,
        operation: Operation,
    ) -> Result<Client, ContextError> {
        self.allow(me.id(), object, operation).await?;
        let broker = self.node().broker().clone().acting_as(&me.to_string());
        let client = Client::new(broker);
        let client = client.in_context(self.keys().clone(), me.id()).await;
        Ok(client.map_err(Box::new)?)
    }

    /// Adds an entry to the audit trail: what `me` has done with a job or queue.
    ///
    /// # Errors
    /// The call to the server fails.
    pub async fn noted(&self, me: &Identity, what: &str, object: &str) -> Result<(), ContextError> {
        let who = me.to_string();
        self.note(Change {
            who: &who,
            what,
            object,
            ..Change::default()
        })
        .await
    }
}
