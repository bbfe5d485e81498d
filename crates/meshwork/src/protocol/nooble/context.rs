//! What a handler knows of the action that it is called for, and how it calls on without forgetting an id.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use meshwork_broker::nooble::Asked;
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
    /// What was asked for, of a callback.
    pub asked: Option<AskedFor>,
    /// Cancelled when the time is up, and when the action is this service's no more.
    pub stop: CancellationToken,
    client: Client,
    /// The callback that the answer asks for.
    expects: Arc<Mutex<Option<Expects>>>,
}

/// Where the answer's own callback goes.
#[derive(Debug, Clone)]
pub(super) struct Expects {
    pub(super) list: String,
    pub(super) event: String,
    /// Whether its record stands where that of the callback stood which it is the answer to.
    pub(super) in_place: bool,
}

/// Where a handler says which callback its answer asks for.
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

    /// Lets the answer, if it is a callback, ask for a callback itself: what it is answered with comes to this
    /// service as `event`.
    ///
    /// # Errors
    /// If the answer is that callback itself, which a service asked itself for; or the server does not keep what was asked
    /// for.
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
        let asked = Asked {
            key: &broker.names().asked(self.client.service(), event, id),
            record: &record,
            stays: WAITS_FOR_CALLBACK,
        };
        broker.keep_asked(asked).await?;
        let event = event.to_owned();
        let mut expects = self.expects.lock().unwrap_or_else(PoisonError::into_inner);
        *expects = Some(Expects {
            list,
            event,
            in_place,
        });
        Ok(())
    }

    /// Where the callback stands that the answer asks for.
    pub(super) fn expected(&self) -> Expected {
        Expected(Arc::clone(&self.expects))
    }
}
