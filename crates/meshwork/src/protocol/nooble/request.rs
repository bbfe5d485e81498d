//! Requests of a client, and their ids.

use meshwork_model::keys::nooble::Dialect;
use meshwork_model::nooble::{Action, Data, Fresh, InvalidData, micros, uuid};
use meshwork_model::trace::TraceContext;
use serde::Serialize;

use meshwork_runtime::clock::host_micros;

/// Number of digits of a span id.
const SPAN_DIGITS: usize = 16;

/// Ids that all messages of one task share. All are UUIDs; in the lists dialect, tenant, session and user may be any
/// text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ids {
    /// Tenant.
    pub tenant_id: String,
    /// Conversation.
    pub session_id: String,
    /// Task: the whole request of a user. (Not in the lists dialect.)
    pub task_id: String,
    /// Agent. (Not in the lists dialect.)
    pub agent_id: String,
    /// User, if there is one.
    pub user_id: Option<String>,
    /// Trace.
    pub trace_id: String,
}

impl Default for Ids {
    /// Returns new UUIDs, without a user.
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
    /// Returns the ids of an action. Missing ones are generated.
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

/// An action to send, as a builder.
#[derive(Debug, Clone)]
pub struct Request {
    pub(super) action: Action,
    pub(super) context: Option<String>,
    pub(super) private_list: bool,
}

impl Request {
    /// Creates a request to the service before the first dot of `action_type`. `data` is encoded as a JSON object.
    ///
    /// # Errors
    /// `data` is no JSON object.
    pub fn new(action_type: &str, data: &(impl Serialize + ?Sized)) -> Result<Self, InvalidData> {
        Ok(Self::with_data(action_type, Data::of(data)?))
    }

    /// Creates a request with data that is JSON already. Its numbers and the order of its fields stay.
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
            private_list: false,
        }
    }

    /// Sets the ids of the task.
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

    /// Sets the correlation id, a UUID. Default: a new one if a reply is expected.
    #[must_use]
    pub fn correlation_id(mut self, id: &str) -> Self {
        self.action.correlation_id = Some(one_form(id.to_owned()));
        self
    }

    /// Sets the id of the message, a UUID, by which its service recognizes a repetition. Default: a new one.
    pub(super) fn with_action_id(mut self, id: &str) -> Self {
        self.action.action_id = one_form(id.to_owned());
        self
    }

    /// Sets the metadata.
    #[must_use]
    pub fn metadata(mut self, metadata: Data) -> Self {
        self.action.metadata = Some(metadata);
        self
    }

    /// Joins a trace: its span becomes the parent of the action. Replaces other metadata.
    #[must_use]
    pub fn trace(mut self, trace: &TraceContext) -> Self {
        let metadata = format!("{{\"traceparent\":\"{trace}\"}}");
        self.action.trace_id = uuid(trace.trace_id());
        self.action.metadata = Data::parse(&metadata).ok();
        self
    }

    /// Returns the trace and span of the action, as W3C's `traceparent`.
    #[must_use]
    pub fn traceparent(&self) -> Option<String> {
        traceparent(&self.action)
    }

    /// Sets the parent span, if there is one.
    pub(super) fn parent(self, parent: Option<&str>) -> Result<Self, InvalidData> {
        let Some(parent) = parent else {
            return Ok(self);
        };
        Ok(self.metadata(Data::of(&serde_json::json!({ "traceparent": parent }))?))
    }

    /// Sets the configuration of a conversation (streams only), in the format of Nooble4's ExecutionConfig.
    #[must_use]
    pub fn execution_config(mut self, config: Data) -> Self {
        self.action.execution_config = Some(config);
        self
    }

    /// Sets the configuration of a search (streams only), in the format of Nooble4's RAGConfig.
    #[must_use]
    pub fn rag_config(mut self, config: Data) -> Self {
        self.action.rag_config = Some(config);
        self
    }

    /// Sets the configuration of a query to a model (streams only), in the format of Nooble4's QueryConfig.
    #[must_use]
    pub fn query_config(mut self, config: Data) -> Self {
        self.action.query_config = Some(config);
        self
    }

    /// Sends the action to the queue that the service has for this context, for example of a tenant.
    #[must_use]
    pub fn context(mut self, context: &str) -> Self {
        self.context = Some(context.to_owned());
        self
    }

    /// Requests the reply on a private list, as Nooble4's clients do. Default: a list that all calls share.
    #[must_use]
    pub fn private_list(mut self) -> Self {
        self.private_list = true;
        self
    }

    /// Returns the trace id.
    #[must_use]
    pub fn trace_id(&self) -> Option<&str> {
        self.action.trace_id.as_deref()
    }

    /// Returns the id of the message.
    #[must_use]
    pub fn action_id(&self) -> &str {
        &self.action.action_id
    }
}

/// Returns a new UUID.
pub(super) fn new_id() -> String {
    let mut text = ::uuid::Uuid::encode_buffer();
    let id = ::uuid::Uuid::new_v4().hyphenated();
    id.encode_lower(&mut text).to_owned()
}

/// Returns a UUID in its usual form, and any other text unchanged.
fn one_form(id: String) -> String {
    uuid(&id).unwrap_or(id)
}

/// Returns the time of this host in the format of Nooble4.
pub(super) fn now() -> String {
    micros(host_micros())
}

/// Returns defaults for missing fields of an envelope.
pub(super) fn fresh() -> Fresh {
    Fresh {
        action_id: new_id(),
        trace_id: new_id(),
        now: now(),
    }
}

/// Returns the id that identifies the reply to an action: its correlation id, or else its own.
pub(super) fn known_by(action: &Action) -> &str {
    action
        .correlation_id
        .as_deref()
        .unwrap_or(&action.action_id)
}

/// Returns the trace and span of an action as `traceparent`. The trace is that of the parent span, or else the action's
/// own. The span id is a half of the action's id.
pub(super) fn traceparent(action: &Action) -> Option<String> {
    let span = span(&action.action_id);
    if let Some(from) = comes_from(action) {
        let sampled = u8::from(from.is_sampled());
        return Some(format!("00-{}-{span}-{sampled:02x}", from.trace_id()));
    }
    let trace = action.trace_id.as_deref()?.replace('-', "");
    Some(format!("00-{trace}-{span}-01"))
}

/// Returns the parent span of an action from its metadata. An invalid `traceparent` is ignored, as W3C requires.
pub(super) fn comes_from(action: &Action) -> Option<TraceContext> {
    #[derive(serde::Deserialize)]
    struct Metadata {
        traceparent: Option<String>,
    }
    let said: Metadata = action.metadata.as_ref()?.read().ok()?;
    TraceContext::parse(&said.traceparent?, None).ok()
}

/// Returns the span id of an action: the first half of its id, or the second half if that is all zeros, as in
/// artificial ids.
pub(super) fn span(action_id: &str) -> String {
    let digits = action_id.replace('-', "");
    let (first, last) = digits
        .split_at_checked(SPAN_DIGITS)
        .unwrap_or((digits.as_str(), ""));
    let made_up = first.bytes().all(|digit| digit == b'0');
    (if made_up { last } else { first }).to_owned()
}

/// Returns the task, if the dialect has a field for it.
pub(super) fn task_of(action: &Action, dialect: Dialect) -> &str {
    let task = action
        .task_id
        .as_deref()
        .filter(|_| dialect == Dialect::Streams);
    task.or(action.trace_id.as_deref()).unwrap_or_default()
}
