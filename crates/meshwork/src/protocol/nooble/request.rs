//! Requests of a client, and their ids.

use meshwork_model::keys::nooble::Dialect;
use meshwork_model::nooble::{Action, Data, Fresh, InvalidData, micros, uuid};
use meshwork_model::trace::TraceContext;
use serde::Serialize;

use crate::clock::host_micros;

/// The digits of a span's id.
const SPAN_DIGITS: usize = 16;

/// The ids that all messages of one task have in common. All are UUIDs; on the wire of lists, tenant, session and user
/// may be any text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ids {
    /// Whose it is.
    pub tenant_id: String,
    /// The conversation.
    pub session_id: String,
    /// The whole request of a user. (Not on the wire of lists.)
    pub task_id: String,
    /// The agent. (Not on the wire of lists.)
    pub agent_id: String,
    /// The user, if there is one.
    pub user_id: Option<String>,
    /// The trace.
    pub trace_id: String,
}

impl Default for Ids {
    /// Each a new UUID; no user.
    fn default() -> Self {
        Self {
            tenant_id: new_id(),
            session_id: new_id(),
            task_id: new_id(),
            agent_id: new_id(),
            user_id: None,
            trace_id: new_id(),
        }
    }
}

impl Ids {
    /// Those of an action; what it does not say is new.
    #[must_use]
    pub fn of(action: &Action) -> Self {
        let or_new = |id: &Option<String>| id.clone().unwrap_or_else(new_id);
        Self {
            tenant_id: or_new(&action.tenant_id),
            session_id: or_new(&action.session_id),
            task_id: or_new(&action.task_id),
            agent_id: or_new(&action.agent_id),
            user_id: action.user_id.clone(),
            trace_id: or_new(&action.trace_id),
        }
    }
}

/// An action to be sent.
#[derive(Debug, Clone)]
pub struct Request {
    pub(super) action: Action,
    pub(super) context: Option<String>,
    pub(super) own_list: bool,
}

impl Request {
    /// Asks the service before the first dot of `action_type` for what stands after it; `data` is an object in JSON.
    ///
    /// # Errors
    /// If `data` is none.
    pub fn new(action_type: &str, data: &(impl Serialize + ?Sized)) -> Result<Self, InvalidData> {
        Ok(Self::with_data(action_type, Data::of(data)?))
    }

    /// The same with data that is JSON already; its numbers and the order of its names stay.
    #[must_use]
    pub fn with_data(action_type: &str, data: Data) -> Self {
        let ids = Ids::default();
        Self {
            action: Action {
                action_id: new_id(),
                action_type: action_type.to_owned(),
                timestamp: now(),
                tenant_id: Some(ids.tenant_id),
                session_id: Some(ids.session_id),
                task_id: Some(ids.task_id),
                user_id: None,
                agent_id: Some(ids.agent_id),
                origin_service: None,
                correlation_id: None,
                trace_id: Some(ids.trace_id),
                callback_queue_name: None,
                callback_action_type: None,
                execution_config: None,
                query_config: None,
                rag_config: None,
                data,
                metadata: Some(Data::empty()),
                extra: Vec::new(),
            },
            context: None,
            own_list: false,
        }
    }

    /// Belongs to this task, with all ids that say so.
    #[must_use]
    pub fn ids(mut self, ids: Ids) -> Self {
        let action = &mut self.action;
        action.tenant_id = Some(ids.tenant_id);
        action.session_id = Some(ids.session_id);
        action.task_id = Some(ids.task_id);
        action.agent_id = Some(ids.agent_id);
        action.user_id = ids.user_id;
        action.trace_id = Some(one_form(ids.trace_id));
        self
    }

    /// Sets the correlation id, a UUID. Default: a new one if an answer is expected.
    #[must_use]
    pub fn correlation_id(mut self, id: &str) -> Self {
        self.action.correlation_id = Some(one_form(id.to_owned()));
        self
    }

    /// With what else there is to say.
    #[must_use]
    pub fn metadata(mut self, metadata: Data) -> Self {
        self.action.metadata = Some(metadata);
        self
    }

    /// Joins this trace: its span is the action's parent. Replaces other metadata.
    #[must_use]
    pub fn trace(mut self, trace: &TraceContext) -> Self {
        let metadata = format!("{{\"traceparent\":\"{trace}\"}}");
        self.action.trace_id = uuid(trace.trace_id());
        self.action.metadata = Data::parse(&metadata).ok();
        self
    }

