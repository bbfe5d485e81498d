//! Names of the fields of contexts' records. Meshwork's own fields that no other program writes begin with `mw_`.

/// Number of the object.
pub const ID: &str = "id";
/// Creator: the number of an actor.
pub const CALLER_ID: &str = "caller_id";
/// Context of the object.
pub const CONTEXT_ID: &str = "context_id";
/// Time of creation, in seconds since 1970.
pub const CREATED_AT: &str = "created_at";
/// Time of the last change, in seconds since 1970.
pub const UPDATED_AT: &str = "updated_at";
/// Status; each kind of object has its own words.
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
/// Rule for messages without an envelope: `own`, `accept` or `refuse`. Meshwork's own.
pub const UNSIGNED: &str = "unsigned";
/// Sandbox of jobs that messages of other nodes bring: `open`, `standard` or `strict`. Meshwork's own.
pub const SANDBOX: &str = "sandbox";
/// Jobs of a flow (JSON array of numbers of the same caller).
pub const JOBS: &str = "jobs";
/// Environment of scripts (JSON object of text).
pub const ENV_VARS: &str = "env_vars";
/// The result (JSON object of text).
pub const RESULT: &str = "result";
/// Text of the script.
pub const SCRIPT: &str = "script";
/// Type of the script.
pub const SCRIPT_TYPE: &str = "script_type";
/// Seconds.
pub const TIMEOUT: &str = "timeout";
/// Seconds from its creation until a message is to be acknowledged.
pub const TIMEOUT_ACK: &str = "timeout_ack";
/// Seconds from its creation until a message is to be processed.
pub const TIMEOUT_RESULT: &str = "timeout_result";
/// Runs after the first, at most 255.
pub const RETRIES: &str = "retries";
/// Keys of jobs that must end first, and names of gates (JSON array of text).
pub const PREREQUISITES: &str = "prerequisites";
/// Jobs of the same caller that must finish first (JSON array of numbers).
pub const DEPENDENDS: &str = "dependends";
/// Reason of a failure. Meshwork's own.
pub const ERROR: &str = "error";
/// The text of a message.
pub const MESSAGE: &str = "message";
/// `job`, `chat` or `mail`.
pub const MESSAGE_TYPE: &str = "message_type";
/// `html`, `text` or `md`.
pub const MESSAGE_FORMAT_TYPE: &str = "message_format_type";
/// The jobs of a message (JSON array of records).
pub const JOB: &str = "job";
/// Log of a message (JSON array of `{at, level, text}`).
pub const LOGS: &str = "logs";
/// Context to which a message goes. Meshwork's own.
pub const TARGET_CONTEXT: &str = "target_context";
/// Node to which a message goes: its key. Meshwork's own.
pub const TARGET_NODE: &str = "target_node";
/// Topic to which a message goes, or to which a runner listens.
pub const TOPIC: &str = "topic";
/// The signed envelope of a message, as JSON. Meshwork's own.
pub const ENVELOPE: &str = "envelope";
/// Types of script that a runner runs, with commas between them. Meshwork's own.
pub const TYPE: &str = "type";
/// True if a runner claims jobs from the queues of its context: `true` or `false`.
pub const LOCAL: &str = "local";
/// Time of the revocation of an actor's keys, in seconds since 1970. Meshwork's own.
pub const REVOKED_AT: &str = "mw_revoked_at";
/// Previous key of an actor. Meshwork's own.
pub const OLD_PUBKEY: &str = "mw_old_pubkey";
/// Time until which the previous key is valid, in seconds since 1970. Meshwork's own.
pub const OLD_UNTIL: &str = "mw_old_until";
/// Scope of an actor outside of contexts; missing or empty for none. Meshwork's own.
pub const NODE_SCOPE: &str = "mw_node_scope";
/// Nonce: 32 hexadecimal digits, unique among the messages of one key. Meshwork's own.
pub const NONCE: &str = "mw_nonce";
/// Origin of a message: node, context, message and nonce. Meshwork's own.
pub const ORIGIN: &str = "mw_origin";
/// Time at which a message was received, in milliseconds since 1970. Meshwork's own.
pub const RECEIVED_MS: &str = "mw_received_ms";
/// Time at which the target stored a message, in seconds since 1970. Meshwork's own.
pub const STORED_AT: &str = "mw_stored_at";
/// The message that a result answers, as its sender numbers it: `12:101`. Meshwork's own.
pub const RE: &str = "mw_re";
/// Keys of the jobs that were created from a message (JSON array of text), in the message's order. Meshwork's own.
pub const MATERIALISED: &str = "mw_jobs";
/// Key of the message that created a job. Meshwork's own.
pub const OF_MESSAGE: &str = "mw_message";
/// Key of the message that brought the result of a message. Meshwork's own.
pub const RESULT_MESSAGE: &str = "mw_result";
/// Time at which the acknowledgement of a message was sent, in seconds since 1970. Meshwork's own.
pub const ACKED_AT: &str = "mw_acked_at";
/// Name of another node on this node. Meshwork's own.
pub const NAME: &str = "name";
/// Card of another node, as JSON. Meshwork's own.
pub const CARD: &str = "card";
/// Time of the last frame of another node, in milliseconds since 1970. Meshwork's own.
pub const SEEN_MS: &str = "seen_ms";
/// Clock of another node minus the own one, in milliseconds. Meshwork's own.
pub const OFFSET_MS: &str = "offset_ms";
/// Time at which a ping of another node was requested, in milliseconds since 1970. Meshwork's own.
pub const ASKED_MS: &str = "asked_ms";
/// Time of the last answer of another node to a ping, in milliseconds since 1970. Meshwork's own.
pub const PONG_MS: &str = "pong_ms";
/// Round trip of this ping, in milliseconds. Meshwork's own.
pub const ROUND_TRIP_MS: &str = "round_trip_ms";
/// Clock of another node minus the own one, by this ping, in milliseconds. Meshwork's own.
pub const PONG_OFFSET_MS: &str = "pong_offset_ms";
/// Version of the program of another node, by this ping. Meshwork's own.
pub const VERSION: &str = "version";
/// Time of the request to cancel a message, in milliseconds since 1970. Meshwork's own.
pub const CANCEL: &str = "mw_cancel";
/// Code of the reason why a message was refused or failed. Meshwork's own.
pub const REASON: &str = "mw_reason";
