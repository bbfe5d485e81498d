//! Client for the jobs of a context, after a permission check.

use std::sync::Arc;

use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::{ActorId, JobKey};
use meshwork_model::name::JobId;

use super::audit::Change;
use super::{Acting, ContextError, ContextHandle};
use crate::Client;

impl ContextHandle {
    /// Resolves the id of a job: `2001` is a job of the actor, `12:2001` one of caller 12; else a whole key.
    ///
    /// # Errors
    /// The text names no job of this context.
    pub fn job_id(&self, me: ActorId, text: &str) -> Result<JobId, ContextError> {
        let id = self.awaited(me, text);
        match self.keys().parse_job(id.as_str().as_bytes()) {
            Ok(_) => Ok(id),
            Err(error) => Err(ContextError::InvalidJob(error.to_string())),
        }
    }

    /// Resolves the id of a prerequisite: any other text is a key of another kind, or a gate.
    #[must_use]
    pub fn awaited(&self, me: ActorId, text: &str) -> JobId {
        let keys = self.keys();
        let own = text.parse().map(|id| JobKey { caller: me, id });
        let name = text.strip_prefix(keys.prefix()).unwrap_or(text);
        let key = own.or_else(|_| JobKey::of_numbers(name.strip_prefix("job:").unwrap_or(name)));
        key.map_or_else(|_| JobId::foreign(text.to_owned()), |key| keys.job_id(key))
    }

    /// Returns a client for the jobs of this context with the identity `me`, after a check that `me` may do `operation`
    /// with `object`. A refusal is recorded in the audit trail. Other uses of the client are not checked. A
    /// [`Worker`](crate::Worker) over it needs [`Operation::Pop`] of [`Object::Queue`].
    ///
    /// # Errors
    /// [`ContextError::Denied`], or a call to the server fails.
    pub async fn client(
        &self,
        me: &impl Acting,
        object: Object,
        operation: Operation,
    ) -> Result<Client, ContextError> {
        self.allow_caller(me, object, operation).await?;
        let broker = self.node().broker().clone().acting_as(&me.to_string());
        let client = Client::new(broker);
        let client = client.in_context(self.keys().clone(), me.id()).await;
        let client = client.map_err(Box::new)?;
        Ok(client.with_object_access(Arc::new(self.clone())))
    }

    /// Adds an entry to the audit trail: what `me` has done with a job or queue.
    ///
    /// # Errors
    /// The call to the server fails.
    pub async fn noted(
        &self,
        me: &impl Acting,
        what: &str,
        object: &str,
    ) -> Result<(), ContextError> {
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
