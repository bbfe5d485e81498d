//! Errors of the API: one list of codes for HTTP and JSON-RPC.

use axum::http::StatusCode;
use meshwork::Error;
use meshwork::context::ContextError;
use meshwork::flow::FlowError;
use meshwork_broker::Error as BrokerError;
use meshwork_model::keys::context::ContextId;
use meshwork_ops::{InPart, OpError};

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The body is no JSON.
    ParseError,
    /// The request is no JSON-RPC request.
    InvalidRequest,
    /// There is no such method or path.
    MethodNotFound,
    /// A parameter is wrong.
    InvalidParams,
    /// The server is at fault.
    Internal,
    /// The script failed.
    ExecutionError,
    /// The call needs a key.
    AuthenticationRequired,
    /// The key is wrong.
    InvalidCredentials,
    /// The key may not call the method.
    Forbidden,
    /// The object does not exist.
    NotFound,
    /// The state of the object does not allow the call.
    Conflict,
    /// A limit of a queue is reached.
    LimitExceeded,
    /// The client sends too much.
    TooManyRequests,
    /// The wait is over before its event.
    Timeout,
    /// The store is away, or refuses the call.
    StorageError,
}

impl Code {
    const ALL: [Self; 15] = [
        Self::ParseError,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::ExecutionError,
        Self::AuthenticationRequired,
        Self::InvalidCredentials,
        Self::Forbidden,
        Self::NotFound,
        Self::Conflict,
        Self::LimitExceeded,
        Self::TooManyRequests,
        Self::Timeout,
        Self::StorageError,
    ];

    /// Returns the code of a word.
    #[must_use]
    pub fn find(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == word)
    }

    /// The word of the code, as in problems.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ParseError => "parse_error",
            Self::InvalidRequest => "invalid_request",
            Self::MethodNotFound => "method_not_found",
            Self::InvalidParams => "invalid_params",
            Self::Internal => "internal",
            Self::ExecutionError => "execution_error",
            Self::AuthenticationRequired => "authentication_required",
            Self::InvalidCredentials => "invalid_credentials",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::LimitExceeded => "limit_exceeded",
            Self::TooManyRequests => "too_many_requests",
            Self::Timeout => "timeout",
            Self::StorageError => "storage_error",
        }
    }

    /// The number of the code in JSON-RPC.
    #[must_use]
    pub fn rpc(self) -> i32 {
        match self {
            Self::ParseError => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::ExecutionError => -32000,
            Self::AuthenticationRequired => -32001,
            Self::InvalidCredentials => -32002,
            Self::Forbidden => -32003,
            Self::NotFound => -32004,
            Self::Conflict => -32005,
            Self::LimitExceeded => -32006,
            Self::TooManyRequests => -32007,
            Self::Timeout => -32008,
            Self::StorageError => -32009,
        }
    }

    /// The status of the code in HTTP.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::ParseError | Self::InvalidRequest | Self::InvalidParams => {
                StatusCode::BAD_REQUEST
            }
            Self::MethodNotFound | Self::NotFound => StatusCode::NOT_FOUND,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::ExecutionError => StatusCode::UNPROCESSABLE_ENTITY,
            Self::AuthenticationRequired | Self::InvalidCredentials => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Conflict => StatusCode::CONFLICT,
            Self::LimitExceeded | Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::StorageError => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Error of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// Its kind.
    pub code: Code,
    /// The reason.
    pub message: String,
    /// The remedy, if the message has none.
    pub hint: Option<&'static str>,
}

impl ApiError {
    /// Returns an error.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
        }
    }

    /// Returns an error for a wrong parameter.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidParams, message)
    }

    /// Adds a remedy.
    #[must_use]
    pub fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }
}

impl InPart for ApiError {
    fn in_part(self, part: ContextId) -> Self {
        let message = format!("part {part}: {}", self.message);
        Self { message, ..self }
    }
}

