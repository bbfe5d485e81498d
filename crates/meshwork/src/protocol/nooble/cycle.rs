//! Cycles: several calls of an orchestrator for one task, each step with its own correlation id. The store has requests
//! and replies, so the orchestrator's code can run again from its beginning after a crash.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_broker::nooble::{CycleLimits, SagaStep, StepResult, StoredReply};
use meshwork_model::keys::nooble::service_of;
use meshwork_model::nooble::{Action, Data, InvalidData, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::client::{Client, given};
use super::request::{Ids, Request, fresh, new_id};
use super::{ANSWER_WAITS, Error, WAITS_FOR_CALLBACK};

/// Greatest number of steps of one cycle.
pub const MAX_STEPS: usize = 1_000;
/// Limits of a cycle, which is in the server's memory.
const LIMITS: CycleLimits = CycleLimits {
    stays: WAITS_FOR_CALLBACK,
    steps: MAX_STEPS,
    bytes: 16 * 1024 * 1024,
};

/// Several calls for one task. The name of a step identifies it: a repeated step gets the stored reply, or waits for
/// the call in flight, also after a restart. A call without a reply in time is repeated with the same ids, so that its
/// service can detect the repetition.
#[derive(Debug, Clone)]
pub struct Cycle {
    client: Client,
    key: String,
    ids: Ids,
    /// The span that is the parent of the calls.
    parent: Option<String>,
}

/// Request of a step.
struct Asks<'a> {
    name: &'a str,
    action: Action,
    queue: String,
    message: String,
}

/// State of a step.
enum StepState {
    /// The reply is stored.
    End(Box<Response>),
    /// The request was sent this long ago, and no reply is stored.
    Pending(Box<Action>, Duration),
}

impl Cycle {
    /// Continues the cycle of the task `ids.task_id`, or begins one. The service of `client` is the sender of its calls.
    /// In a handler, use [`super::ActionContext::cycle`].
    #[must_use]
    pub fn new(client: &Client, ids: Ids) -> Self {
        let id = ids.task_id.clone();
        Self::named(client, &id, ids, None)
    }

    pub(super) fn named(client: &Client, id: &str, ids: Ids, parent: Option<String>) -> Self {
        let key = client.broker().names().cycle(client.service(), id);
        Self {
            client: client.clone(),
            key,
            ids,
            parent,
        }
    }

    /// Creates a request of this task.
    ///
    /// # Errors
    /// `data` is no JSON object.
    pub fn request(
        &self,
        action_type: &str,
        data: &(impl Serialize + ?Sized),
    ) -> Result<Request, InvalidData> {
        let request = Request::new(action_type, data)?.ids(self.ids.clone());
        request.parent(self.parent.as_deref())
    }

    /// Runs a step: calls a service and returns its reply, also if that is a failure. Later runs return the same reply.
    /// `wait` begins when the request is first sent. If it ends without a reply, this call fails; a later run sends the
    /// request once more.
    ///
    /// # Errors
    /// As [`Client::call`]; the step sent another request before; or the cycle is full.
    #[boxed]
    pub async fn call(
        &self,
        step: &str,
        request: Request,
        wait: Duration,
    ) -> Result<Response, Error> {
        let asks = self.asks(step, request);
        asks.action.check(self.client.broker().names().dialect())?;
        let (mut again, mut sent_now) = (None, false);
        loop {
            let stepped = self.take(&asks, again).await?;
            sent_now |= matches!(stepped, StepResult::Sent | StepResult::SentAgain { .. });
            let (action, since) = match self.reached(&asks, stepped)? {
                StepState::End(response) => return Ok(*response),
                StepState::Pending(action, since) => (*action, since),
            };
            // The stored message may have been changed.
            let names = self.client.broker().names();
            let list = action.callback_queue_name.filter(|list| names.owns(list));
            let list = list.unwrap_or_default();
            let left = wait.saturating_sub(since);
            if let Some((answer, response)) = self.client.peek(&list, left).await? {
                return self.keep(&asks, (&list, &answer), response).await;
            }
            if sent_now {
                return Err(Error::NoAnswer {
                    action_type: action.action_type,
                    action_id: action.action_id,
                    waited: wait,
                });
            }
            again = Some(wait);
        }
    }

    /// Runs a step as [`Self::call`] does, and decodes the data of the reply.
    ///
    /// # Errors
    /// As [`Self::call`]; the action failed; or the data does not fit the type.
    pub async fn ask<Out: DeserializeOwned>(
        &self,
        step: &str,
        request: Request,
        wait: Duration,
    ) -> Result<Out, Error> {
        let action_type = request.action.action_type.clone();
        given(action_type, self.call(step, request, wait).await?)
    }

