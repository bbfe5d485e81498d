//! A response: the outcome of an action, sent to its caller.

use std::cell::LazyCell;

use super::fields::{Fault, Fields, InvalidEnvelope, id, object, text, timestamp, truth};
use super::json::Json;
use super::{Data, Fresh, Writer};
use crate::keys::nooble::Dialect;

/// The error of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorDetail {
    /// Kind of the error, for programs.
    pub error_type: String,
    /// Code within the kind.
    pub error_code: Option<String>,
    /// Description, for people.
    pub message: String,
    /// Further details, an object.
    pub details: Option<Data>,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Id of this message, different from the id of the action.
    pub action_id: String,
    /// Correlation id of the action.
    pub correlation_id: String,
    /// Trace of the action.
    pub trace_id: String,
    /// Task of the action. (Lists have neither this nor the next two fields.)
    pub task_id: Option<String>,
    /// Tenant.
    pub tenant_id: Option<String>,
    /// Conversation.
    pub session_id: Option<String>,
    /// Time of creation.
    pub timestamp: String,
    /// Result, an object.
    pub data: Option<Data>,
    /// Error; `None` if the action succeeded.
    pub error: Option<ErrorDetail>,
    /// Fields that Nooble4 does not know. (Lists drop them.)
    pub extra: Vec<(String, Data)>,
}

impl Response {
    /// Returns whether the action succeeded.
    #[must_use]
    pub fn success(&self) -> bool {
        self.error.is_none()
    }

    /// Reads a response. `fresh` is called for values that are missing and optional.
    ///
    /// # Errors
    /// All faults, if Nooble4's model would refuse the response.
    pub fn read(
        bytes: &[u8],
        dialect: Dialect,
        fresh: impl FnOnce() -> Fresh,
    ) -> Result<Self, InvalidEnvelope> {
        let mut from = Fields::read("response", bytes, dialect)?;
        let fresh = LazyCell::new(fresh);
        let of_streams = dialect == Dialect::Streams;
        let action_id = match dialect {
            Dialect::Streams => from.or("action_id", id, || fresh.action_id.clone()),
            Dialect::Lists => from.required("action_id", id),
        };
        let correlation_id = from.required("correlation_id", id);
        let trace_id = from.required("trace_id", id);
        let mut of_task = |name| of_streams.then(|| from.required(name, id)).flatten();
        let [task_id, tenant_id, session_id] =
            ["task_id", "tenant_id", "session_id"].map(&mut of_task);
        let success = from.required("success", truth);
        let timestamp = from.or("timestamp", timestamp, || fresh.now.clone());
        let data = from.maybe("data", object);
        let error = match from.take("error") {
            None | Some(Json::Null) => None,
            Some(value) => {
                let read = ErrorDetail::read(value);
                let read = read.map_err(|faults| from.faults_of("error", faults));
                read.ok()
            }
        };
        // Nooble4 checks the whole after all its parts are valid.
        let extra = from.rest()?;
        if success != Some(error.is_none()) {
            let fault = Fault {
                field: String::new(),
                kind: "value_error",
            };
            return Err(InvalidEnvelope {
                what: "response",
                faults: vec![fault],
            });
        }
        Ok(Self {
            action_id: action_id.unwrap_or_default(),
            correlation_id: correlation_id.unwrap_or_default(),
            trace_id: trace_id.unwrap_or_default(),
            task_id,
            tenant_id,
            session_id,
            timestamp: timestamp.unwrap_or_default(),
            data,
            error,
            extra: if of_streams { extra } else { Vec::new() },
        })
    }

    /// Returns the response as Nooble4's model writes it.
    #[must_use]
    pub fn write(&self, dialect: Dialect) -> String {
        let mut to = Writer::new();
        to.text("action_id", &self.action_id);
        to.text("correlation_id", &self.correlation_id);
        to.text("trace_id", &self.trace_id);
        if dialect == Dialect::Streams {
            to.maybe_text("task_id", self.task_id.as_deref());
            to.maybe_text("tenant_id", self.tenant_id.as_deref());
            to.maybe_text("session_id", self.session_id.as_deref());
        }
        to.raw("success", if self.success() { "true" } else { "false" });
        to.text("timestamp", &self.timestamp);
        to.maybe("data", self.data.as_ref());
        match &self.error {
            Some(error) => to.raw("error", &error.write()),
            None => to.raw("error", "null"),
        }
        if dialect == Dialect::Streams {
            for (name, value) in &self.extra {
                to.extra(name, value);
            }
        }
        to.done()
    }
}

impl ErrorDetail {
    /// Returns an error with a type, a code and a description.
    #[must_use]
    pub fn new(error_type: &str, error_code: &str, message: &str) -> Self {
        Self {
            error_type: error_type.to_owned(),
            error_code: Some(error_code.to_owned()),
            message: message.to_owned(),
            details: Some(Data::empty()),
        }
    }

    /// Returns the error as Nooble4's model writes it.
    #[must_use]
    pub fn write(&self) -> String {
        let mut to = Writer::new();
        to.text("error_type", &self.error_type);
        to.maybe_text("error_code", self.error_code.as_deref());
        to.text("message", &self.message);
        to.maybe("details", self.details.as_ref());
        to.done()
    }

    fn read(value: Json<'_>) -> Result<Self, Vec<Fault>> {
        let Json::Object(fields) = value else {
            let field = String::new();
            let kind = "model_type";
            return Err(vec![Fault { field, kind }]);
        };
        let mut from = Fields::within(fields);
        let error_type = from.required("error_type", text);
        let error_code = from.maybe("error_code", text);
        let message = from.required("message", text);
        let maybe = |value| match value {
            Json::Null => Ok(None),
            value => object(value).map(Some),
        };
        let details = from.or("details", maybe, || Some(Data::empty()));
        match (from.ends().1, error_type, message) {
            (faults, Some(error_type), Some(message)) if faults.is_empty() => Ok(Self {
                error_type,
                error_code,
                message,
                details: details.flatten(),
            }),
            (faults, ..) => Err(faults),
        }
    }
}
