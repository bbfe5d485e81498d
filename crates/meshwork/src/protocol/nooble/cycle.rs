//! Cycles: an orchestrator calls services one after the other for one task, each step with its own correlation id. The
//! answers decide the next step. Redis stores requests and answers; after a restart the orchestrator's code runs again
//! from its beginning.

use std::time::Duration;

use meshwork_broker::nooble::{Kept, Room, Step, Stepped};
use meshwork_model::keys::nooble::service_of;
use meshwork_model::nooble::{Action, Data, InvalidData, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::client::{Client, given};
use super::request::{Ids, Request, fresh, new_id};
use super::{ANSWER_WAITS, Error, WAITS_FOR_CALLBACK};

/// The most steps of one cycle.
pub const MAX_STEPS: usize = 1_000;
/// Retention of steps after the last one, and the bounds of a cycle: all of it is in the server's memory.
const ROOM: Room = Room {
    stays: WAITS_FOR_CALLBACK,
    steps: MAX_STEPS,
    bytes: 16 * 1024 * 1024,
};

/// Several calls for one task. A step is identified by its name: a repeated step gets the stored answer, or waits for
/// the call in flight, also after a restart. A call is repeated only when no answer came in time, with the same ids,
/// so that its service recognizes it.
#[derive(Debug, Clone)]
pub struct Cycle {
    client: Client,
    key: String,
    ids: Ids,
    /// The span that the calls come from.
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
enum Reached {
    /// Its answer.
    End(Box<Response>),
    /// The request was sent this long ago.
    Asked(Box<Action>, Duration),
}

impl Cycle {
    /// The cycle of a task, for whose steps the service of `client` asks: the one that was begun under this task's id
    /// before, or a new one. A handler has one for its action: [`super::ActionContext::cycle`].
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

    /// A request of this task.
    ///
    /// # Errors
    /// If `data` is no object of JSON.
    pub fn request(
        &self,
        action_type: &str,
        data: &(impl Serialize + ?Sized),
    ) -> Result<Request, InvalidData> {
        let request = Request::new(action_type, data)?.ids(self.ids.clone());
        request.parent(self.parent.as_deref())
    }

    /// Runs a step: calls another service within the task, and returns its answer, good or bad. Later runs return the
    /// same answer. `wait` starts with the first request. After it the request is sent once more, unless this call
    /// sent the first one.
    ///
    /// # Errors
    /// As [`Client::call`]; and if the step sent another request before, or the cycle is full.
    pub async fn call(
        &self,
        step: &str,
        request: Request,
        wait: Duration,
    ) -> Result<Response, Error> {
        let asks = self.asks(step, request);
        asks.action.check(self.client.broker().names().dialect())?;
        let (mut again, mut asked_now) = (None, false);
        loop {
            let stepped = self.take(&asks, again).await?;
            asked_now |= matches!(stepped, Stepped::Asked | Stepped::Again { .. });
            let (action, since) = match self.reached(&asks, stepped)? {
                Reached::End(response) => return Ok(*response),
                Reached::Asked(action, since) => (*action, since),
            };
            let list = action.callback_queue_name.unwrap_or_default();
            let left = wait.saturating_sub(since);
            if let Some((answer, response)) = self.client.peek(&list, left).await? {
                return self.keep(&asks, (&list, &answer), response).await;
            }
            if asked_now {
                return Err(Error::NoAnswer {
                    action_type: action.action_type,
                    action_id: action.action_id,
                    waited: wait,
                });
            }
            again = Some(wait);
        }
    }

    /// The same, for an answer of a type.
    ///
    /// # Errors
    /// As [`Self::call`]; and if the action failed, or its answer is not of that type.
    pub async fn ask<Out: DeserializeOwned>(
        &self,
        step: &str,
        request: Request,
        wait: Duration,
    ) -> Result<Out, Error> {
        let action_type = request.action.action_type.clone();
        given(action_type, self.call(step, request, wait).await?)
    }

    /// Ends the task: its steps are kept for 1 h more, for duplicate messages.
    ///
    /// # Errors
    /// If the server does not take the call; then the steps have the usual retention.
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
        // A list of its own, so that the answer stands there whatever becomes of this process.
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

    fn step<'a>(&'a self, asks: &Asks<'a>) -> Step<'a> {
        Step {
            cycle: &self.key,
            name: asks.name,
        }
    }

    async fn take(&self, asks: &Asks<'_>, again: Option<Duration>) -> Result<Stepped, Error> {
        let sends = (asks.queue.as_str(), asks.message.as_str());
        let broker = self.client.broker();
        Ok(broker.step(self.step(asks), sends, again, ROOM).await?)
    }

    /// Reads what a step has come to.
    fn reached(&self, asks: &Asks<'_>, stepped: Stepped) -> Result<Reached, Error> {
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
            Stepped::Asked => Ok(Reached::Asked(
                Box::new(asks.action.clone()),
                Duration::ZERO,
            )),
            Stepped::Again { message } => {
                tracing::info!(step = asks.name, "no answer came in time; asked again");
                Ok(Reached::Asked(Box::new(was(&message)?), Duration::ZERO))
            }
            Stepped::Waits { message, since } => {
                Ok(Reached::Asked(Box::new(was(&message)?), since))
            }
            Stepped::Answered { message, answer } => {
                was(&message)?;
                Ok(Reached::End(Box::new(self.read(answer)?)))
            }
            Stepped::Full => Err(full(asks)),
        }
    }

    /// Reads an answer that was kept.
    fn read(&self, answer: String) -> Result<Response, Error> {
        let dialect = self.client.broker().names().dialect();
        let response = Response::read(answer.as_bytes(), dialect, fresh);
        // Only what could be read is kept.
        response.map_err(|_| {
            let verb = "step";
            meshwork_broker::Error::Answer { verb, answer }.into()
        })
    }

    /// Keeps an answer that has come, and gives the one that is kept.
    async fn keep(
        &self,
        asks: &Asks<'_>,
        came: (&str, &str),
        response: Response,
    ) -> Result<Response, Error> {
        let broker = self.client.broker();
        match broker.keep_answer(self.step(asks), came, ROOM).await? {
            Kept::Kept(kept) if kept == came.1 => Ok(response),
            Kept::Kept(kept) => self.read(kept),
            Kept::Full => Err(full(asks)),
            Kept::Gone => {
                let (cycle, step) = (&self.key, asks.name);
                tracing::warn!(
                    cycle,
                    step,
                    "the cycle was forgotten while it was gone through"
                );
                Ok(response)
            }
        }
    }
}

fn full(asks: &Asks<'_>) -> Error {
    Error::FullCycle {
        step: asks.name.to_owned(),
        steps: ROOM.steps,
        bytes: ROOM.bytes,
    }
}

/// The parts by which a step is compared: without ids and times.
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
