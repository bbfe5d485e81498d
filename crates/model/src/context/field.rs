//! Names of the fields of contexts' records. Those of ours that no other program writes begin with `mw_`.

/// Its number.
pub const ID: &str = "id";
/// Who created it: the number of an actor.
pub const CALLER_ID: &str = "caller_id";
/// The context that it belongs to.
pub const CONTEXT_ID: &str = "context_id";
/// When it was created, in seconds since 1970.
pub const CREATED_AT: &str = "created_at";
/// When it was changed last, in seconds since 1970.
pub const UPDATED_AT: &str = "updated_at";
/// A word; each kind of object has its own.
pub const STATUS: &str = "status";
/// A public key of Ed25519, 64 hexadecimal digits.
pub const PUBKEY: &str = "pubkey";
/// An actor's addresses (JSON array), or the one of a runner.
pub const ADDRESS: &str = "address";
/// Actors who create and delete in the context (JSON array of numbers).
pub const ADMINS: &str = "admins";
/// Actors who read in the context (JSON array of numbers).
pub const READERS: &str = "readers";
/// Actors who run jobs in the context (JSON array of numbers).
pub const EXECUTORS: &str = "executors";
/// What becomes of messages without an envelope: `accept` or `refuse`. Ours.
pub const UNSIGNED: &str = "unsigned";
/// Jobs of a flow (JSON array of numbers of the same caller).
pub const JOBS: &str = "jobs";
/// Environment of scripts (JSON object of text).
pub const ENV_VARS: &str = "env_vars";
/// The result (JSON object of text).
pub const RESULT: &str = "result";
/// What to execute.
pub const SCRIPT: &str = "script";
/// What executes it.
pub const SCRIPT_TYPE: &str = "script_type";
/// Seconds.
pub const TIMEOUT: &str = "timeout";
/// Seconds from its creation until a message is to be taken up.
pub const TIMEOUT_ACK: &str = "timeout_ack";
/// Seconds from its creation until a message is to be processed.
pub const TIMEOUT_RESULT: &str = "timeout_result";
/// Runs after the first, at most 255.
pub const RETRIES: &str = "retries";
/// Keys of what must end before a job, and names of gates (JSON array of text).
pub const PREREQUISITES: &str = "prerequisites";
/// Jobs of the same caller that must finish first (JSON array of numbers).
pub const DEPENDENDS: &str = "dependends";
/// Why there is no result. Ours.
pub const ERROR: &str = "error";
/// The text of a message.
pub const MESSAGE: &str = "message";
/// `job`, `chat` or `mail`.
pub const MESSAGE_TYPE: &str = "message_type";
/// `html`, `text` or `md`.
pub const MESSAGE_FORMAT_TYPE: &str = "message_format_type";
/// The jobs of a message (JSON array of records).
pub const JOB: &str = "job";
/// What happened to a message (JSON array of `{at, level, text}`).
pub const LOGS: &str = "logs";
/// Where a message goes: the context. Ours.
pub const TARGET_CONTEXT: &str = "target_context";
/// Where a message goes: the key of the node. Ours.
pub const TARGET_NODE: &str = "target_node";
/// Where a message goes, or what a runner listens to: the topic.
pub const TOPIC: &str = "topic";
/// The signed envelope of a message, as JSON. Ours.
pub const ENVELOPE: &str = "envelope";
/// Types of script that a runner runs, with commas between them. Ours.
pub const TYPE: &str = "type";
/// Whether a runner takes jobs off the queues of its context: `true` or `false`.
pub const LOCAL: &str = "local";
/// When the key of an actor was revoked, in seconds since 1970. Ours.
pub const REVOKED_AT: &str = "mw_revoked_at";
/// The key that an actor had before. Ours.
pub const OLD_PUBKEY: &str = "mw_old_pubkey";
/// Until when the old key counts, in seconds since 1970. Ours.
pub const OLD_UNTIL: &str = "mw_old_until";
/// 32 hexadecimal digits that tell a message from all others of its key. Ours.
pub const NONCE: &str = "mw_nonce";
/// Where a message came from: node, context, message and nonce. Ours.
pub const ORIGIN: &str = "mw_origin";
/// When the target had stored a message, in seconds since 1970. Ours.
pub const STORED_AT: &str = "mw_stored_at";
/// The message that a result answers, at its sender, as `12:101`. Ours.
pub const RE: &str = "mw_re";
/// Keys of the jobs that a message became (JSON array of text), in the order of its own. Ours.
pub const MATERIALISED: &str = "mw_jobs";
/// The message that a job belongs to: its key. Ours.
pub const OF_MESSAGE: &str = "mw_message";
/// The message that brought the result of a message: its key. Ours.
pub const RESULT_MESSAGE: &str = "mw_result";
/// When the sender was told that a message was taken up, in seconds since 1970. Ours.
pub const ACKED_AT: &str = "mw_acked_at";
