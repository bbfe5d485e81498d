//! Contexts, actors, runners and messages as JSON.

use std::borrow::Cow;

use meshwork_broker::SlotMap;
use meshwork_model::context::{Actor, Context, Runner};
use meshwork_model::keys::context::ActorId;
use meshwork_model::time;
use serde::{Deserialize, Serialize};

use crate::context::{ContextHandle, RunnerState};

/// Context in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextSummary {
    /// Number of the context.
    pub id: u32,
    /// Place of its keys: `db` or `prefix`.
    pub layout: Cow<'static, str>,
    /// Number of its database.
    pub database: u32,
    /// Address of the node that has it, as `host:port`; absent except on a Cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

impl ContextSummary {
    /// Creates the view of a context. `slots` has the nodes of a Cluster.
    #[must_use]
    pub fn new(handle: &ContextHandle, slots: Option<&SlotMap>) -> Self {
        let node = slots.and_then(|slots| slots.node_of(handle.keys().prefix()));
        Self {
            node: node.map(str::to_owned),
            id: handle.id().get(),
            layout: handle.keys().layout().as_str().into(),
            database: handle.keys().database(),
        }
    }
}

/// Context with its members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextView {
    /// Number of the context.
    pub id: u32,
    /// Actors who create and delete.
    pub admins: Vec<u32>,
    /// Actors who read.
    pub readers: Vec<u32>,
    /// Actors who run jobs.
    pub executors: Vec<u32>,
    /// Rule for messages without an envelope: `own`, `accept` or `refuse`.
    pub unsigned: String,
    /// Sandbox of jobs that messages of other nodes bring: `open`, `standard` or `strict`.
    pub sandbox: Cow<'static, str>,
    /// Time of creation, in seconds since 1970.
    pub created_at: u32,
    /// Time of the last change, in seconds since 1970.
    pub updated_at: u32,
    /// Place of its keys: `db` or `prefix`.
    pub layout: Cow<'static, str>,
    /// Number of its database.
    pub database: u32,
}

impl ContextView {
    /// Returns the view of a context and its record.
    #[must_use]
    pub fn new(handle: &ContextHandle, record: &Context) -> Self {
        let numbers = |actors: &[ActorId]| actors.iter().map(|actor| actor.0).collect();
        let place = ContextSummary::new(handle, None);
        Self {
            id: place.id,
            admins: numbers(&record.admins),
            readers: numbers(&record.readers),
            executors: numbers(&record.executors),
            unsigned: record.unsigned.to_string(),
            sandbox: record.sandbox.as_str().into(),
            created_at: record.created_at,
            updated_at: record.updated_at,
            layout: place.layout,
            database: place.database,
        }
    }
}

/// Actor of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActorView {
    /// Number of the actor on this node.
    pub id: u32,
    /// Public key, which identifies the actor.
    pub pubkey: String,
    /// Addresses of the actor.
    pub address: Vec<String>,
    /// Time of creation, in seconds since 1970.
    pub created_at: u32,
    /// Time of the last change, in seconds since 1970.
    pub updated_at: u32,
    /// Time of the revocation of the keys, in seconds since 1970.
    #[serde(rename = "mw_revoked_at", skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<u32>,
    /// Previous key of the actor.
    #[serde(rename = "mw_old_pubkey", skip_serializing_if = "Option::is_none")]
    pub old_pubkey: Option<String>,
    /// Time until which the previous key is valid, in seconds since 1970.
    #[serde(rename = "mw_old_until", skip_serializing_if = "Option::is_none")]
    pub old_until: Option<u32>,
    /// Scope of the actor outside of contexts; absent if it has no rights there.
    #[serde(rename = "mw_node_scope", skip_serializing_if = "Option::is_none")]
    pub node_scope: Option<Cow<'static, str>>,
}

impl From<&Actor> for ActorView {
    fn from(actor: &Actor) -> Self {
        Self {
            id: actor.id.0,
            pubkey: actor.pubkey.to_string(),
            address: actor.address.iter().map(ToString::to_string).collect(),
            created_at: actor.created_at,
            updated_at: actor.updated_at,
            revoked_at: actor.revoked_at,
            old_pubkey: actor.old_pubkey.as_ref().map(ToString::to_string),
            old_until: actor.old_until,
            node_scope: actor.node_scope.map(|scope| scope.as_str().into()),
        }
    }
}

