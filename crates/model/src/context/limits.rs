//! The bounds of contexts' records, each with its reason. Those of a job that Hero has too are in
//! [`crate::job::limits`].

/// The most bytes of any field: that of the largest result that a job may have.
pub const MAX_FIELD: usize = crate::job::limits::MAX_OUTPUT;
/// The most actors in one list of permissions: each change writes the whole list anew.
pub const MAX_MEMBERS: usize = 10_000;
/// The most addresses of an actor: each may be tried in turn.
pub const MAX_ADDRESSES: usize = 16;
/// The most jobs of a flow: one script looks at all of them in a call.
pub const MAX_FLOW_JOBS: usize = 1000;
/// The most jobs in a message: one script stores all of them in a call.
pub const MAX_MESSAGE_JOBS: usize = 1000;
/// The most bytes of a message's text: escaped as JSON, with its jobs, it has to fit into an envelope of 1 MiB.
pub const MAX_MESSAGE: usize = 512 * 1024;
/// The most entries in the log of a message; what is older is dropped.
pub const MAX_LOGS: usize = 100;
/// The most bytes of one entry's text.
pub const MAX_LOG_TEXT: usize = 4096;
/// The longest of a message's timeouts, in seconds (7 days): envelopes expire then too.
pub const MAX_MESSAGE_TIMEOUT: u32 = 7 * 24 * 3600;
/// Seconds until a message is stored at its target, unless it says otherwise: an hour, for a node that restarts.
pub const DEFAULT_TIMEOUT: u32 = 3600;
/// Seconds until a message is taken up, unless it says otherwise (2 hours).
pub const DEFAULT_TIMEOUT_ACK: u32 = 2 * 3600;
/// Seconds until a message is processed, unless it says otherwise (a day).
pub const DEFAULT_TIMEOUT_RESULT: u32 = 24 * 3600;
/// The most bytes of a topic, as on the overlay network.
pub const MAX_TOPIC: usize = 255;
/// The most types of one runner: its queues are this times all groups and priorities.
pub const MAX_RUNNER_TYPES: usize = 16;
/// How long the key counts that an actor had before, in seconds (7 days): what was signed with it has expired then.
pub const OLD_KEY_FOR: u32 = 7 * 24 * 3600;
/// Entries kept in the audit trail of a context, more or less: 1 to 5 MB.
pub const MAX_AUDIT: u32 = 10_000;
/// The most bytes of a value in the audit trail; a longer one is shown as its length and digest.
pub const MAX_AUDIT_VALUE: usize = 200;
