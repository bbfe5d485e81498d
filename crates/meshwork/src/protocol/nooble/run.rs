//! Run: what becomes of one message, from its bytes to its report.

use std::borrow::Cow;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use meshwork_broker::nooble::{Answer, End, Failed, Failure, Finished, Over, Received};
use meshwork_broker::{Backoff, Error};
use meshwork_model::job::limits::MAX_LOST;
use meshwork_model::nooble::{Action, Ended, Traced, micros};
use meshwork_model::trace::TraceContext;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::answer::{self, Reply};
use super::client::AskedFor;
use super::context::{ActionContext, Expected};
use super::error::{ActionError, PROCESSING};
use super::guard::{PANICKED, reading, sound};
use super::handler::Given;
use super::request::{comes_from, fresh, new_id, span as span_id, task_of, traceparent};
use super::state::{InHand, Queue, State};
use crate::clock::host_micros;
use crate::runner::panic_text;
use crate::span::{self, Subject, dequeued};
use crate::worker::executor::CUT_OFF;
use crate::worker::meter::Outcome;

/// The longest error that is kept, in bytes, with the details of the failure: more belongs in a log.
const MAX_ERROR: usize = 16 * 1024;

/// A message that was read, and what it is told with when it ends.
struct Task<'a> {
    state: &'a State,
    in_hand: &'a InHand,
    action: Arc<Action>,
    /// The key of the record of what was asked for, of a callback.
    asked: Option<String>,
    /// The span of what was asked for.
    asker: Option<String>,
    /// When it began, by the host's clock and by one that does not jump.
    began: (u64, Instant),
}

/// Deals with a message. One that makes this panic is poison too: it would stay in hand, and do the same to the next
/// service.
pub(super) async fn run(state: &State, in_hand: &InHand, queue: &Queue) {
    if sound(deal(state, in_hand, queue)).await.is_none() {
        Box::pin(poison(state, in_hand, PANICKED)).await;
    }
}

async fn deal(state: &State, in_hand: &InHand, queue: &Queue) {
    let setup = &state.setup;
    let received = &in_hand.received;
    let names = setup.broker.names();
    if received.message.is_none() {
        let what = "it has no field `data`";
        return Box::pin(poison(state, in_hand, what)).await;
    }
    let read = reading(|| Action::read(received.bytes(), names.dialect(), fresh));
    let action = match read {
        Ok(action) => Arc::new(action),
        Err(error) => return Box::pin(poison(state, in_hand, &error)).await,
    };
    let (mut asked, mut record) = (None, None);
    if queue.callbacks {
        let id = action.correlation_id.as_deref().unwrap_or_default();
        let key = names.asked(setup.client.service(), &action.action_type, id);
        let Some(text) = Box::pin(asked_for(state, in_hand, &key)).await else {
            return;
        };
        record = text.and_then(|text| serde_json::from_str::<AskedFor>(&text).ok());
        record = record.map(|record| record.of(&action.action_id));
        asked = Some(key);
    }
    let task = Task {
        state,
        in_hand,
        asked,
        asker: record.as_ref().map(|record| span_id(&record.action_id)),
        began: (host_micros(), Instant::now()),
        action,
    };
    let action = Arc::clone(&task.action);
    let subject = Subject {
        job: &action.action_id,
        kind: &action.action_type,
        queue: received.source.queue(),
        task: action.task_id.as_deref(),
        ..Subject::default()
    };
    let trace = traceparent(&action);
    let trace = trace.and_then(|trace| TraceContext::parse(&trace, None).ok());
    // The message does not say how often it ran; a failure does.
    let (span, _) = subject.run(None, &setup.worker, trace);
    async {
        dequeued();
        task.run(record, queue).await;
    }
    .instrument(span)
    .await;
}

/// The record of what a callback answers. Where there is none, nobody asked for it, or it was told before: it is
/// dropped, unless the service wants it (`Some(None)`).
async fn asked_for(state: &State, in_hand: &InHand, key: &str) -> Option<Option<String>> {
    let broker = &state.setup.broker;
    let found = until(state, in_hand, "asked", || broker.asked(key));
    let found = found.await.ok()?;
    if found.is_none() {
        if state.setup.unasked {
            return Some(None);
        }
        tracing::info!(
            key,
            "dropped a callback that nobody waits for, or that was told before"
        );
        let worker = &state.setup.worker;
        let told = until(state, in_hand, "finish", || {
            broker.finish(worker, &in_hand.received, End::default())
        });
        let _ = told.await;
    }
    found.map(Some)
}

