//! Place of an operation: a store with its caller, outside of contexts, in a context, or in all parts of spread queues.
//! The roles of the caller decide in contexts, whose audit trails name each change.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{StreamExt, TryStreamExt};
use meshwork::Client;
use meshwork::context::{ActorId, Caller, ContextHandle, ContextId, Node, Object, Operation};
use meshwork::spread::SpreadName;
use meshwork_model::name::JobId;

use crate::error::{InPart, OpError};
use crate::params::{Page, parse_some, wrong_cursor};
use crate::sessions::{Entered, Sessions};

/// Greatest number of parts that an operation uses at once.
const AT_ONCE: usize = 16;
/// Greatest length of an object in an audit entry, in bytes. A longer one is cut.
const MAX_AUDIT_OBJECT: usize = 200;

/// Permission that an operation needs in a context.
pub type Needs = (Object, Operation);

/// A permission that was used: context, actor, and what it did there.
pub type UsedRole = (ContextId, ActorId, Needs);

/// Reads the number of a context.
///
/// # Errors
/// It is 0.
pub fn number(id: u32) -> Result<ContextId, OpError> {
    let none = || OpError::invalid("context: give the number of a context, from 1");
    ContextId::new(id).ok_or_else(none)
}

/// Place of the jobs of an operation, as its parameters name it: neither is outside contexts.
#[derive(Debug, Clone, Copy, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// Number of the context; none is outside contexts.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub context: Option<u32>,
    /// True for all parts of the spread queue that the other parameters name, or of all spread queues.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub spread: bool,
}

impl Place {
    /// Returns true outside contexts.
    #[must_use]
    pub fn is_outside(self) -> bool {
        self.context.is_none() && !self.spread
    }
}

/// A store in the place of an operation. `S` is the store, or a call that has one.
#[derive(Debug)]
pub enum Placed<S = Store> {
    /// Outside contexts, or in one.
    One(Box<S>),
    /// In each part of spread queues, by number.
    Parts(Vec<(ContextId, S)>),
}

impl<S> Placed<S> {
    /// Returns the same place of another kind of store.
    pub fn map<T>(self, change: impl Fn(S) -> T) -> Placed<T> {
        match self {
            Self::One(store) => Placed::One(Box::new(change(*store))),
            Self::Parts(parts) => {
                let parts = parts.into_iter().map(|(id, store)| (id, change(store)));
                Placed::Parts(parts.collect())
            }
        }
    }

    /// Runs `act` in the place, in parts at once. A failure in one part does not stop the others; the first is returned,
    /// and names its part.
    ///
    /// # Errors
    /// `act` fails.
    pub async fn each<T, E, F>(self, act: impl Fn(S) -> F) -> Result<Each<T>, E>
    where
        F: Future<Output = Result<T, E>>,
        E: InPart,
    {
        let parts = match self {
            Self::One(store) => return Ok(Each::One(act(*store).await?)),
            Self::Parts(parts) => parts,
        };
        let results = parts.into_iter().map(|(id, store)| {
            let result = act(store);
            async move { result.await.map_err(|error| error.in_part(id)) }
        });
        let results = futures_util::stream::iter(results).buffered(AT_ONCE);
        let results: Vec<_> = results.collect().await;
        Ok(Each::Parts(results.into_iter().collect::<Result<_, _>>()?))
    }