impl From<OpError> for ApiError {
    fn from(error: OpError) -> Self {
        let message = error.to_string();
        match error {
            OpError::Jobs(error) => error.into(),
            OpError::Context(error) => error.into(),
            OpError::Flow(error) => error.into(),
            OpError::Spread(error) => error.into(),
            OpError::InPart(part, error) => Self::from(*error).in_part(part),
            OpError::Invalid(_) => Self::invalid(message),
            OpError::Refused { .. } => Self::new(Code::Conflict, message),
            OpError::NotFound { hint, .. } => Self::new(Code::NotFound, message).hint(hint),
            OpError::NoQueue { is_change, .. } => {
                Self::new(Code::NotFound, message).hint(match is_change {
                    true => "correct its name, or give create: true",
                    false => "queue.list lists the queues",
                })
            }
            OpError::Forbidden { hint, .. } => Self {
                code: Code::Forbidden,
                message,
                hint,
            },
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let code = code_of(&error);
        if code == Code::StorageError {
            return stored(&error);
        }
        let made = Self::new(code, error.to_string());
        match hint_of(&error) {
            Some(hint) => made.hint(hint),
            None => made,
        }
    }
}

impl From<BrokerError> for ApiError {
    fn from(error: BrokerError) -> Self {
        Error::from(error).into()
    }
}

impl From<ContextError> for ApiError {
    fn from(error: ContextError) -> Self {
        use ContextError as E;
        let code = match error {
            E::Jobs(error) => return (*error).into(),
            E::Broker(error) => return error.into(),
            E::Denied(_) | E::LacksRole { .. } => Code::Forbidden,
            E::NoActor(_) | E::NoContext(_) | E::NoMessage { .. } | E::NoRecord { .. } => {
                Code::NotFound
            }
            E::NoRunner { .. } => Code::NotFound,
            E::NotEnded { .. } => Code::Timeout,
            E::RunnerExists(_) | E::ActorExists(_) | E::NoNumber(_) => Code::Conflict,
            E::RevokedKey(_) | E::UnknownKey { .. } => Code::Forbidden,
            E::Busy(_) | E::HasRole { .. } | E::MessageOpen { .. } | E::LastAdmin { .. } => {
                Code::Conflict
            }
            _ => Code::InvalidParams,
        };
        Self::new(code, error.to_string())
    }
}

impl From<FlowError> for ApiError {
    fn from(error: FlowError) -> Self {
        use FlowError as E;
        let code = match error {
            E::Broker(error) => return error.into(),
            E::Context(error) => return error.into(),
            E::NoFlow(_) | E::NoApproval(..) | E::NotDeployed(_) => Code::NotFound,
            E::NoApprover(..) | E::FourEyes(..) => Code::Forbidden,
            E::NoPlan(_)
            | E::NotTakenUp(_)
            | E::Refused(..)
            | E::Plain(_)
            | E::NotEnded(_)
            | E::NotAsked(_)
            | E::Late(_)
            | E::Answered { .. }
            | E::Retry { .. }
            | E::NoNumbers(_)
            | E::JobGone { .. } => Code::Conflict,
            _ => Code::InvalidParams,
        };
        let made = Self::new(code, error.to_string());
        match error {
            FlowError::NoFlow(_) => made.hint("flow.list lists the flows"),
            _ => made,
        }
    }
}

/// Messages of the store are not for clients: the log has them. A key with a value of another type is named: no repetition
/// helps.
fn stored(error: &Error) -> ApiError {
    tracing::warn!(%error, "call of the API failed");
    if let Error::Broker(error) = error
        && error.is_wrong_type()
    {
        return ApiError::new(Code::StorageError, error.to_string())
            .hint("`meshwork doctor` names damaged keys");
    }
    ApiError::new(
        Code::StorageError,
        "the store does not answer, or refuses the call; it may have been carried out all the same",
    )
    .hint("repeat the call with the same id or Idempotency-Key")
}

fn code_of(error: &Error) -> Code {
    match error {
        Error::Name(_)
        | Error::Invalid(_)
        | Error::InvalidBatch(_)
        | Error::Script { .. }
        | Error::UnknownType { .. }
        | Error::UnknownPrerequisite { .. }
        | Error::Recurrence(_)
        | Error::Zone(_)
        | Error::PayloadTooLarge { .. }
        | Error::Cursor(_)
        | Error::Broker(
            BrokerError::Schedule(_)
            | BrokerError::ScheduleOver { .. }
            | BrokerError::Element(_)
            | BrokerError::Prerequisite(_)
            | BrokerError::Setting(_)
            | BrokerError::QueueLimit { .. },
        ) => Code::InvalidParams,
        Error::JobExists { .. }
        | Error::ScheduleExists { .. }
        | Error::DuplicateUniqueKey { .. }
        | Error::QueueDraining { .. }
        | Error::NotDeadLettered { .. }
        | Error::BatchClosed { .. }
        | Error::Overlaps { .. }
        | Error::ScheduleRefused { .. }
        | Error::Unreadable(_)
        | Error::NoJobNumber { .. }
        | Error::Broker(BrokerError::ScheduleBusy { .. }) => Code::Conflict,
        Error::QueueFull { .. } => Code::LimitExceeded,
        Error::JobNotFound { .. } | Error::NoSchedule { .. } | Error::BatchNotFound { .. } => {
            Code::NotFound
        }
        Error::Failed { .. } | Error::Payload { .. } => Code::ExecutionError,
        Error::JobWaitTimeout { .. }
        | Error::CancelTimeout { .. }
        | Error::DrainTimeout { .. }
        | Error::RequestTimeout { .. }
        | Error::BatchWaitTimeout { .. } => Code::Timeout,
        Error::Broker(_) | Error::Connect(_) => Code::StorageError,
        _ => Code::Internal,
    }
}

fn hint_of(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::JobNotFound { .. } => "job.list lists the jobs",
        Error::NoSchedule { .. } => "schedule.list lists the schedules",
        Error::BatchNotFound { .. } => "batch.list lists the batches",
        Error::QueueFull { .. } => "queue.get shows the limits, queue.limit changes one",
        Error::QueueDraining { .. } => "queue.resume ends the drain",
        Error::PayloadTooLarge { .. } => "queue.get shows the greatest size",
        Error::NotDeadLettered { .. } => "dead.list lists the dead letters",
        _ => return None,
    })
}