    /// Ends the cycle. Its steps are kept for 1 h, since a message may arrive twice.
    ///
    /// # Errors
    /// The server refuses the call. The steps are then kept as long as those of an open cycle.
    #[boxed]
    pub async fn end(self) -> Result<(), Error> {
        let broker = self.client.broker();
        Ok(broker.end_cycle(&self.key, ANSWER_WAITS).await?)
    }

    fn asks<'a>(&self, name: &'a str, request: Request) -> Asks<'a> {
        let Request {
            mut action,
            context,
            ..
        } = request.ids(self.ids.clone());
        let (names, service) = (self.client.broker().names(), self.client.service());
        let id = action.correlation_id.get_or_insert_with(new_id).clone();
        // A private list, in which the reply stays if this process dies.
        let list = names.response(service, &action.action_type, &id, None);
        action.callback_queue_name = Some(list);
        action.origin_service = Some(service.to_owned());
        Asks {
            name,
            queue: names.actions(service_of(&action.action_type), context.as_deref()),
            message: action.write(names.dialect()),
            action,
        }
    }

    fn step<'a>(&'a self, asks: &Asks<'a>) -> SagaStep<'a> {
        SagaStep {
            cycle: &self.key,
            name: asks.name,
        }
    }

    async fn take(&self, asks: &Asks<'_>, again: Option<Duration>) -> Result<StepResult, Error> {
        let sends = (asks.queue.as_str(), asks.message.as_str());
        let broker = self.client.broker();
        Ok(broker
            .saga_step(self.step(asks), sends, again, LIMITS)
            .await?)
    }

    /// Returns the state of a step. Fails if it sent another request before.
    fn reached(&self, asks: &Asks<'_>, stepped: StepResult) -> Result<StepState, Error> {
        let dialect = self.client.broker().names().dialect();
        let read = |message: &str| Action::read(message.as_bytes(), dialect, fresh).ok();
        let was = |message: &str| {
            let (was, is) = (read(message), read(&asks.message));
            let same = was.as_ref().map(essence) == is.as_ref().map(essence);
            was.filter(|_| same).ok_or_else(|| Error::OtherStep {
                step: asks.name.to_owned(),
                was: read(message).map_or_else(String::new, |was| was.action_type),
            })
        };
        match stepped {
            StepResult::Sent => Ok(StepState::Pending(
                Box::new(asks.action.clone()),
                Duration::ZERO,
            )),
            StepResult::SentAgain { message } => {
                tracing::info!(step = asks.name, "step sent again: no reply in time");
                Ok(StepState::Pending(Box::new(was(&message)?), Duration::ZERO))
            }
            StepResult::Pending { message, since } => {
                Ok(StepState::Pending(Box::new(was(&message)?), since))
            }
            StepResult::Answered { message, answer } => {
                was(&message)?;
                Ok(StepState::End(Box::new(self.read(answer)?)))
            }
            StepResult::Full => Err(full(asks)),
        }
    }

    /// Decodes a stored reply.
    fn read(&self, answer: String) -> Result<Response, Error> {
        let dialect = self.client.broker().names().dialect();
        let response = Response::read(answer.as_bytes(), dialect, fresh);
        // Only replies that can be read are stored.
        response.map_err(|_| {
            let verb = "step";
            meshwork_broker::Error::Answer { verb, answer }.into()
        })
    }

    /// Stores a reply. Returns the stored one, which may be an earlier reply.
    async fn keep(
        &self,
        asks: &Asks<'_>,
        came: (&str, &str),
        response: Response,
    ) -> Result<Response, Error> {
        let broker = self.client.broker();
        match broker.store_reply(self.step(asks), came, LIMITS).await? {
            StoredReply::Stored(kept) if kept == came.1 => Ok(response),
            StoredReply::Stored(kept) => self.read(kept),
            StoredReply::Full => Err(full(asks)),
            StoredReply::Gone => {
                let (cycle, step) = (&self.key, asks.name);
                tracing::warn!(
                    cycle,
                    step,
                    "reply not stored: the record of the cycle has expired"
                );
                Ok(response)
            }
        }
    }
}

fn full(asks: &Asks<'_>) -> Error {
    Error::FullCycle {
        step: asks.name.to_owned(),
        steps: LIMITS.steps,
        bytes: LIMITS.bytes,
    }
}

/// Returns the parts of an action that must not change between two runs of a step: all except ids and times.
fn essence(action: &Action) -> (&str, &Data, [Option<&Data>; 3]) {
    let configs = [
        &action.execution_config,
        &action.query_config,
        &action.rag_config,
    ];
    (
        &action.action_type,
        &action.data,
        configs.map(Option::as_ref),
    )
}
