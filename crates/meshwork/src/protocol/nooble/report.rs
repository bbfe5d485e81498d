//! Report of an ended run: replies, failures and dead letters.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::Error;
use meshwork_broker::nooble::{
    self, AckCleanup, Answer, Completion, Failed as Outcome, Failure, Received,
};
use meshwork_model::job::limits::MAX_LOST;
use meshwork_model::nooble::{Action, ActionOutcome, TraceEvent, micros};
use meshwork_model::outcome::FailureKind;

use super::answer::{self, Reply};
use super::error::ActionError;
use super::guard::reading;
use super::message::Message;
use super::request::{comes_from, new_id, span as span_id, task_of};
use super::state::NoobleProtocol;
use meshwork_worker::Completed;
use meshwork_worker::{Failed, FailedRun};

/// Greatest length of a stored error, in bytes, with the details of the failure.
const MAX_ERROR: usize = 16 * 1024;

impl NoobleProtocol {
    /// Sends the reply of a successful action, and acknowledges its message.
    pub(super) async fn finish(
        &self,
        message: &Message,
        took: Duration,
    ) -> Result<Completed, Error> {
        let Some(action) = message.action() else {
            return Ok(Completed::Stale);
        };
        let made = reading(|| {
            let expected = message.run().expected.take();
            let expects = expected.and_then(|it| it.get());
            let expects = expects.filter(|_| !answer::is_call(action));
            let in_place = expects.as_ref().is_some_and(|it| it.in_place);
            if message.reply.get().is_none() {
                let given = message.run().given.take();
                let given = given.unwrap_or_else(|| Err(ActionError::panicked("no result")));
                let reply = self.reply(action, &given, expects);
                if in_place && reply.is_some() {
                    // The record of the requested callback has replaced it.
                    message.run().record = None;
                }
                let _ = message.reply.set(reply);
            }
            Ok::<_, String>(())
        });
        if let Err(error) = made {
            return Ok(match self.poison(message, &error).await? {
                Failed::Stale => Completed::Stale,
                _ => Completed::Stored,
            });
        }
        let record = message.run().record.clone();
        let end = end(message, record.as_deref());
        let outcome = self.broker.complete(&self.worker, &message.received, end);
        match self.refused(message, outcome.await)? {
            nooble::Completed::Stale => return Ok(Completed::Stale),
            nooble::Completed::Unanswered => unanswered(action),
            nooble::Completed::Finished => {}
        }
        self.over
            .add(self.ended(message, action, took, (ActionOutcome::Done, "")));
        Ok(Completed::Stored)
    }

    /// Reports a failed run.
    pub(super) async fn fails(
        &self,
        message: &Message,
        failed: &FailedRun<'_>,
    ) -> Result<Failed, Error> {
        let Some(action) = message.action() else {
            return self.poison(message, &failed.failure.message).await;
        };
        let error = self.error_of(message, failed);
        let is_call = answer::is_call(action);
        let runs = if is_call {
            self.max_call_attempts
        } else {
            self.runs
        };
        let buries = message.received.lost >= MAX_LOST;
        let reason = error.reason();
        let text = reason.whole(MAX_ERROR);
        let reply = || self.reply(action, &Err(error.clone()), None);
        message.reply.get_or_init(reply);
        let token = new_id();
        let failure = Failure {
            // A caller gets the error and decides; otherwise the error would be lost.
            error: if is_call && !buries { "" } else { &text },
            most_runs: if reason.kind.retryable() { runs } else { 0 },
            pause: self.pauses.0,
            longest_pause: self.pauses.1,
            token: &token,
        };
        let record = message.run().record.clone();
        let end = end(message, record.as_deref());
        let outcome = self
            .broker
            .fail(&self.worker, &message.received, failure, end);
        let runs = match self.refused(message, outcome.await)? {
            Outcome::Stale => return Ok(Failed::Stale),
            Outcome::Again(runs) => return Ok(Failed::Retried(runs)),
            Outcome::Unanswered(runs) => {
                unanswered(action);
                runs
            }
            Outcome::Failed(runs) => runs,
        };
        let how = (ActionOutcome::Failed, reason.message.as_str());
        self.over.add(self.ended(message, action, failed.took, how));
        Ok(Failed::Dead(runs))
    }