    /// Reads a page with `read`, which gets a cursor and the greatest number of items. Parts follow each other; their cursors
    /// begin with the part, as `7/`.
    ///
    /// # Errors
    /// No page gave the cursor, or `read` fails.
    pub async fn page<T, E, F>(
        self,
        cursor: Option<&str>,
        limit: usize,
        read: impl Fn(S, Option<String>, usize) -> F,
    ) -> Result<Page<T>, E>
    where
        F: Future<Output = Result<Page<T>, E>>,
        E: InPart,
    {
        let parts = match self {
            Self::One(store) => return read(*store, cursor.map(str::to_owned), limit).await,
            Self::Parts(parts) => parts,
        };
        let (first, mut inner) = cursor.map_or(Ok((0, None)), in_part)?;
        let mut parts = parts
            .into_iter()
            .skip_while(|(id, _)| id.get() < first)
            .peekable();
        let mut items = Vec::new();
        while let Some((id, store)) = parts.next() {
            let inner = inner.take().filter(|_| id.get() == first);
            let page = read(store, inner, limit - items.len()).await;
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
fn in_part(cursor: &str) -> Result<(u32, Option<String>), OpError> {
    let read = cursor.split_once('/');
    let read = read.and_then(|(part, inner)| Some((part.parse().ok()?, inner)));
    let (part, inner) = read.ok_or_else(wrong_cursor)?;
    Ok((part, (!inner.is_empty()).then(|| inner.to_owned())))
}

/// Results of an operation in its place.
#[derive(Debug)]
pub enum Each<T> {
    /// Outside contexts, or in one.
    One(T),
    /// In each part of spread queues, by number.
    Parts(Vec<T>),
}

/// A store with the caller of an operation.
#[derive(Debug, Clone)]
pub struct Store {
    /// Client of the context that was entered, else of the store.
    pub client: Client,
    caller: Option<Caller>,
    /// The only context in which the caller may work.
    only: Option<ContextId>,
    /// Greatest number of parts in one operation.
    most_parts: usize,
    sessions: Arc<Sessions>,
    /// The context that was entered.
    pub entered: Option<Arc<Entered>>,
    used: Arc<Mutex<Vec<UsedRole>>>,
}

impl Store {
    /// Returns a store with its caller, who is an actor where contexts are used.
    #[must_use]
    pub fn new(client: Client, caller: Option<Caller>, sessions: Arc<Sessions>) -> Self {
        Self {
            client,
            caller,
            only: None,
            most_parts: usize::MAX,
            sessions,
            entered: None,
            used: Arc::default(),
        }
    }

    /// Confines the caller to a context, if one is given, and an operation to this number of parts.
    #[must_use]
    pub fn confined(self, only: Option<ContextId>, most_parts: usize) -> Self {
        Self {
            only,
            most_parts,
            ..self
        }
    }

    /// The contexts and actors of the store.
    #[must_use]
    pub fn node(&self) -> Node {
        Node::of(self.client.broker())
    }

    /// Returns the actor as which the caller works in contexts.
    ///
    /// # Errors
    /// The caller is no actor.
    pub fn caller(&self) -> Result<Caller, OpError> {
        let none = || OpError::Forbidden {
            message: "contexts have members, and the caller is no actor".to_owned(),
            hint: Some(
                "`meshwork key create NAME --actor N` makes a key of an actor; a server without keys acts as the actor of its key file",
            ),
        };
        self.caller.clone().ok_or_else(none)
    }

    /// Refuses a context that is not that of the caller's key.
    ///
    /// # Errors
    /// It is another one.
    pub fn check_context(&self, id: ContextId) -> Result<(), OpError> {
        match self.only.filter(|only| *only != id) {
            Some(only) => Err(OpError::Forbidden {
                message: format!("this key is for context {only} alone, and not for context {id}"),
                hint: None,
            }),
            None => Ok(()),
        }
    }

    /// Finds a context; without a number that of the caller's key, or the only one of the store.
    ///
    /// # Errors
    /// There is no such context, or the caller may not work in it.
    pub async fn context(&self, id: Option<u32>) -> Result<(ContextHandle, Caller), OpError> {
        let (node, caller) = (self.node(), self.caller()?);
        let id = id.map(number).transpose()?;
        if let Some(id) = id.or(self.only) {
            self.check_context(id)?;
            return Ok((node.context(id).await?, caller));
        }
        let mut contexts = node.contexts().await?;
        match contexts.len() {
            1 => Ok((contexts.remove(0), caller)),
            0 => Err(OpError::NotFound {
                message: "there is no context".to_owned(),
                hint: "`meshwork context create` makes one",
            }),
            _ => Err(OpError::invalid(
                "context: give its number, since there are several",
            )),
        }
    }

    /// Enters a context if one is given, after a check of the permission.
    ///
    /// # Errors
    /// There is no such context, or the caller may not do this there.
    pub async fn enter(mut self, context: Option<u32>, needs: Needs) -> Result<Self, OpError> {
        if let Some(id) = context {
            let (context, caller) = self.context(Some(id)).await?;
            self.enter_as(context, caller, needs).await?;
        }
        Ok(self)
    }

    /// Enters the place of an operation, after a check of the permission there. `queue` names the spread queue; none: all.
    ///
    /// # Errors
    /// The caller has not the permission in all parts of a spread queue. Nothing was changed in any of them.
    pub async fn enter_all(
        self,
        place: Place,
        queue: Option<&str>,
        needs: Needs,
    ) -> Result<Placed, OpError> {
        let Place { context, spread } = place;
        match (context, spread) {
            (Some(_), true) => Err(OpError::invalid("context and spread: give one of them")),
            (_, true) => {
                let name = parse_some("queue", queue)?;
                let parts = self.enter_parts(name.as_ref(), needs).await?;
                Ok(Placed::Parts(parts))
            }
            (_, false) => Ok(Placed::One(Box::new(self.enter(context, needs).await?))),
        }
    }

    /// Enters each part of a spread queue, or of all spread queues, after a check of the permission in all of them.
    ///
    /// # Errors
    /// As for [`Self::enter_all`].
    pub async fn enter_parts(
        self,
        name: Option<&SpreadName>,
        needs: Needs,
    ) -> Result<Vec<(ContextId, Self)>, OpError> {
        let (node, caller) = (self.node(), self.caller()?);
        let parts = node.spread_contexts(name).await?;
        if parts.len() > self.most_parts {
            let (all, most) = (parts.len(), self.most_parts);
            return Err(OpError::invalid(format!(
                "queue: give one, since the spread queues have {all} parts, and a call uses {most} at most"
            )));
        }
        let stores = parts.into_iter().map(|id| {
            let (node, mut store, caller) = (&node, self.clone(), caller.clone());
            async move {
                let context = node.context(id).await?;
                let entered = store.enter_as(context, caller, needs).await;
                entered
                    .map_err(|error| error.in_part(id))
                    .map(|()| (id, store))
            }
        });
        let stores = futures_util::stream::iter(stores).buffered(AT_ONCE);
        stores.try_collect().await
    }

    /// Enters a context that was found, after a check of the permission.
    ///
    /// # Errors
    /// The caller may not do this there.
    pub async fn enter_as(
        &mut self,
        context: ContextHandle,
        caller: Caller,
        needs: Needs,
    ) -> Result<(), OpError> {
        self.check_context(context.id())?;
        context.allow_caller(&caller, needs.0, needs.1).await?;
        self.use_role((context.id(), caller.id(), needs));
        let session = self.sessions.open(&self.client, &context, caller.id());
        self.client = session.await?.acting_as(&caller.to_string());
        self.entered = Some(Arc::new(Entered { context, caller }));
        Ok(())
    }

    fn use_role(&self, role: UsedRole) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if !used.contains(&role) {
            used.push(role);
        }
    }

    /// Returns the permissions that this store and its clones have used.
    #[must_use]
    pub fn used_roles(&self) -> Vec<UsedRole> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.clone()
    }

    /// Number of the context that was entered, if any.
    #[must_use]
    pub fn context_number(&self) -> Option<u32> {
        let entered = self.entered.as_ref()?;
        Some(entered.context.id().get())
    }

    /// Adds an entry to the audit trail of the context that was entered, if any. A change writes it first, so that an
    /// interrupted one has an entry.
    ///
    /// # Errors
    /// The trail cannot be written.
    pub async fn noted(&self, what: &str, object: &str) -> Result<(), OpError> {
        let Some(entered) = &self.entered else {
            return Ok(());
        };
        let object = &object[..object.floor_char_boundary(MAX_AUDIT_OBJECT)];
        let Entered { context, caller } = &**entered;
        Ok(context.noted(caller, what, object).await?)
    }

    /// Enters the context of a job, and reads the job's id.
    ///
    /// # Errors
    /// As for [`Self::enter`], or the text names no job of the context.
    pub async fn enter_job(
        self,
        context: Option<u32>,
        id: &str,
        needs: Needs,
    ) -> Result<(Self, JobId), OpError> {
        let store = self.enter(context, needs).await?;
        let id = store.job_id(id)?;
        Ok((store, id))
    }

    /// Reads the id of a job: any text, since foreign clients choose theirs; in a context `2001`, `12:2001` or a key.
    ///
    /// # Errors
    /// The text names no job of the context.
    pub fn job_id(&self, text: &str) -> Result<JobId, OpError> {
        match &self.entered {
            Some(entered) => Ok(entered.context.job_id(entered.caller.id(), text)?),
            None => Ok(JobId::foreign(text.to_owned())),
        }
    }

    /// Reads the name of a queue.
    ///
    /// # Errors
    /// It is no queue of jobs.
    pub fn queue(&self, name: &str) -> Result<String, OpError> {
        let list = self.client.broker().keys().parse_work_queue(name);
        list.map_err(|error| OpError::invalid(format!("queue: {error}")))
    }
}
