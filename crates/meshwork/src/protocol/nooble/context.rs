//! Context of an action's handler, which also makes calls with the action's ids.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use meshwork_broker::nooble::PendingCallback;
use meshwork_model::nooble::{Action, InvalidData, Response};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::client::{AskedFor, Client};
use super::cycle::Cycle;
use super::request::{Ids, Request, known_by, traceparent};
use super::{Error, WAITS_FOR_CALLBACK};

/// The action that a handler is called for. What is sent through it belongs to the same task and trace.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ActionContext {
    /// The action.
    pub action: Arc<Action>,
    /// In a callback: the request behind it.
    pub asked: Option<AskedFor>,
    /// Cancelled when the time is up, and when the action is this service's no more.
    pub stop: CancellationToken,
    client: Client,
    /// The callback that the answer asks for.
    expects: Arc<Mutex<Option<Expects>>>,
}

/// Destination of the answer's own callback.
#[derive(Debug, Clone)]
pub(super) struct Expects {
    pub(super) list: String,
    pub(super) event: String,
    /// True if its record replaces the one of the callback that it answers.
    pub(super) in_place: bool,
}

/// The callback that a handler's answer expects.
#[derive(Debug)]
pub(super) struct Expected(Arc<Mutex<Option<Expects>>>);

impl Expected {
    /// The callback, if any.
    pub(super) fn get(&self) -> Option<Expects> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl ActionContext {
    pub(super) fn new(
        action: Arc<Action>,
        asked: Option<AskedFor>,
        client: Client,
        stop: CancellationToken,
    ) -> Self {
        Self {
            action,
            asked,
            stop,
            client,
            expects: Arc::default(),
        }
    }

    /// The client of this service.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A request that belongs to the same task: with its ids, and the action's span as its parent.
    ///
    /// # Errors
    /// If `data` is no object of JSON.
    pub fn request(
        &self,
        action_type: &str,
        data: &(impl Serialize + ?Sized),
    ) -> Result<Request, InvalidData> {
        let request = Request::new(action_type, data)?.ids(Ids::of(&self.action));
        request.parent(traceparent(&self.action).as_deref())
    }

    /// Several calls of this action's task, whose answers are kept: should this process die, whoever is given the
    /// action next goes on where it was.
    #[must_use]
    pub fn cycle(&self) -> Cycle {
        let parent = traceparent(&self.action);
        let ids = Ids::of(&self.action);
        Cycle::named(&self.client, &self.action.action_id, ids, parent)
    }

    /// Sends an action of the same task. Gives its id.
    ///
    /// # Errors
    /// If `data` is no object, or the server does not take the action.
    pub async fn send(
        &self,
        action_type: &str,
        data: &(impl Serialize + ?Sized),
    ) -> Result<String, Error> {
        self.client.send(self.request(action_type, data)?).await
    }

    /// Calls another service within the same task, and waits for its answer.
    ///
    /// # Errors
    /// As [`Client::call`], or if `data` is no object.
    pub async fn call(
        &self,
        action_type: &str,
        data: &(impl Serialize + ?Sized),
        wait: Duration,
    ) -> Result<Response, Error> {
        self.client
            .call(self.request(action_type, data)?, wait)
            .await
    }

    /// Sends an action of the same task whose answer comes as a callback.
    ///
    /// # Errors
    /// As [`Client::send_with_callback`], or if `data` is no object.
    pub async fn send_with_callback(
        &self,
        action_type: &str,
        data: &(impl Serialize + ?Sized),
        event: &str,
        remembers: &(impl Serialize + ?Sized),
    ) -> Result<String, Error> {
        let request = self.request(action_type, data)?;
        self.client
            .send_with_callback(request, event, remembers)
            .await
    }

    /// Makes the answer, if it is a callback, expect a callback itself: its answer comes to this service as `event`.
    ///
    /// # Errors
    /// If the answer is the callback of a request by this service to itself, or the server does not store the record.
    pub async fn answer_expects(
        &self,
        event: &str,
        remembers: &(impl Serialize + ?Sized),
    ) -> Result<(), Error> {
        let id = known_by(&self.action);
        let (list, mut asks) = self
            .client
            .expects(&self.action, event, remembers, id, false)?;
        let (to, answer) = (
            &self.action.callback_queue_name,
            &self.action.callback_action_type,
        );
        if to.as_ref() == Some(&list) && answer.as_deref() == Some(event) {
            return Err(Error::ExpectsItself(event.to_owned()));
        }
        let in_place = event == self.action.action_type;
        if let Some(asked) = self.asked.clone().filter(|_| in_place) {
            asks = asks.instead_of(&self.action.action_id, asked);
        }
        let (broker, record) = (self.client.broker(), asks.written()?);
        let asked = PendingCallback {
            key: &broker
                .names()
                .pending_callback(self.client.service(), event, id),
            record: &record,
            stays: WAITS_FOR_CALLBACK,
        };
        broker.store_pending_callback(asked).await?;
        let event = event.to_owned();
        let mut expects = self.expects.lock().unwrap_or_else(PoisonError::into_inner);
        *expects = Some(Expects {
            list,
            event,
            in_place,
        });
        Ok(())
    }

    /// The callback that the answer expects.
    pub(super) fn expected(&self) -> Expected {
        Expected(Arc::clone(&self.expects))
    }
}
