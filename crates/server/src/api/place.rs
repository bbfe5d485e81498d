//! Contexts of calls: the actor of the caller's key, whose roles decide there, and the jobs of a context.

use std::sync::Arc;

use meshwork::context::{Caller, ContextHandle, Node};
use meshwork::flow::FlowSession;
use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::{ActorId, ContextId, ContextKeys};
use meshwork_model::name::JobId;

use super::access::Access;
use super::call::Call;
use super::error::{ApiError, Code};
use super::sessions::Entered;

/// Reads the number of a context.
pub(crate) fn number(id: u32) -> Result<ContextId, ApiError> {
    let none = || ApiError::invalid("context: give the number of a context, from 1");
    ContextId::new(id).ok_or_else(none)
}

impl Call {
    /// The contexts and actors of the store.
    pub(crate) fn node(&self) -> Node {
        Node::of(self.client.broker())
    }

    /// Number of that actor, if there is one.
    pub(crate) fn actor(&self) -> Option<ActorId> {
        match &self.access {
            Access::Key(key) => key.actor,
            Access::Actor(actor) => Some(*actor),
            Access::All | Access::Local(_) => self.own_actor,
            Access::Nobody => None,
        }
    }

    /// Returns the actor that the caller acts as in contexts: that of its key, or of the server if it needs none.
    ///
    /// # Errors
    /// There is no such actor.
    pub(crate) fn caller(&self) -> Result<Caller, ApiError> {
        let through = self.access.key_name().map(|name| format!("api:{name}"));
        let actor = self.actor();
        let message = match through {
            Some(_) => "contexts have members, and this key is of no actor",
            None => {
                "contexts have members, and the caller is no actor: the server has no key file of one"
            }
        };
        let none = || {
            ApiError::new(Code::Forbidden, message)
                .hint("`meshwork key create NAME --actor N` makes a key of an actor")
        };
        let actor = actor.ok_or_else(none)?;
        Ok(Caller::new(actor, through.as_deref()))
    }

    /// Refuses a caller that is no actor whose keys are valid.
    pub(crate) async fn trusted(&self) -> Result<Caller, ApiError> {
        let caller = self.caller()?;
        let actor = self.node().actor(caller.id()).await?;
        match actor.revoked_at {
            None => Ok(caller),
            Some(_) => {
                let message = format!("the keys of actor {} are revoked", actor.id);
                Err(ApiError::new(Code::Forbidden, message))
            }
        }
    }

    /// Finds a context; without a number the only one of the store.
    pub(crate) async fn context(
        &self,
        id: Option<u32>,
    ) -> Result<(ContextHandle, Caller), ApiError> {
        let (node, caller) = (self.node(), self.caller()?);
        if let Some(id) = id {
            return Ok((node.context(number(id)?).await?, caller));
        }
        let mut contexts = node.contexts().await?;
        match contexts.len() {
            1 => Ok((contexts.remove(0), caller)),
            0 => Err(ApiError::new(Code::NotFound, "there is no context")
                .hint("`meshwork context create` makes one")),
            _ => Err(ApiError::invalid(
                "context: give its number, since there are several",
            )),
        }
    }

    /// Switches the call to a context if one is given, after a check of the permission.
    pub(crate) async fn enter(
        mut self,
        context: Option<u32>,
        needs: (Object, Operation),
    ) -> Result<Self, ApiError> {
        if let Some(id) = context {
            let (context, caller) = self.context(Some(id)).await?;
            self.enter_as(context, caller, needs).await?;
        }
        Ok(self)
    }

    async fn enter_as(
        &mut self,
        context: ContextHandle,
        caller: Caller,
        (object, operation): (Object, Operation),
    ) -> Result<(), ApiError> {
        context.allow_caller(&caller, object, operation).await?;
        let session = self.sessions.open(&self.client, &context, caller.id());
        self.client = session.await?.acting_as(&caller.to_string());
        self.entered = Some(Arc::new(Entered { context, caller }));
        Ok(())
    }

    /// Opens the flows of a context; without a number those of the only one of the store.
    pub(crate) async fn flows(
        mut self,
        context: Option<u32>,
        needs: (Object, Operation),
    ) -> Result<(Self, FlowSession), ApiError> {
        let (context, caller) = self.context(context).await?;
        self.enter_as(context.clone(), caller.clone(), needs)
            .await?;
        let session = FlowSession::over(&self.client, &context, &caller)?;
        Ok((self, session))
    }

    /// Adds an entry to the audit trail of the call's context, if it has one.
    pub(crate) async fn noted(&self, what: &str, object: &str) -> Result<(), ApiError> {
        match &self.entered {
            Some(entered) => {
                let Entered { context, caller } = &**entered;
                Ok(context.noted(caller, what, object).await?)
            }
            None => Ok(()),
        }
    }

    /// Switches the call to the context of a job, and reads the job's id. A key, as `{ctx:7}:job:12:2001`, names the context.
    pub(crate) async fn enter_job(
        self,
        context: Option<u32>,
        id: String,
        needs: (Object, Operation),
    ) -> Result<(Self, JobId), ApiError> {
        let named = || ContextKeys::named_in(&id).map(ContextId::get);
        let call = self.enter(context.or_else(named), needs).await?;
        let id = call.job_id(id)?;
        Ok((call, id))
    }

    /// Reads the id of a job: any text, since foreign clients choose theirs; in a context `2001`, `12:2001` or a key.
    pub(crate) fn job_id(&self, text: String) -> Result<JobId, ApiError> {
        match &self.entered {
            Some(entered) => Ok(entered.context.job_id(entered.caller.id(), &text)?),
            None => Ok(JobId::foreign(text)),
        }
    }
}
