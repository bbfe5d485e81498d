//! Who may do what in a context: one table, one function over it, and the table as docs/permissions.md shows it.
//!
//! The check stops mistakes of those who use the library. It stops nobody who writes to the store past it: that is for
//! the server's ACL.

mod table;

use std::fmt;

use crate::context::Context;
use crate::keys::context::{ActorId, ContextId};

pub use table::markdown;

/// What somebody is to a context or to the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Owns the node's store: whoever may write in database 0.
    Owner,
    /// Stands in the context's `admins`.
    Admin,
    /// Stands in the context's `readers`.
    Reader,
    /// Stands in the context's `executors`.
    Executor,
    /// Is an actor of this node whose key counts.
    Actor,
}

impl Role {
    /// All of them, as the table has them.
    pub const ALL: [Self; 5] = [
        Self::Owner,
        Self::Admin,
        Self::Reader,
        Self::Executor,
        Self::Actor,
    ];

    /// What people call those who have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner of the store",
            Self::Admin => "admin",
            Self::Reader => "reader",
            Self::Executor => "executor",
            Self::Actor => "any actor",
        }
    }
}

/// What something is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Object {
    /// An actor of the node.
    Actor,
    /// A context: its permissions and settings.
    Context,
    /// A flow, and its gates.
    Flow,
    /// A job.
    Job,
    /// A runner.
    Runner,
    /// A work queue.
    Queue,
    /// A message that asks the context for jobs.
    JobMessage,
    /// Chat or mail.
    Chat,
    /// The message with the result of a job that the actor has run himself.
    OwnResult,
    /// The message with the result of a job that another has run.
    OtherResult,
    /// The list of messages that have come for the context's actors.
    Inbox,
    /// The audit trail.
    Audit,
}

impl Object {
    /// All of them, as the table has them.
    pub const ALL: [Self; 12] = [
        Self::Actor,
        Self::Context,
        Self::Flow,
        Self::Job,
        Self::Runner,
        Self::Queue,
        Self::JobMessage,
        Self::Chat,
        Self::OwnResult,
        Self::OtherResult,
        Self::Inbox,
        Self::Audit,
    ];

    /// What people call it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Actor => "actor",
            Self::Context => "context",
            Self::Flow => "flow",
            Self::Job => "job",
            Self::Runner => "runner",
            Self::Queue => "queue",
            Self::JobMessage => "job message",
            Self::Chat => "chat or mail message",
            Self::OwnResult => "result message of an own job",
            Self::OtherResult => "result message of another's job",
            Self::Inbox => "inbox",
            Self::Audit => "audit trail",
        }
    }
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Makes a new one; of a message: sends it.
    Create,
    /// Looks at it.
    Read,
    /// Changes what its creator has said, grants and revokes, opens a gate, pauses or limits a queue.
    Update,
    /// Takes it away.
    Delete,
    /// Ends it before its time, or has it run again.
    Cancel,
    /// Takes the next element off it.
    Pop,
    /// Writes a job's status and result.
    Report,
}

impl Operation {
    /// All of them, as the table has them.
    pub const ALL: [Self; 7] = [
        Self::Create,
        Self::Read,
        Self::Update,
        Self::Delete,
        Self::Cancel,
        Self::Pop,
        Self::Report,
    ];

    /// What people call it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Read => "read",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Cancel => "cancel or retry",
            Self::Pop => "pop",
            Self::Report => "report",
        }
    }
}

/// The roles that somebody has. A stranger, whose signature is bad or whose key is unknown or revoked, has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    /// No role: a stranger.
    pub const NONE: Self = Self(0);

    const fn bit(role: Role) -> u8 {
        1 << role as u8
    }

    /// These roles and one more.
    #[must_use]
    pub const fn and(self, role: Role) -> Self {
        Self(self.0 | Self::bit(role))
    }

    /// Whether the role is among them.
    #[must_use]
    pub const fn has(self, role: Role) -> bool {
        self.0 & Self::bit(role) != 0
    }

    /// The roles of a known actor in a context.
    #[must_use]
    pub fn of(actor: ActorId, context: &Context) -> Self {
        let lists = [
            (Role::Admin, &context.admins),
            (Role::Reader, &context.readers),
            (Role::Executor, &context.executors),
        ];
        let held = lists.iter().filter(|(_, list)| list.contains(&actor));
        let known = Self::NONE.and(Role::Actor);
        held.fold(known, |roles, (role, _)| roles.and(*role))
    }
}

/// Returns whether somebody with these roles may do this. Total: what the table does not have is not permitted.
#[must_use]
pub fn permits(roles: Roles, object: Object, operation: Operation) -> bool {
    let mut permitted = table::roles_for(object, operation).iter();
    permitted.any(|role| roles.has(*role))
}

/// Who is refused something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// An actor of this node.
    Actor(ActorId),
    /// Somebody without a key that counts here.
    Stranger,
}

/// Where it was to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// On the node.
    Node,
    /// In a context.
    Context(ContextId),
}

/// A refusal, for people and for the audit trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denied {
    /// Who wanted to do it.
    pub who: Who,
    /// What was to be done.
    pub operation: Operation,
    /// To what.
    pub object: Object,
    /// Where.
    pub place: Place,
}

impl std::error::Error for Denied {}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.who {
            Who::Actor(id) => write!(f, "actor {id}")?,
            Who::Stranger => f.write_str("somebody without a trusted key")?,
        }
        let (operation, object) = (self.operation.as_str(), self.object.as_str());
        write!(f, " may not {operation} the {object} ")?;
        match self.place {
            Place::Node => f.write_str("on this node")?,
            Place::Context(id) => write!(f, "in context {id}")?,
        }
        let roles = table::roles_for(self.object, self.operation);
        if roles.is_empty() {
            return f.write_str(": nobody may");
        }
        let roles: Vec<_> = roles.iter().map(|role| role.as_str()).collect();
        write!(f, ": it takes the role {}", roles.join(" or "))
    }
}

/// Checks that somebody with these roles may do this.
///
/// # Errors
/// Who, what and where, if not.
pub fn check(
    who: Who,
    roles: Roles,
    object: Object,
    operation: Operation,
    place: Place,
) -> Result<(), Denied> {
    if permits(roles, object, operation) {
        return Ok(());
    }
    Err(Denied {
        who,
        operation,
        object,
        place,
    })
}

#[cfg(test)]
mod tests;
