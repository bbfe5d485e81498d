//! Message: a job of a service, from its bytes to its answer.

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
    /// The answer. Made once, so that a report that is repeated says the same.
    pub(super) reply: OnceLock<Option<Reply>>,
}

/// The facts of a run beyond its report.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Time of the run's start, in microseconds since 1970, by the host's clock.
    pub(super) began: u64,
    /// The key of the record of the request that a callback answers.
    pub(super) record: Option<String>,
    /// The span of that request.
    pub(super) asker: Option<String>,
    /// The outcome in the terms of actions, if the run had one.
    pub(super) given: Option<Given>,
    /// The callback that the answer asks for.
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

    /// The action, read by the first call.
    ///
    /// # Errors
    /// Why it is none.
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

    /// The action, if it was read and is one.
    pub(super) fn action(&self) -> Option<&Arc<Action>> {
        self.action.get()?.as_ref().ok()
    }

    pub(super) fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The report of a run that ended so.
    pub(super) fn ended(&self, given: Given) -> Report {
        let report = match &given {
            Ok(_) => Report::done(Vec::new()),
            Err(error) => Report::failed(error.failure()),
        };
        self.run().given = Some(given);
        report
    }

    /// The same for one that failed.
    pub(super) fn failed(&self, error: ActionError) -> Report {
        self.ended(Err(error))
    }
}