    /// Returns the error of a failed run for the other side.
    fn error_of(&self, message: &Message, failed: &FailedRun<'_>) -> ActionError {
        if let Some(Err(error)) = &message.run().given {
            return error.clone();
        }
        match failed.failure.kind {
            FailureKind::Timeout => ActionError::timeout(self.timeout),
            _ => ActionError::of_run(failed.reason),
        }
    }

    /// Makes a dead letter of an invalid message, and sends an error to its sender if that is known.
    async fn poison(&self, message: &Message, what: &str) -> Result<Failed, Error> {
        let received = &message.received;
        let queue = message.queue.name();
        tracing::warn!(
            queue,
            what,
            "message moved to the dead letters: not a valid action"
        );
        let dialect = self.broker.names().dialect();
        let reply = || {
            let error = ActionError::new("ValidationError", "INVALID_ACTION", what);
            let asks = answer::salvage(received.bytes(), dialect)?;
            self.reply(&asks, &Err(error), None)
        };
        message.reply.get_or_init(reply);
        let (token, letter) = (new_id(), letter(what, received));
        let failure = Failure {
            error: &letter[..letter.floor_char_boundary(MAX_ERROR)],
            most_runs: 0,
            pause: Duration::ZERO,
            longest_pause: Duration::ZERO,
            token: &token,
        };
        let end = end(message, None);
        let outcome = self.broker.fail(&self.worker, received, failure, end);
        Ok(match self.refused(message, outcome.await)? {
            Outcome::Stale => Failed::Stale,
            Outcome::Again(runs) => Failed::Retried(runs),
            Outcome::Failed(runs) | Outcome::Unanswered(runs) => Failed::Dead(runs),
        })
    }

    /// Handles a report that the server refuses permanently: the message stays with this service, which searches for it
    /// and takes it again.
    pub(super) fn refused<T>(
        &self,
        message: &Message,
        outcome: Result<T, Error>,
    ) -> Result<T, Error> {
        if outcome.as_ref().is_err_and(|error| !error.is_temporary()) {
            message.queue.doubt();
        }
        outcome
    }

    fn reply(
        &self,
        action: &Action,
        given: &super::handler::Given,
        expects: Option<super::context::Expects>,
    ) -> Option<Reply> {
        let (names, service) = (self.broker.names(), self.client.service());
        answer::to(action, service, names, given, expects)
    }

    /// Returns the cleanup of an ended action.
    fn ended(
        &self,
        message: &Message,
        action: &Arc<Action>,
        took: Duration,
        (how, error): (ActionOutcome, &str),
    ) -> AckCleanup {
        let run = message.run();
        let parent = comes_from(action).map(|from| from.parent_id().to_owned());
        // A callback does not name its parent, as in Nooble4.
        let parent = parent.or_else(|| run.asker.clone());
        let outcome = TraceEvent {
            task: task_of(action, self.broker.names().dialect()).into(),
            action: (&action.action_id).into(),
            action_type: (&action.action_type).into(),
            span: span_id(&action.action_id).into(),
            parent: parent.unwrap_or_default().into(),
            from: or_empty(&action.origin_service),
            service: self.client.service().into(),
            correlation: or_empty(&action.correlation_id),
            trace: or_empty(&action.trace_id),
            requested: (&action.timestamp).into(),
            began: micros(run.began).into(),
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            how,
            error: error[..error.floor_char_boundary(MAX_ERROR)].into(),
        };
        AckCleanup::new(&message.received, &outcome)
    }
}

fn unanswered(action: &Action) {
    let list = &action.callback_queue_name;
    tracing::warn!(?list, "reply dropped: the key of its list has another type");
}

fn end<'a>(message: &'a Message, record: Option<&'a str>) -> Completion<'a> {
    let reply = message.reply.get().and_then(Option::as_ref);
    let answer = reply.map(|reply| Answer {
        list: &reply.list,
        message: &reply.message,
        waits: reply.waits,
    });
    Completion {
        answer,
        pending_callback: record,
    }
}

/// Returns an optional text in the form of the trace.
fn or_empty(of: &Option<String>) -> Cow<'_, str> {
    of.as_deref().unwrap_or_default().into()
}

/// Returns the text of a dead letter for an invalid message: the reason and the message.
fn letter(what: &str, of: &Received) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let field = |(name, value): &(Vec<u8>, Vec<u8>)| format!("{}={}", text(name), text(value));
    match of.message {
        None if !of.others.is_empty() => {
            let others: Vec<_> = of.others.iter().map(field).collect();
            format!("{what}, but {}", others.join(", "))
        }
        _ => what.to_owned(),
    }
}
