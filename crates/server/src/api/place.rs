//! Contexts of calls: the actor of the caller's key, whose roles decide there, and the jobs of a context.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use meshwork::context::{Caller, ContextHandle, Node};
use meshwork::flow::FlowSession;
use meshwork::spread::SpreadName;
use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::{ActorId, ContextId};
use meshwork_model::name::JobId;

use super::access::Access;
use super::call::Call;
use super::error::{ApiError, Code};
use super::params::{Page, parse_some, wrong_cursor};
use super::rights::Ground;
use super::sessions::Entered;

/// Greatest number of parts in one call.
const MAX_CALLED: usize = 256;
/// Greatest number of parts that a call uses at once.
const AT_ONCE: usize = 16;

/// Reads the number of a context.
pub(crate) fn number(id: u32) -> Result<ContextId, ApiError> {
    let none = || ApiError::invalid("context: give the number of a context, from 1");
    ContextId::new(id).ok_or_else(none)
}

/// Place of the jobs of a call, as its parameters name it: neither is outside contexts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Number of a context.
    pub(crate) context: Option<u32>,
    /// All parts of a spread queue.
    pub(crate) spread: bool,
}

impl Place {
    /// Returns true outside contexts.
    pub(crate) fn is_outside(self) -> bool {
        self.context.is_none() && !self.spread
    }
}

/// A call in the place of its jobs.
pub(crate) enum Placed {
    One(Box<Call>),
    /// A call in each part of spread queues, by number.
    Parts(Vec<(ContextId, Call)>),
}

impl Placed {
    /// Runs `act` in the place, in parts at once. A failure in one part does not stop the others; the first is returned,
    /// and names its part.
    pub(crate) async fn each<T, F>(self, act: impl Fn(Call) -> F) -> Result<Each<T>, ApiError>
    where
        F: Future<Output = Result<T, ApiError>>,
    {
        let parts = match self {
            Self::One(call) => return Ok(Each::One(act(*call).await?)),
            Self::Parts(parts) => parts,
        };
        let results = parts.into_iter().map(|(id, call)| {
            let result = act(call);
            async move { result.await.map_err(|error| error.in_part(id)) }
        });
        let results = futures_util::stream::iter(results).buffered(AT_ONCE);
        let results: Vec<_> = results.collect().await;
        Ok(Each::Parts(results.into_iter().collect::<Result<_, _>>()?))
    }
}

impl Placed {
    /// Reads a page with `read`, which gets a cursor and the greatest number of items. Parts follow each other; their cursors
    /// begin with the part, as `7/`.
    pub(crate) async fn page<T, F>(
        self,
        cursor: Option<&str>,
        limit: usize,
        read: impl Fn(Call, Option<String>, usize) -> F,
    ) -> Result<Page<T>, ApiError>
    where
        F: Future<Output = Result<Page<T>, ApiError>>,
    {
        let parts = match self {
            Self::One(call) => return read(*call, cursor.map(str::to_owned), limit).await,
            Self::Parts(parts) => parts,
        };
        let (first, mut inner) = cursor.map_or(Ok((0, None)), in_part)?;
        let mut parts = parts
            .into_iter()
            .skip_while(|(id, _)| id.get() < first)
            .peekable();
        let mut items = Vec::new();
        while let Some((id, call)) = parts.next() {
            let inner = inner.take().filter(|_| id.get() == first);
            let page = read(call, inner, limit - items.len()).await;
            let (more, next) = page.map_err(|error| error.in_part(id))?;
            items.extend(more);
            if let Some(next) = next {
                return Ok((items, Some(format!("{id}/{next}"))));
            }
            match parts.peek() {
                Some((id, _)) if items.len() >= limit => {
                    return Ok((items, Some(format!("{id}/"))));
                }
                _ => {}
            }
        }
        Ok((items, None))
    }
}

/// Reads a cursor of parts: the part, and the cursor there.
fn in_part(cursor: &str) -> Result<(u32, Option<String>), ApiError> {
    let read = cursor.split_once('/');
    let read = read.and_then(|(part, inner)| Some((part.parse().ok()?, inner)));
    let (part, inner) = read.ok_or_else(wrong_cursor)?;
    Ok((part, (!inner.is_empty()).then(|| inner.to_owned())))
}

/// Results of a call in the place of its jobs.
pub(crate) enum Each<T> {
    One(T),
    Parts(Vec<T>),
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
        let id = id.map(number).transpose()?;
        if let Some(id) = id.or_else(|| self.access.context()) {
            self.check_context(id)?;
            return Ok((node.context(id).await?, caller));
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

    /// Switches the call to the place of its jobs, after a check of the permission there.
    ///
    /// # Errors
    /// The caller has not the permission in all parts of a spread queue. Nothing was changed in any of them.
    pub(crate) async fn enter_all(
        self,
        place: Place,
        queue: Option<&str>,
        needs: (Object, Operation),
    ) -> Result<Placed, ApiError> {
        let Place { context, spread } = place;
        match (context, spread) {
            (Some(_), true) => Err(ApiError::invalid("context and spread: give one of them")),
            (_, true) => {
                let name = parse_some("queue", queue)?;
                self.enter_parts(name.as_ref(), needs)
                    .await
                    .map(Placed::Parts)
            }
            (_, false) => Ok(Placed::One(Box::new(self.enter(context, needs).await?))),
        }
    }

    /// Returns the call in each part of a spread queue, or of all spread queues, after a check of the permission in all of
    /// them.
    pub(crate) async fn enter_parts(
        self,
        name: Option<&SpreadName>,
        needs: (Object, Operation),
    ) -> Result<Vec<(ContextId, Self)>, ApiError> {
        let (node, caller) = (self.node(), self.caller()?);
        let parts = node.spread_contexts(name).await?;
        if parts.len() > MAX_CALLED {
            let (all, most) = (parts.len(), MAX_CALLED);
            let message = format!(
                "queue: give one, since the spread queues have {all} parts, and a call uses {most} at most"
            );
            return Err(ApiError::invalid(message));
        }
        let calls = parts.into_iter().map(|id| {
            let (node, mut call, caller) = (&node, self.clone(), caller.clone());
            async move {
                let context = node.context(id).await?;
                let entered = call.enter_as(context, caller, needs).await;
                entered
                    .map_err(|error| error.in_part(id))
                    .map(|()| (id, call))
            }
        });
        let calls = futures_util::stream::iter(calls).buffered(AT_ONCE);
        calls.try_collect().await
    }

    async fn enter_as(
        &mut self,
        context: ContextHandle,
        caller: Caller,
        (object, operation): (Object, Operation),
    ) -> Result<(), ApiError> {
        self.check_context(context.id())?;
        context.allow_caller(&caller, object, operation).await?;
        let needs = (object, operation);
        self.rest_on(Ground::Role(context.id(), caller.id(), needs));
        let session = self.sessions.open(&self.client, &context, caller.id());
        self.client = session.await?.acting_as(&caller.to_string());
        self.entered = Some(Arc::new(Entered { context, caller }));
        Ok(())
    }

    /// Number of the call's context, if it has one.
    pub(crate) fn context_number(&self) -> Option<u32> {
        let entered = self.entered.as_ref()?;
        Some(entered.context.id().get())
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

    /// Switches the call to the context of a job, and reads the job's id.
    pub(crate) async fn enter_job(
        self,
        context: Option<u32>,
        id: String,
        needs: (Object, Operation),
    ) -> Result<(Self, JobId), ApiError> {
        let call = self.enter(context, needs).await?;
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