/// Runner of a context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunnerView {
    /// Number of the runner.
    pub id: u32,
    /// Key with which the runner signs, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pubkey: Option<String>,
    /// Address at which other nodes reach the runner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Topic to which a runner that is not local listens.
    pub topic: String,
    /// Types that it runs, as `python,v`.
    #[serde(rename = "type")]
    pub types: String,
    /// True if it claims jobs from the queues of its context.
    pub local: bool,
    /// Time of creation, in seconds since 1970.
    pub created_at: u32,
    /// Time of the last change, in seconds since 1970.
    pub updated_at: u32,
    /// Its load; only in lists.
    #[serde(flatten)]
    pub load: Option<RunnerLoad>,
}

/// Load of a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunnerLoad {
    /// True if a worker of Meshwork runs as this runner.
    pub running: bool,
    /// Number of jobs in flight at its last heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<usize>,
    /// Its concurrency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<usize>,
    /// Number of jobs that wait for this runner only, such as those of messages to its topic.
    pub waiting: usize,
    /// Last sign of life of its worker (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<String>,
}

impl From<&RunnerState> for RunnerView {
    fn from(state: &RunnerState) -> Self {
        let worker = state.worker.as_ref();
        Self {
            load: Some(RunnerLoad {
                running: worker.is_some(),
                in_flight: worker.and_then(|worker| worker.in_flight),
                slots: worker.and_then(|worker| worker.slots),
                waiting: state.waiting,
                last_seen: state.seen_ms.map(time::iso),
            }),
            ..Self::from(&state.runner)
        }
    }
}

impl From<&Runner> for RunnerView {
    fn from(runner: &Runner) -> Self {
        let types: Vec<_> = runner.types.iter().map(|it| it.as_str()).collect();
        Self {
            id: runner.id.0,
            pubkey: runner.pubkey.as_ref().map(ToString::to_string),
            address: runner.address.as_ref().map(ToString::to_string),
            topic: runner.topic.clone(),
            types: types.join(","),
            local: runner.local,
            created_at: runner.created_at,
            updated_at: runner.updated_at,
            load: None,
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for crate::context::MessageView {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Message".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let number = |about: &str| serde_json::json!({"type": "integer", "description": about});
        let text = |about: &str| serde_json::json!({"type": "string", "description": about});
        let objects = |about: &str| serde_json::json!({"type": "array", "items": {"type": "object"}, "description": about});
        schemars::json_schema!({
            "type": "object",
            "description": "Message between contexts.",
            "properties": {
                "id": number("Number among the messages of its caller."),
                "caller_id": number("The actor who sent it."),
                "context_id": number("Context that stores it."),
                "message": text("The text."),
                "message_type": text("`job`, `chat`, `mail` or `result`."),
                "message_format_type": text("`html`, `text` or `md`."),
                "timeout": number("Seconds until the target has stored it."),
                "timeout_ack": number("Seconds until it is acknowledged."),
                "timeout_result": number("Seconds until it is processed."),
                "job": objects("Jobs that the message requests, or whose results it brings."),
                "logs": objects("Log of the message, the oldest entry first."),
                "created_at": number("Time of creation, in seconds since 1970."),
                "updated_at": number("Time of the last change, in seconds since 1970."),
                "status": text("`dispatched`, `acknowledged`, `error` or `processed`."),
                "target_context": number("Context to which it goes."),
                "target_node": text("Node to which it goes; none for this node."),
                "topic": text("Topic to which it goes."),
                "envelope": text("Its signed envelope, as JSON."),
                "mw_origin": text("Where a received message comes from, as `NODE/CONTEXT/CALLER:ID/NONCE`."),
                "mw_stored_at": number("Time at which the target stored it, in seconds since 1970."),
                "mw_re": text("Key of the message whose result this one has."),
                "mw_jobs": {"type": "array", "items": {"type": "string"}, "description": "Keys of the jobs that were enqueued for it."},
                "mw_result": text("Key of the message with its result."),
                "mw_reason": text("Code of the reason why it was refused or failed."),
                "mw_cancel": number("Time of the request to cancel it, in milliseconds since 1970."),
                "mw_created_ms": number("Time of creation, in milliseconds since 1970; whole seconds for a message of another context."),
                "mw_updated_ms": number("Time of the last change, in milliseconds since 1970."),
            },
            "required": ["id", "caller_id", "context_id", "message", "message_type", "message_format_type", "timeout", "timeout_ack", "timeout_result", "job", "logs", "created_at", "updated_at", "status", "mw_created_ms", "mw_updated_ms"],
        })
    }
}
