//! Permissions of a context: the table of roles, the check against the table, and its form for docs/permissions.md.
//!
//! The check stops mistakes of callers of the library. A program that writes to the store directly is stopped only by
//! the server's ACL.

mod table;

use std::fmt;

use crate::context::Context;
use crate::keys::context::{ActorId, ContextId};

pub use table::markdown;

/// A relation of a caller to a context or to the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Owns the node's store: may write in database 0.
    Owner,
    /// Is listed in the context's `admins`.
    Admin,
    /// Is listed in the context's `readers`.
    Reader,
    /// Is listed in the context's `executors`.
    Executor,
    /// Is an actor of this node whose key is valid.
    Actor,
}

impl Role {
    /// All roles, in the order of the table.
    pub const ALL: [Self; 5] = [
        Self::Owner,
        Self::Admin,
        Self::Reader,
        Self::Executor,
        Self::Actor,
    ];

    /// Name of the role in messages and docs.
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

/// A kind of object that operations apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Object {
    /// An actor of the node.
    Actor,
    /// A context: its permissions and settings.
    Context,
    /// A flow, and its gates.
    Flow,
    /// An approval of a flow that names no approvers.
    Approval,
    /// An approval of a flow that names the actor as approver.
    OwnApproval,
    /// A job.
    Job,
    /// An object that a script stores.
    Stored,
    /// A runner.
    Runner,
    /// A work queue.
    Queue,
    /// A message that requests jobs from the context.
    JobMessage,
    /// Chat or mail.
    Chat,
    /// The message with the result of a job that the actor ran.
    OwnResult,
    /// The message with the result of a job that another actor ran.
    OtherResult,
    /// The list of messages that arrived for the context's actors.
    Inbox,
    /// The audit trail.
    Audit,
}

impl Object {
    /// All kinds of objects, in the order of the table.
    pub const ALL: [Self; 15] = [
        Self::Actor,
        Self::Context,
        Self::Flow,
        Self::Approval,
        Self::OwnApproval,
        Self::Job,
        Self::Stored,
        Self::Runner,
        Self::Queue,
        Self::JobMessage,
        Self::Chat,
        Self::OwnResult,
        Self::OtherResult,
        Self::Inbox,
        Self::Audit,
    ];

    /// Name of the object in messages and docs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Actor => "actor",
            Self::Context => "context",
            Self::Flow => "flow",
            Self::Approval => "approval without approvers",
            Self::OwnApproval => "approval that names the actor",
            Self::Job => "job",
            Self::Stored => "object of scripts",
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

/// An operation on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Creates the object. Of a message: sends it.
    Create,
    /// Reads the object.
    Read,
    /// Changes settings of the object, grants or revokes rights, opens a gate, pauses or limits a queue.
    Update,
    /// Deletes the object.
    Delete,
    /// Ends a job, flow or message early, or retries a job or flow.
    Cancel,
    /// Approves or rejects.
    Answer,
    /// Removes the next element of a list.
    Pop,
    /// Writes the status and result of a job.
    Report,
}

impl Operation {
    /// All operations, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::Create,
        Self::Read,
        Self::Update,
        Self::Delete,
        Self::Cancel,
        Self::Answer,
        Self::Pop,
        Self::Report,
    ];

    /// Name of the operation in messages and docs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Read => "read",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Cancel => "cancel or retry",
            Self::Answer => "answer",
            Self::Pop => "pop",
            Self::Report => "report",
        }
    }
}

/// The set of roles of a caller. A stranger, whose signature is bad or whose key is unknown or revoked, has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    /// No role: a stranger.
    pub const NONE: Self = Self(0);

    const fn bit(role: Role) -> u8 {
        1 << role as u8
    }

    /// Returns these roles and `role`.
    #[must_use]
    pub const fn and(self, role: Role) -> Self {
        Self(self.0 | Self::bit(role))
    }

    /// Returns whether the set contains `role`.
    #[must_use]
    pub const fn has(self, role: Role) -> bool {
        self.0 & Self::bit(role) != 0
    }

    /// Returns the roles of a known actor in a context.
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

/// Returns whether a caller with these roles may do the operation. Combinations that the table does not list are
/// refused.
#[must_use]
pub fn permits(roles: Roles, object: Object, operation: Operation) -> bool {
    let mut permitted = table::roles_for(object, operation).iter();
    permitted.any(|role| roles.has(*role))
}

/// The caller of a refused operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// An actor of this node.
    Actor(ActorId),
    /// A caller without a valid key on this node.
    Stranger,
}

/// The scope of a refused operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The node.
    Node,
    /// A context.
    Context(ContextId),
}

/// A refused operation, for error messages and the audit trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denied {
    /// The refused caller.
    pub who: Who,
    /// The refused operation.
    pub operation: Operation,
    /// The kind of its object.
    pub object: Object,
    /// Its scope.
    pub place: Scope,
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
            Scope::Node => f.write_str("on this node")?,
            Scope::Context(id) => write!(f, "in context {id}")?,
        }
        let roles = table::roles_for(self.object, self.operation);
        if roles.is_empty() {
            return f.write_str(": nobody may");
        }
        let roles: Vec<_> = roles.iter().map(|role| role.as_str()).collect();
        write!(f, ": it takes the role {}", roles.join(" or "))
    }
}

/// Checks that a caller with these roles may do the operation.
///
/// # Errors
/// [`Denied`] with the caller, the operation and the scope.
pub fn check(
    who: Who,
    roles: Roles,
    object: Object,
    operation: Operation,
    place: Scope,
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
