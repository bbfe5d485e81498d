//! Context of an action's handler, with a client for further calls of the same task.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use meshwork_broker::nooble::PendingCallback;
use meshwork_model::nooble::{Action, InvalidData, Response};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::client::{CallbackRequest, Client};
use super::cycle::Cycle;
use super::request::{Ids, Request, known_by, traceparent};
use super::{Error, WAITS_FOR_CALLBACK};

/// Context of an action's handler. Actions that are sent through it belong to the same task and trace.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ActionContext {
    /// The action.
    pub action: Arc<Action>,
    /// In a callback: its request.
    pub callback_of: Option<CallbackRequest>,
    /// Cancelled at the timeout, and when the action does not belong to this service any more.
    pub stop: CancellationToken,
    client: Client,
    /// The callback that the reply requests.
    expects: Arc<Mutex<Option<Expects>>>,
}

/// Destination of the callback that a reply requests.
#[derive(Debug, Clone)]
pub(super) struct Expects {
    pub(super) list: String,
    pub(super) event: String,
    /// True if its record replaces that of the callback that is being answered.
    pub(super) in_place: bool,
}

/// The callback that a handler's reply requests.
#[derive(Debug)]
pub(super) struct Expected(Arc<Mutex<Option<Expects>>>);

impl Expected {
    /// Returns the callback, if any.
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
        callback_of: Option<CallbackRequest>,
        client: Client,
        stop: CancellationToken,
    ) -> Self {
        Self {
            action,
            callback_of,
            stop,
            client,
            expects: Arc::default(),
        }
    }

    /// Returns the client of this service.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Creates a request of the same task: with the ids of the action, and its span as parent.
    ///
    /// # Errors
    /// `data` is no JSON object.
    pub fn request(
        &self,
        action_type: &str,
        data: &(impl Serialize + ?Sized),
    ) -> Result<Request, InvalidData> {
        let request = Request::new(action_type, data)?.ids(Ids::of(&self.action));
        request.parent(traceparent(&self.action).as_deref())
    }

    /// Returns a cycle for several calls of this action's task. Their replies are stored, so another process can
    /// continue after a crash.
    #[must_use]
    pub fn cycle(&self) -> Cycle {
        let parent = traceparent(&self.action);
        let ids = Ids::of(&self.action);
        Cycle::named(&self.client, &self.action.action_id, ids, parent)
    }

    /// Sends an action of the same task. Returns its id.
    ///
    /// # Errors
    /// `data` is no JSON object, or the call to the server fails.
    pub async fn send(
        &self,
        action_type: &str,
        data: &(impl Serialize + ?Sized),
    ) -> Result<String, Error> {
        self.client.send(self.request(action_type, data)?).await
    }

    /// Calls another service within the same task, and waits for its reply.
    ///
    /// # Errors
    /// As [`Client::call`]; or `data` is no JSON object.
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

    /// Sends an action of the same task whose reply comes as a callback.
    ///
    /// # Errors
    /// As [`Client::send_with_callback`]; or `data` is no JSON object.
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

    /// Makes the reply request a callback `event` to this service, if the reply is itself a callback.
    ///
    /// # Errors
    /// The reply is a callback of this service to itself with the same name, or the call to the server fails.
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
        if let Some(request) = self.callback_of.clone().filter(|_| in_place) {
            asks = asks.instead_of(&self.action.action_id, request);
        }
        let (broker, record) = (self.client.broker(), asks.written()?);
        let pending = PendingCallback {
            key: &broker
                .names()
                .pending_callback(self.client.service(), event, id),
            record: &record,
            stays: WAITS_FOR_CALLBACK,
        };
        broker.store_pending_callback(pending).await?;
        let event = event.to_owned();
        let mut expects = self.expects.lock().unwrap_or_else(PoisonError::into_inner);
        *expects = Some(Expects {
            list,
            event,
            in_place,
        });
        Ok(())
    }

    /// Returns the callback that the reply requests.
    pub(super) fn expected(&self) -> Expected {
        Expected(Arc::clone(&self.expects))
    }
}
