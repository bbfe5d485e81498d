//! Message: an action in a service, from its bytes to its reply.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use meshwork_broker::nooble::Received;
use meshwork_model::keys::nooble::Dialect;
use meshwork_model::nooble::Action;
use meshwork_model::outcome::Report;

use super::answer::Reply;
use super::context::Expected;
use super::error::ActionError;
use super::guard::reading;
use super::handler::Given;
use super::queue::Queue;
use super::request::fresh;

/// A message that belongs to this service.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) received: Received,
    pub(super) queue: Arc<Queue>,
    action: OnceLock<Result<Arc<Action>, String>>,
    run: Mutex<Run>,
    /// The reply, created once so that a repeated report sends the same.
    pub(super) reply: OnceLock<Option<Reply>>,
}

/// Data of a run besides its report.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Start of the run, in microseconds since 1970, by the host's clock.
    pub(super) began: u64,
    /// Key of the record of a callback's request.
    pub(super) record: Option<String>,
    /// Span of that request.
    pub(super) asker: Option<String>,
    /// Result of the run, if it has one.
    pub(super) given: Option<Given>,
    /// The callback that the reply requests.
    pub(super) expected: Option<Expected>,
}

impl Message {
    pub(super) fn new(queue: &Arc<Queue>, received: Received) -> Self {
        Self {
            received,
            queue: Arc::clone(queue),
            action: OnceLock::new(),
            run: Mutex::default(),
            reply: OnceLock::new(),
        }
    }

    /// Returns the action, which the first call decodes.
    ///
    /// # Errors
    /// The message is no valid action.
    pub(super) fn read(&self, dialect: Dialect) -> Result<&Arc<Action>, &str> {
        let read = self.action.get_or_init(|| {
            if self.received.message.is_none() {
                return Err("it has no field `data`".to_owned());
            }
            let read = reading(|| Action::read(self.received.bytes(), dialect, fresh));
            read.map(Arc::new)
        });
        read.as_ref().map_err(String::as_str)
    }

    /// Returns the action, if it was decoded and is valid.
    pub(super) fn action(&self) -> Option<&Arc<Action>> {
        self.action.get()?.as_ref().ok()
    }

    pub(super) fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the report of a run with this result.
    pub(super) fn ended(&self, given: Given) -> Report {
        let report = match &given {
            Ok(_) => Report::done(Vec::new()),
            Err(error) => Report::failed(error.failure()),
        };
        self.run().given = Some(given);
        report
    }

    /// Returns the report of a failed run.
    pub(super) fn failed(&self, error: ActionError) -> Report {
        self.ended(Err(error))
    }
}
