//! Limits of contexts' records, each with its reason. [`crate::job::limits`] has those of fields that Hero's jobs
//! have too.

/// Greatest length of any field, in bytes: that of the largest result of a job.
pub const MAX_FIELD: usize = crate::job::limits::MAX_OUTPUT;
/// Greatest number of actors in a list of permissions. Each change writes the whole list.
pub const MAX_MEMBERS: usize = 10_000;
/// Greatest number of addresses of an actor. Each may be tried one after the other.
pub const MAX_ADDRESSES: usize = 16;
/// Most jobs of a flow: those of its plan, and as many items of its `foreach` jobs.
pub const MAX_FLOW_JOBS: usize = crate::flow::limits::MAX_JOBS + crate::flow::limits::MAX_ITEMS;
/// Greatest number of jobs in a message. One call of a script stores all of them.
pub const MAX_MESSAGE_JOBS: usize = 1000;
/// Greatest length of a message's text, in bytes. Escaped as JSON, with its jobs, it must fit into an envelope of 1
/// MiB.
pub const MAX_MESSAGE: usize = 512 * 1024;
/// Greatest number of entries in a message's log. The oldest ones are dropped.
pub const MAX_LOGS: usize = 100;
/// Greatest length of an entry's text, in bytes.
pub const MAX_LOG_TEXT: usize = 4096;
/// Greatest timeout of a message, in seconds (7 days): the greatest life of an envelope.
pub const MAX_MESSAGE_TIMEOUT: u32 = 7 * 24 * 3600;
/// Default time until a message must be stored at its target, in seconds: 1 hour, enough for a node to restart.
pub const DEFAULT_TIMEOUT: u32 = 3600;
/// Default time until a message must be acknowledged, in seconds (2 hours).
pub const DEFAULT_TIMEOUT_ACK: u32 = 2 * 3600;
/// Default time until a message must be processed, in seconds (1 day).
pub const DEFAULT_TIMEOUT_RESULT: u32 = 24 * 3600;
/// Retention of a message, in seconds (7 days): that of a job. It begins with each change of the message's status.
pub const KEEP_MESSAGE_FOR: u32 = 7 * 24 * 3600;
/// Greatest length of a topic, in bytes, as on the overlay network.
pub const MAX_TOPIC: usize = 255;
/// Greatest number of types of a runner. Its queues are all combinations of types, groups and priorities.
pub const MAX_RUNNER_TYPES: usize = 16;
/// Time for which the previous key of an actor stays valid, in seconds (7 days): the greatest life of an envelope.
pub const OLD_KEY_FOR: u32 = 7 * 24 * 3600;
/// Approximate number of entries in the audit trail of a context: 1 to 5 MB.
pub const MAX_AUDIT: u32 = 10_000;
/// Greatest number of rows of counted refusals, one for each author and minute: 0.3 MB.
pub const MAX_REFUSED: u32 = 1_000;
/// Greatest length of a value in the audit trail, in bytes. A longer one is shown as its length and digest.
pub const MAX_AUDIT_VALUE: usize = 200;
