//! Rights of callers, as the store has them now: an actor's rights outside of contexts, its roles in them, and what a long
//! call, a connection or a session of pages rests on. They end with it.

use std::time::{Duration, Instant};

use meshwork::context::{ContextError, Node};
use meshwork_model::access::{Object, Operation, Roles, permits};
use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::{ActorId, ContextId};

use super::access::{Access, KeyRing};
use super::error::ApiError;
use super::recent::CACHED_FOR;

/// Pause between two looks at what something rests on. With the time for which reads are kept, a revocation holds within a
/// second.
pub(crate) const CHECK_EVERY: Duration = Duration::from_millis(400);
/// Time that the store has for the rights of a caller who comes: a page has three seconds in all.
pub(crate) const READ_WITHIN: Duration = Duration::from_millis(400);

const _: () = assert!(CHECK_EVERY.as_millis() + CACHED_FOR.as_millis() < 1000);

/// A right that a call has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// This scope outside of contexts.
    Outside(Scope),
    /// This permission of the actor in a context.
    Role(ContextId, ActorId, (Object, Operation)),
}

/// Rights of a caller who stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Standing {
    outside: Option<Scope>,
    /// True for the key of a context that its actor may read.
    is_member: bool,
}

/// A caller who stays, with the rights that it had when it came.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) access: Access,
    /// `None` if the store was away.
    before: Option<Standing>,
}

impl Held {
    /// Returns a caller whose rights nobody revokes.
    pub(crate) fn unchecked(access: Access) -> Self {
        let before = None;
        Self { access, before }
    }
}

impl KeyRing {
    fn node(&self) -> Node {
        Node::of(self.broker())
    }

    /// Returns the scope that an actor has outside of contexts; `None` if it is unknown or revoked.
    async fn actor(&self, id: ActorId) -> Result<Option<Option<Scope>>, ApiError> {
        let now = Instant::now();
        if let Some(known) = self.known().actors.get(&id, now) {
            return Ok(known);
        }
        let found = match self.node().actor(id).await {
            Ok(actor) if actor.revoked_at.is_none() => Some(actor.node_scope),
            Ok(_) | Err(ContextError::NoActor(_) | ContextError::Record(_)) => None,
            Err(error) => return Err(error.into()),
        };
        self.known().actors.keep(id, now, found);
        Ok(found)
    }

    /// Returns the roles of an actor in a context; none if it is unknown or revoked, or there is no such context.
    async fn roles(&self, context: ContextId, actor: ActorId) -> Result<Roles, ApiError> {
        if self.actor(actor).await?.is_none() {
            return Ok(Roles::NONE);
        }
        let now = Instant::now();
        if let Some(known) = self.known().roles.get(&(context, actor), now) {
            return Ok(known);
        }
        let roles = match self.node().context(context).await {
            Ok(handle) => handle.roles(actor).await,
            Err(error) => Err(error),
        };
        let roles = match roles {
            Err(ContextError::NoContext(_) | ContextError::NoRecord { .. }) => Roles::NONE,
            roles => roles?,
        };
        self.known().roles.keep((context, actor), now, roles);
        Ok(roles)
    }

    /// Returns the scope that a caller has outside of contexts: that of its key, narrowed by that of its actor.
    pub(crate) async fn outside(&self, access: &Access) -> Result<Option<Scope>, ApiError> {
        let (scope, actor) = match access {
            Access::Nobody => return Ok(None),
            Access::All | Access::Local(_) => return Ok(access.scope()),
            Access::Key(key) if key.context.is_some() => return Ok(None),
            Access::Key(key) => (key.scope, key.actor),
            Access::Actor(actor) => (Scope::User, Some(*actor)),
        };
        let Some(actor) = actor else {
            return Ok(Some(scope));
        };
        let granted = self.actor(actor).await?.flatten();
        Ok(granted.map(|granted| granted.and(scope)))
    }

    /// Returns true while a caller has a right.
    pub(crate) async fn has(&self, access: &Access, ground: Ground) -> Result<bool, ApiError> {
        match ground {
            Ground::Outside(needed) => {
                let scope = self.outside(access).await?;
                Ok(scope.is_some_and(|scope| scope.allows(needed)))
            }
            Ground::Role(context, actor, (object, operation)) => {
                let roles = self.roles(context, actor).await?;
                Ok(permits(roles, object, operation))
            }
        }
    }

    /// Returns the rights of a caller; `None` if its key is revoked, or its actor.
    async fn standing(&self, access: &Access) -> Result<Option<Standing>, ApiError> {
        let mut standing = Standing {
            outside: self.outside(access).await?,
            is_member: false,
        };
        let is_valid = match access {
            Access::Key(key) => {
                if let (Some(context), Some(actor)) = (key.context, key.actor) {
                    let read = (Object::Context, Operation::Read);
                    let ground = Ground::Role(context, actor, read);
                    standing.is_member = self.has(access, ground).await?;
                }
                self.is_valid(key).await
            }
            Access::Actor(actor) => self.actor(*actor).await?.is_some(),
            Access::All | Access::Local(_) | Access::Nobody => true,
        };
        Ok(is_valid.then_some(standing))
    }

    /// Returns false if the key of a caller is revoked, or its actor.
    pub(crate) async fn is_caller(&self, access: &Access) -> bool {
        !matches!(self.standing(access).await, Ok(None))
    }

    /// Returns a caller with its rights.
    pub(crate) async fn hold(&self, access: Access) -> Held {
        let read = tokio::time::timeout(READ_WITHIN, self.standing(&access));
        let before = read.await.ok().and_then(Result::ok).flatten();
        Held { access, before }
    }

    /// Returns false if a caller has lost rights since it came: its key, its actor, those outside of contexts, or the last
    /// role in the context of its key. While the store is away it keeps them.
    pub(crate) async fn still_holds(&self, held: &Held) -> bool {
        let now = match self.standing(&held.access).await {
            Ok(None) => return false,
            Ok(Some(now)) => now,
            Err(_) => return true,
        };
        held.before.is_none_or(|before| {
            let outside = before.outside.is_none_or(|before| {
                let now = now.outside;
                now.is_some_and(|now| now.allows(before))
            });
            outside && now.is_member >= before.is_member
        })
    }
}
