//! An action: a request of one service to another, or the callback that answers it.

use std::cell::LazyCell;

use super::config;
use super::fields::{Fault, Fields, InvalidEnvelope, id, object, text, timestamp};
use super::id::is_uuid;
use super::json::Json;
use super::{Data, Fresh, Writer};
use crate::keys::nooble::Dialect;

/// An action. Ids are UUIDs in lower case. In the lists dialect, tenant, user and session are any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// Id of this message.
    pub action_id: String,
    /// Type of the request: the service, a dot, and the operation.
    pub action_type: String,
    /// Time of creation.
    pub timestamp: String,
    /// Tenant. (Streams: required.)
    pub tenant_id: Option<String>,
    /// Conversation. (Streams: required.)
    pub session_id: Option<String>,
    /// Task: the user's whole request, of which this action is one step. (Streams: required; not in lists.)
    pub task_id: Option<String>,
    /// The user.
    pub user_id: Option<String>,
    /// Agent. (Streams: required; not in lists.)
    pub agent_id: Option<String>,
    /// Service that sends the action. (Streams: required.)
    pub origin_service: Option<String>,
    /// Id that connects an answer to its question.
    pub correlation_id: Option<String>,
    /// Trace of all messages of a task.
    pub trace_id: Option<String>,
    /// List that receives the answer.
    pub callback_queue_name: Option<String>,
    /// Type of the answering action. Without it, the answer is a [`super::Response`].
    pub callback_action_type: Option<String>,
    /// Settings of the service that runs the conversation. (This and the next two: streams only.)
    pub execution_config: Option<Data>,
    /// Settings of the service that queries a model.
    pub query_config: Option<Data>,
    /// Settings of the service that searches.
    pub rag_config: Option<Data>,
    /// Data of the action, an object.
    pub data: Data,
    /// Metadata, an object.
    pub metadata: Option<Data>,
    /// Fields that Nooble4 does not know. (Lists drop them.)
    pub extra: Vec<(String, Data)>,
}

impl Action {
    /// Reads an action. `fresh` is called for values that are missing and optional.
    ///
    /// # Errors
    /// All faults, if Nooble4's model would refuse the action.
    pub fn read(
        bytes: &[u8],
        dialect: Dialect,
        fresh: impl FnOnce() -> Fresh,
    ) -> Result<Self, InvalidEnvelope> {
        let mut from = Fields::read("action", bytes, dialect)?;
        let fresh = LazyCell::new(fresh);
        let of_streams = dialect == Dialect::Streams;
        let action_id = from.or("action_id", id, || fresh.action_id.clone());
        let action_type = from.required("action_type", text);
        let timestamp = from.or("timestamp", timestamp, || fresh.now.clone());
        let (tenant_id, session_id, task_id, user_id, agent_id, origin_service);
        if of_streams {
            tenant_id = from.required("tenant_id", id);
            session_id = from.required("session_id", id);
            task_id = from.required("task_id", id);
            user_id = from.maybe("user_id", id);
            agent_id = from.required("agent_id", id);
            origin_service = from.required("origin_service", text);
        } else {
            tenant_id = from.maybe("tenant_id", text);
            session_id = from.maybe("session_id", text);
            user_id = from.maybe("user_id", text);
            origin_service = from.maybe("origin_service", text);
            (task_id, agent_id) = (None, None);
        }
        let correlation_id = from.maybe("correlation_id", id);
        let trace = |value| match value {
            Json::Null => Ok(None),
            value => id(value).map(Some),
        };
        let trace_id = from.or("trace_id", trace, || Some(fresh.trace_id.clone()));
        let callback_queue_name = from.maybe("callback_queue_name", text);
        let callback_action_type = from.maybe("callback_action_type", text);
        let [execution_config, query_config, rag_config] =
            config::ALL.map(
                |(name, config)| match from.take(name).filter(|_| of_streams) {
                    None | Some(Json::Null) => None,
                    Some(value) => {
                        let read = config.read(value);
                        let read = read.map_err(|faults| from.faults_of(name, faults));
                        read.ok().map(Data)
                    }
                },
            );
        let data = from.required("data", object);
        let metadata = |value| match value {
            Json::Null => Ok(None),
            value => object(value).map(Some),
        };
        let metadata = from.or("metadata", metadata, || Some(Data::empty()));
        let extra = from.rest()?;
        Ok(Self {
            action_id: action_id.unwrap_or_default(),
            action_type: action_type.unwrap_or_default(),
            timestamp: timestamp.unwrap_or_default(),
            tenant_id,
            session_id,
            task_id,
            user_id,
            agent_id,
            origin_service,
            correlation_id,
            trace_id: trace_id.flatten(),
            callback_queue_name,
            callback_action_type,
            execution_config,
            query_config,
            rag_config,
            data: data.unwrap_or_else(Data::empty),
            metadata: metadata.flatten(),
            extra: if of_streams { extra } else { Vec::new() },
        })
    }

