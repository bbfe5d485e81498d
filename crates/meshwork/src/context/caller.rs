//! Actors as permission checks and audit trails see them: without a secret key.

use std::fmt;

use meshwork_model::keys::context::ActorId;

use super::Identity;

/// An actor that calls. Its text is its name in audit trails and events.
pub trait Acting: fmt::Display + Send + Sync {
    /// Number on this node.
    fn id(&self) -> ActorId;
}

impl Acting for Identity {
    fn id(&self) -> ActorId {
        self.id()
    }
}

/// An actor by its number, for callers whose credentials somebody else has checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    id: ActorId,
    name: String,
}

impl Caller {
    /// Returns the caller with this number. `through` is the credential that it gave, such as a key of the API.
    #[must_use]
    pub fn new(id: ActorId, through: Option<&str>) -> Self {
        let name = match through {
            Some(through) => format!("actor {id} {through}"),
            None => format!("actor {id}"),
        };
        Self { id, name }
    }

    /// Number on this node.
    #[must_use]
    pub const fn id(&self) -> ActorId {
        self.id
    }

    /// Returns the same caller, without its secret key.
    pub(crate) fn of(me: &impl Acting) -> Self {
        let (id, name) = (me.id(), me.to_string());
        Self { id, name }
    }
}

impl Acting for Caller {
    fn id(&self) -> ActorId {
        self.id
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