    /// The trace and the span that the action is, as W3C's `traceparent`.
    #[must_use]
    pub fn traceparent(&self) -> Option<String> {
        traceparent(&self.action)
    }

    /// With the span that it comes from, if there is one.
    pub(super) fn parent(self, parent: Option<&str>) -> Result<Self, InvalidData> {
        let Some(parent) = parent else {
            return Ok(self);
        };
        Ok(self.metadata(Data::of(&serde_json::json!({ "traceparent": parent }))?))
    }

    /// With settings for who carries a conversation (streams only), as Nooble4's ExecutionConfig writes them.
    #[must_use]
    pub fn execution_config(mut self, config: Data) -> Self {
        self.action.execution_config = Some(config);
        self
    }

    /// With settings for who searches (streams only), as Nooble4's RAGConfig writes them.
    #[must_use]
    pub fn rag_config(mut self, config: Data) -> Self {
        self.action.rag_config = Some(config);
        self
    }

    /// With settings for who asks a model (streams only), as Nooble4's QueryConfig writes them.
    #[must_use]
    pub fn query_config(mut self, config: Data) -> Self {
        self.action.query_config = Some(config);
        self
    }

    /// Goes to the queue that the service has for this context, as a tenant's.
    #[must_use]
    pub fn context(mut self, context: &str) -> Self {
        self.context = Some(context.to_owned());
        self
    }

    /// Is answered to a list of its own, as Nooble4's clients are, not to one that all calls share.
    #[must_use]
    pub fn own_list(mut self) -> Self {
        self.own_list = true;
        self
    }

    /// The trace that it belongs to.
    #[must_use]
    pub fn trace_id(&self) -> Option<&str> {
        self.action.trace_id.as_deref()
    }

    /// The id of the message.
    #[must_use]
    pub fn action_id(&self) -> &str {
        &self.action.action_id
    }
}

/// A new UUID.
pub(super) fn new_id() -> String {
    let mut text = ::uuid::Uuid::encode_buffer();
    let id = ::uuid::Uuid::new_v4().hyphenated();
    id.encode_lower(&mut text).to_owned()
}

/// A UUID as who answers writes it, however it is written; what is none, as it is.
fn one_form(id: String) -> String {
    uuid(&id).unwrap_or(id)
}

/// The time of this host, as Nooble4 writes it.
pub(super) fn now() -> String {
    micros(host_micros())
}

/// Defaults for absent fields of an envelope.
pub(super) fn fresh() -> Fresh {
    Fresh {
        action_id: new_id(),
        trace_id: new_id(),
        now: now(),
    }
}

/// The id by which the answer to an action is known: its own, where it gives none for that.
pub(super) fn known_by(action: &Action) -> &str {
    action
        .correlation_id
        .as_deref()
        .unwrap_or(&action.action_id)
}

/// The trace and the span that an action is, as `traceparent` says them: the trace is that of the span which it comes
/// from, else the action's own; the span's id is a half of the action's.
pub(super) fn traceparent(action: &Action) -> Option<String> {
    let span = span(&action.action_id);
    if let Some(from) = comes_from(action) {
        let sampled = u8::from(from.is_sampled());
        return Some(format!("00-{}-{span}-{sampled:02x}", from.trace_id()));
    }
    let trace = action.trace_id.as_deref()?.replace('-', "");
    Some(format!("00-{trace}-{span}-01"))
}

/// The span that an action comes from, if its metadata say so. What is no `traceparent` there is none, as W3C has it.
pub(super) fn comes_from(action: &Action) -> Option<TraceContext> {
    #[derive(serde::Deserialize)]
    struct Metadata {
        traceparent: Option<String>,
    }
    let said: Metadata = action.metadata.as_ref()?.read().ok()?;
    TraceContext::parse(&said.traceparent?, None).ok()
}

/// The id of the span that an action is: the first half of the action's id, or the other where that is all zeros, as of
/// ids that somebody made up.
pub(super) fn span(action_id: &str) -> String {
    let digits = action_id.replace('-', "");
    let (first, last) = digits
        .split_at_checked(SPAN_DIGITS)
        .unwrap_or((digits.as_str(), ""));
    let made_up = first.bytes().all(|digit| digit == b'0');
    (if made_up { last } else { first }).to_owned()
}

/// The task, if the dialect's wire format has a field for it.
pub(super) fn task_of(action: &Action, dialect: Dialect) -> &str {
    let task = action
        .task_id
        .as_deref()
        .filter(|_| dialect == Dialect::Streams);
    task.or(action.trace_id.as_deref()).unwrap_or_default()
}