    /// Checks the ids and settings of an action that was built here.
    ///
    /// # Errors
    /// Every id that is not a UUID where the dialect requires one, and every setting that Nooble4's models refuse.
    pub fn check(&self, dialect: Dialect) -> Result<(), InvalidEnvelope> {
        let of_streams = dialect == Dialect::Streams;
        let bad_id = |(field, id): (&str, &Option<String>)| {
            let is_id = id.as_deref().is_none_or(is_uuid);
            (!is_id).then(|| Fault {
                field: field.to_owned(),
                kind: "uuid_parsing",
            })
        };
        let ids = [
            ("correlation_id", &self.correlation_id),
            ("trace_id", &self.trace_id),
        ];
        let ids_of_streams = [
            ("tenant_id", &self.tenant_id),
            ("session_id", &self.session_id),
            ("task_id", &self.task_id),
            ("user_id", &self.user_id),
            ("agent_id", &self.agent_id),
        ];
        let ids_of_streams = ids_of_streams.into_iter().filter(|_| of_streams);
        let mut faults: Vec<_> = ids
            .into_iter()
            .chain(ids_of_streams)
            .filter_map(bad_id)
            .collect();
        let settings = [&self.execution_config, &self.query_config, &self.rag_config];
        for ((name, config), given) in config::ALL.into_iter().zip(settings) {
            let given = given.as_ref().filter(|_| of_streams);
            let read = given.and_then(|given| Json::read(given.text()));
            let bad = read.and_then(|read| config.read(read).err());
            let within = bad.into_iter().flatten().map(|fault| fault.within(name));
            faults.extend(within);
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(InvalidEnvelope {
                what: "action",
                faults,
            }),
        }
    }

    /// Returns the action as Nooble4's model writes it.
    #[must_use]
    pub fn write(&self, dialect: Dialect) -> String {
        let mut to = Writer::new();
        to.text("action_id", &self.action_id);
        to.text("action_type", &self.action_type);
        to.text("timestamp", &self.timestamp);
        to.maybe_text("tenant_id", self.tenant_id.as_deref());
        let (user, session) = (self.user_id.as_deref(), self.session_id.as_deref());
        match dialect {
            Dialect::Streams => {
                to.maybe_text("session_id", session);
                to.maybe_text("task_id", self.task_id.as_deref());
                to.maybe_text("user_id", user);
                to.maybe_text("agent_id", self.agent_id.as_deref());
            }
            Dialect::Lists => {
                to.maybe_text("user_id", user);
                to.maybe_text("session_id", session);
            }
        }
        to.maybe_text("origin_service", self.origin_service.as_deref());
        to.maybe_text("correlation_id", self.correlation_id.as_deref());
        to.maybe_text("trace_id", self.trace_id.as_deref());
        to.maybe_text("callback_queue_name", self.callback_queue_name.as_deref());
        to.maybe_text("callback_action_type", self.callback_action_type.as_deref());
        if dialect == Dialect::Streams {
            to.maybe("execution_config", self.execution_config.as_ref());
            to.maybe("query_config", self.query_config.as_ref());
            to.maybe("rag_config", self.rag_config.as_ref());
        }
        to.raw("data", self.data.text());
        to.maybe("metadata", self.metadata.as_ref());
        if dialect == Dialect::Streams {
            for (name, value) in &self.extra {
                to.extra(name, value);
            }
        }
        to.done()
    }
}