/// What is no action is a dead letter, and told to who asked, if it says who that is.
async fn poison(state: &State, in_hand: &InHand, what: &str) {
    let setup = &state.setup;
    let queue = in_hand.received.source.queue();
    tracing::warn!(queue, what, "a dead letter: it is no action");
    let error = ActionError::new("ValidationError", "INVALID_ACTION", what);
    let (names, service) = (setup.broker.names(), setup.client.service());
    let asks = answer::salvage(in_hand.received.bytes(), names.dialect());
    let reply = asks.and_then(|asks| answer::to(&asks, service, names, &Err(error), None));
    let (token, letter) = (new_id(), letter(what, &in_hand.received));
    let failure = Failure {
        error: &letter[..letter.floor_char_boundary(MAX_ERROR)],
        most_runs: 0,
        pause: Duration::ZERO,
        longest_pause: Duration::ZERO,
        token: &token,
    };
    let end = End {
        answer: reply.as_ref().map(answer_of),
        ..End::default()
    };
    let told = until(state, in_hand, "fail", || {
        setup
            .broker
            .fail(&setup.worker, &in_hand.received, failure, end)
    });
    // Whoever has it then says so.
    let _ = told.await;
}

/// What stands with a dead letter that is no action: why, and what came in the place of a message.
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

impl Task<'_> {
    // What happens seldom is boxed: each run would have room for it.
    async fn run(self, record: Option<AskedFor>, queue: &Queue) {
        let setup = &self.state.setup;
        let lost = self.in_hand.received.lost;
        if lost >= MAX_LOST {
            let message = format!("lost: {lost} services went away while they dealt with it");
            let error = ActionError::new("ProcessingError", "LOST", &message).permanent();
            return Box::pin(self.fail(error, true)).await;
        }
        let Some(handler) = queue.handlers.get(&self.action.action_type) else {
            let message = format!("No handler for {}", self.action.action_type);
            let error = ActionError::new(PROCESSING.0, PROCESSING.1, &message).permanent();
            return Box::pin(self.fail(error, false)).await;
        };
        let stop = CancellationToken::new();
        let action = Arc::clone(&self.action);
        let context = ActionContext::new(action, record, setup.client.clone(), stop.clone());
        // What reads the data for a function runs before its first step.
        let (data, expected) = (self.action.data.clone(), context.expected());
        let act = async move { handler.act(data, context).await };
        let given = self.execute(act, &stop).await;
        let outcome = match &given {
            None => Outcome::Lost,
            Some(Ok(_)) => Outcome::Finished,
            Some(Err(error)) => error.kind.into(),
        };
        let took = self.began.1.elapsed();
        let meter = &self.state.meter;
        meter.ended(&self.action.action_type, took, outcome);
        match given {
            None => self.lost(),
            Some(Ok(data)) => self.finish(&Ok(data), &expected).await,
            Some(Err(error)) => Box::pin(self.fail(error, false)).await,
        }
    }

    /// Runs the handler to its end, or to the end of its time. None if the message is not this service's any more.
    async fn execute(
        &self,
        act: impl Future<Output = Given>,
        stop: &CancellationToken,
    ) -> Option<Given> {
        let timeout = self.state.setup.config.timeout;
        let act = async {
            let ended = AssertUnwindSafe(act).catch_unwind().await;
            ended.unwrap_or_else(|panic| Err(ActionError::panicked(panic_text(&*panic))))
        };
        // It takes more than a step: who took the message need not wait for its answer.
        let goes_on = std::future::poll_fn(|_| {
            self.in_hand.begun.notify_one();
            Poll::<Infallible>::Pending
        });
        tokio::pin!(act);
        tokio::select! {
            biased;
            given = &mut act => return Some(given),
            never = goes_on => match never {},
            () = tokio::time::sleep(timeout) => {}
            () = self.in_hand.lost.cancelled() => {
                stop.cancel();
                let _ = tokio::time::timeout(CUT_OFF, act).await;
                return None;
            }
        }
        stop.cancel();
        if let Ok(given) = tokio::time::timeout(CUT_OFF, act).await {
            // What it has done just now, it has done.
            return Some(given);
        }
        Some(Err(ActionError::timeout(timeout)))
    }

    async fn finish(self, given: &Given, expected: &Expected) {
        let setup = &self.state.setup;
        let (names, service) = (setup.broker.names(), setup.client.service());
        let expects = expected.get();
        let expects = expects.filter(|_| !answer::is_call(&self.action));
        let in_place = expects.as_ref().is_some_and(|it| it.in_place);
        let reply = answer::to(&self.action, service, names, given, expects);
        let took = self.began.1.elapsed();
        let mut end = self.end(reply.as_ref());
        if in_place && reply.is_some() {
            // What the answer asks for is kept there.
            end.asked = None;
        }
        let told = until(self.state, self.in_hand, "finish", || {
            setup
                .broker
                .finish(&setup.worker, &self.in_hand.received, end)
        });
        match told.await {
            Ok(Finished::Stale) | Err(Untold::Lost) => return self.lost(),
            Err(Untold::Refused) => return,
            Ok(Finished::Unanswered) => self.unanswered(),
            Ok(Finished::Finished) => {}
        }
        self.state.over.add(self.over(took, Ended::Done, ""));
    }

    async fn fail(self, error: ActionError, bury: bool) {
        let setup = &self.state.setup;
        let (names, service) = (setup.broker.names(), setup.client.service());
        let is_call = answer::is_call(&self.action);
        let runs = if is_call { setup.call_runs } else { setup.runs };
        let reason = error.reason();
        let text = reason.whole(MAX_ERROR);
        let reply = answer::to(&self.action, service, names, &Err(error), None);
        let took = self.began.1.elapsed();
        let end = self.end(reply.as_ref());
        let token = new_id();
        let failure = Failure {
            // A caller is told, and decides; all else would be gone.
            error: if is_call && !bury { "" } else { &text },
            most_runs: if reason.kind.retryable() { runs } else { 0 },
            pause: setup.pause,
            longest_pause: setup.longest_pause,
            token: &token,
        };
        let said = until(self.state, self.in_hand, "fail", || {
            setup
                .broker
                .fail(&setup.worker, &self.in_hand.received, failure, end)
        });
        match said.await {
            Ok(Failed::Stale) | Err(Untold::Lost) => return self.lost(),
            // Another service takes it over.
            Err(Untold::Refused) => return reason.log(true),
            Ok(Failed::Again(runs)) => {
                span::attempt(runs);
                return reason.log(true);
            }
            Ok(Failed::Unanswered(runs)) => {
                self.unanswered();
                span::attempt(runs);
            }
            Ok(Failed::Failed(runs)) => span::attempt(runs),
        }
        reason.log(false);
        let over = self.over(took, Ended::Failed, &reason.message);
        self.state.over.add(over);
    }

    /// Another service runs it, and answers; or nobody does, since its queue was deleted. (What is handed back when
    /// this service stops is told there.)
    fn lost(&self) {
        if self.state.stop.is_cancelled() {
            return;
        }
        tracing::warn!(
            "not answered: it was taken over, was answered already, or its stream, list or group was deleted"
        );
    }

    fn unanswered(&self) {
        let list = &self.action.callback_queue_name;
        tracing::warn!(?list, "the answer went nowhere: the key is no list");
    }

    fn end<'a>(&'a self, reply: Option<&'a Reply>) -> End<'a> {
        End {
            answer: reply.map(answer_of),
            asked: self.asked.as_deref(),
        }
    }

    /// What is left to do when it is over.
    fn over(&self, took: Duration, how: Ended, error: &str) -> Over {
        let (action, setup) = (&*self.action, &self.state.setup);
        let parent = comes_from(action).map(|from| from.parent_id().to_owned());
        // A callback says nothing of it, as Nooble4's do not.
        let parent = parent.or_else(|| self.asker.clone());
        let told = Traced {
            task: task_of(action, setup.broker.names().dialect()).into(),
            action: (&action.action_id).into(),
            action_type: (&action.action_type).into(),
            span: span_id(&action.action_id).into(),
            parent: parent.unwrap_or_default().into(),
            from: said(&action.origin_service),
            service: setup.client.service().into(),
            correlation: said(&action.correlation_id),
            trace: said(&action.trace_id),
            asked: (&action.timestamp).into(),
            began: micros(self.began.0).into(),
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            how,
            error: error[..error.floor_char_boundary(MAX_ERROR)].into(),
        };
        Over::new(&self.in_hand.received, &told)
    }
}

