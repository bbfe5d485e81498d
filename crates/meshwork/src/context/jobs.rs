//! Jobs of a context: the client for them, for somebody who may do what he is about to do.

use meshwork_model::access::{Object, Operation};

use super::audit::Change;
use super::{ContextError, ContextHandle, Identity};
use crate::Client;

impl ContextHandle {
    /// A client for the jobs of this context in the name of `me`, who may do `operation` with `object`; a refusal stands in
    /// the audit trail. What the client is used for beyond that is not checked. A [`Worker`](crate::Worker) over it needs
    /// [`Operation::Pop`] of [`Object::Queue`].
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

    /// Adds to the audit trail what `me` has done with a job or a queue.
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