/// A text that may be missing, as the trace has it.
fn said(of: &Option<String>) -> Cow<'_, str> {
    of.as_deref().unwrap_or_default().into()
}

fn answer_of(reply: &Reply) -> Answer<'_> {
    Answer {
        list: &reply.list,
        message: &reply.message,
        waits: reply.waits,
    }
}

/// Hands a message back; should that fail, this service looks for it, and others take it over when this one is gone. False
/// if it was not this service's any more, too.
pub(super) async fn release(state: &State, in_hand: &InHand) -> bool {
    let setup = &state.setup;
    let released = setup.broker.release(&setup.worker, &in_hand.received).await;
    released.unwrap_or_else(|error| {
        tracing::warn!(%error, "not handed back; it is looked for later");
        state.doubt(&in_hand.received.source);
        false
    })
}

/// Why something was not said.
enum Untold {
    /// The message is not this service's any more.
    Lost,
    /// The server refused it, and will again; the log says so.
    Refused,
}

/// Says something again and again while the server may hear it a little later and the message is this service's.
async fn until<T, F>(
    state: &State,
    in_hand: &InHand,
    what: &'static str,
    tell: impl Fn() -> F,
) -> Result<T, Untold>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut backoff = Backoff::new();
    loop {
        match tell().await {
            Ok(told) => {
                state.setup.broker.outages().succeeded("report");
                return Ok(told);
            }
            Err(error) if error.is_temporary() => {
                state.failed("report", "report", &error);
            }
            Err(error) => {
                let queue = in_hand.received.source.queue();
                tracing::error!(%error, queue, "{what}: given up; it is taken over later");
                state.doubt(&in_hand.received.source);
                return Err(Untold::Refused);
            }
        }
        tokio::select! {
            () = in_hand.lost.cancelled() => return Err(Untold::Lost),
            () = backoff.wait() => {}
        }
    }
}
