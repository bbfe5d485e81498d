//! Client for actions: sends actions, waits for replies, requests callbacks, publishes notifications.

use meshwork_macros::boxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use meshwork_broker::conn::{Target, TlsFiles};
use meshwork_broker::nooble::{Nooble, PendingCallback};
use meshwork_model::keys::nooble::{Dialect, NoobleKeys, service_of};
use meshwork_model::name::Namespace;
use meshwork_model::nooble::{Action, Data, InvalidData, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::replies::{CallAnswer, Reader, Replies};
use super::request::{Request, new_id, now};
use super::subscribe::Subscription;
use super::{Error, WAITS_FOR_CALLBACK};
use meshwork_worker::LONGEST;
use meshwork_worker::span::Subject;

/// A client of one service; cheap to clone. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    broker: Nooble,
    service: Arc<str>,
    calls: Arc<Calls>,
}

struct Calls {
    replies: Arc<Replies>,
    /// Reader of replies, from the first call until the last clone is dropped.
    reader: OnceLock<Reader>,
}

/// The prefix `nooble4`, the environment that `ENVIRONMENT` says (else `dev`), and the dialect of streams.
pub(crate) fn usual_names() -> NoobleKeys {
    let environment = std::env::var("ENVIRONMENT").ok();
    NoobleKeys::new(
        Namespace::nooble(),
        environment.as_deref(),
        Dialect::default(),
    )
}

/// The request behind a callback. The store keeps it until the callback has come, so its handler gets the request, also
/// after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallbackRequest {
    /// Id of the request's message.
    pub action_id: String,
    /// Type of the requested action.
    pub action_type: String,
    /// Time of the request.
    pub timestamp: String,
    /// Data of the caller for the callback's handler.
    pub remembers: serde_json::Value,
    /// The record that this one replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Before>,
}

/// The earlier request, if a callback's answer expects a callback itself: both share one correlation id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Before {
    action_id: String,
    request: Box<CallbackRequest>,
}

impl CallbackRequest {
    /// Returns the request behind the callback of this id. If that callback's own run has replaced the record and did
    /// not end, it is the replaced request.
    pub(super) fn of(mut self, action_id: &str) -> Self {
        match self.before.take() {
            Some(before) if before.action_id == action_id => *before.request,
            _ => self,
        }
    }

    /// Returns the stored form.
    pub(super) fn written(&self) -> Result<String, InvalidData> {
        serde_json::to_string(self).map_err(InvalidData::Unwritable)
    }

    /// Replaces the request behind the callback of this id.
    pub(super) fn instead_of(self, action_id: &str, request: Self) -> Self {
        let before = Before {
            action_id: action_id.to_owned(),
            request: Box::new(request),
        };
        Self {
            before: Some(before),
            ..self
        }
    }
}

impl Client {
    /// Connects to the server at `url`, as the service of this name, with the prefix `nooble4`, the environment of the
    /// variable `ENVIRONMENT` (default `dev`), and the streams dialect.
    ///
    /// # Errors
    /// The URL is invalid, the server does not answer, or it is not suitable.
    #[boxed]
    pub async fn open(url: &str, service: &str) -> Result<Self, Error> {
        let target = Target::parse(url, TlsFiles::default())?;
        Self::connect(&target, usual_names(), service).await
    }

    /// Connects to `target` as the service of this name. `names` has the prefix, the environment and the dialect.
    ///
    /// # Errors
    /// The server does not answer, or is not suitable.
    #[boxed]
    pub async fn connect(target: &Target, names: NoobleKeys, service: &str) -> Result<Self, Error> {
        Ok(Self::new(Nooble::connect(target, names).await?, service))
    }

    /// Creates a client over a broker.
    #[must_use]
    pub fn new(broker: Nooble, service: &str) -> Self {
        let service: Arc<str> = service.into();
        Self {
            calls: Arc::new(Calls {
                replies: Arc::new(Replies::new(Arc::clone(&service))),
                reader: OnceLock::new(),
            }),
            service,
            broker,
        }
    }

    /// Returns the broker of this client.
    #[must_use]
    pub fn broker(&self) -> &Nooble {
        &self.broker
    }

    /// Returns the name of the service that sends.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Waits for a reply on a private list, and leaves it there. Returns `None` if none arrives in time.
    pub(super) async fn peek(
        &self,
        list: &str,
        wait: Duration,
    ) -> Result<Option<(String, Response)>, Error> {
        let wait = wait.min(LONGEST);
        self.calls.replies.peek(&self.broker, list, wait).await
    }

    fn names(&self) -> &NoobleKeys {
        self.broker.names()
    }

    /// Sends an action without a reply. Returns the message's id.
    ///
    /// # Errors
    /// No service could read the action ([`Action::check`]), or the call to the server fails.
    #[boxed]
    pub async fn send(&self, request: Request) -> Result<String, Error> {
        let Request {
            mut action,
            context,
            ..
        } = request;
        self.put(&mut action, context.as_deref(), None).await?;
        Ok(action.action_id)
    }

    async fn put(
        &self,
        action: &mut Action,
        context: Option<&str>,
        pending: Option<PendingCallback<'_>>,
    ) -> Result<(), Error> {
        self.sign(action)?;
        self.put_signed(action, context, pending).await
    }

    /// Adds the name of this service, if other services could read the action.
    fn sign(&self, action: &mut Action) -> Result<(), Error> {
        action.origin_service = Some(self.service.to_string());
        Ok(action.check(self.names().dialect())?)
    }

    async fn put_signed(
        &self,
        action: &Action,
        context: Option<&str>,
        pending: Option<PendingCallback<'_>>,
    ) -> Result<(), Error> {
        let names = self.names();
        let queue = names.actions(service_of(&action.action_type), context);
        let message = action.write(names.dialect());
        self.broker.send(&queue, &message, pending).await?;
        Subject {
            job: &action.action_id,
            kind: &action.action_type,
            queue: &queue,
            task: action.task_id.as_deref(),
            ..Subject::default()
        }
        .enqueued();
        Ok(())
    }

    /// Sends an action and waits for its reply, also if that is a failure. A later reply is dropped.
    ///
    /// # Errors
    /// As [`Self::send`]; no reply arrives in time, or it cannot be read; or a call with this correlation id is in
    /// flight.
    #[boxed]
    pub async fn call(&self, request: Request, wait: Duration) -> Result<Response, Error> {
        let Request {
            mut action,
            context,
            private_list,
        } = request;
        let wait = wait.min(LONGEST);
        let id = action.correlation_id.get_or_insert_with(new_id).clone();
        let (names, replies) = (self.names(), &self.calls.replies);
        let list = match private_list {
            true => names.response(&self.service, &action.action_type, &id, None),
            false => replies.list(names, &action.action_type),
        };
        action.callback_queue_name = Some(list.clone());
        self.sign(&mut action)?;
        let call = replies.begin(&self.broker, (&id, list), private_list)?;
        if !private_list {
            let reader = || Reader::start(self.broker.clone(), Arc::clone(replies));
            self.calls.reader.get_or_init(reader);
        }
        self.put_signed(&action, context.as_deref(), None).await?;
        if !private_list {
            replies.called();
        }
        // The rest of the action is dropped before the wait.
        let sent = Sent::of(action);
        let came = call.answer(wait).await?;
        answered(came, sent, wait)
    }

    /// Stops reading replies. Returns when the reply lists are deleted; a list on which a late reply may arrive expires
    /// within an hour. (Dropping the last clone does the same, if the runtime continues.) Calls in flight get no reply,
    /// and later calls are not sent: [`Error::Closed`].
    #[boxed]
    pub async fn close(&self) {
        self.calls.replies.close(&self.broker);
        if let Some(reader) = self.calls.reader.get() {
            reader.end().await;
        }
        self.calls.replies.ended().await;
    }

    /// Sends an action, waits for its reply, and decodes the data.
    ///
    /// # Errors
    /// As [`Self::call`]; the action failed; or the data does not fit the type.
    pub async fn ask<Out: DeserializeOwned>(
        &self,
        request: Request,
        wait: Duration,
    ) -> Result<Out, Error> {
        let action_type = request.action.action_type.clone();
        given(action_type, self.call(request, wait).await?)
    }

    /// Sends an action whose reply comes as an action of the type `event`. Any process of this service that handles
    /// `event` gets it ([`super::Service::on_callback`]), also after a restart, with the data `remembers`. Returns the
    /// correlation id.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_with_callback(
        &self,
        request: Request,
        event: &str,
        remembers: &(impl Serialize + ?Sized),
    ) -> Result<String, Error> {
        let Request {
            mut action,
            context,
            private_list,
        } = request;
        let id = action.correlation_id.get_or_insert_with(new_id).clone();
        let (list, request) = self.expects(&action, event, remembers, &id, private_list)?;
        let record = request.written()?;
        action.callback_queue_name = Some(list);
        action.callback_action_type = Some(event.to_owned());
        let pending = PendingCallback {
            key: &self.names().pending_callback(&self.service, event, &id),
            record: &record,
            stays: WAITS_FOR_CALLBACK,
        };
        self.put(&mut action, context.as_deref(), Some(pending))
            .await?;
        Ok(id)
    }

    /// Returns the list of a callback, and the record of its request.
    pub(super) fn expects(
        &self,
        action: &Action,
        event: &str,
        remembers: &(impl Serialize + ?Sized),
        id: &str,
        private_list: bool,
    ) -> Result<(String, CallbackRequest), Error> {
        let request = CallbackRequest {
            action_id: action.action_id.clone(),
            action_type: action.action_type.clone(),
            timestamp: now(),
            remembers: serde_json::to_value(remembers).map_err(InvalidData::Unwritable)?,
            before: None,
        };
        let names = self.names();
        let one = private_list.then_some(id);
        let context = one.filter(|_| names.dialect() == Dialect::Lists);
        let list = names.callback(&self.service, event, one, context);
        Ok((list, request))
    }

    /// Publishes a notification of this service to all current subscribers. Returns their number.
    ///
    /// # Errors
    /// As [`Self::send`].
    #[boxed]
    pub async fn notify(&self, event: &str, request: Request) -> Result<usize, Error> {
        let Request {
            mut action,
            context,
            ..
        } = request;
        action.origin_service = Some(self.service.to_string());
        let names = self.names();
        action.check(names.dialect())?;
        let channel = names.notifications(&self.service, event, context.as_deref());
        let message = action.write(names.dialect());
        Ok(self.broker.notify(&channel, &message).await?)
    }

    /// Subscribes to notifications of the service `origin` for these events, in a context if one is given.
    /// Notifications that are published after this returns are received. Their data is decoded as `T`.
    ///
    /// # Errors
    /// The server refuses the subscription.
    pub async fn subscribe<T: DeserializeOwned>(
        &self,
        origin: &str,
        events: &[&str],
        context: Option<&str>,
    ) -> Result<Subscription<T>, Error> {
        Ok(Subscription::start(&self.broker, origin, events, context).await?)
    }
}

/// Parts of a sent action, for errors.
struct Sent {
    action_type: String,
    action_id: String,
}

impl Sent {
    fn of(action: Action) -> Self {
        Self {
            action_type: action.action_type,
            action_id: action.action_id,
        }
    }
}

/// Returns the reply of a call, or the error if none arrived in time.
fn answered(came: Option<CallAnswer>, sent: Sent, waited: Duration) -> Result<Response, Error> {
    let Sent {
        action_type,
        action_id,
    } = sent;
    match came {
        Some(answer) => answer.map_err(|why| Error::Unreadable {
            action_type,
            action_id,
            why,
        }),
        None => Err(Error::NoAnswer {
            action_type,
            action_id,
            waited,
        }),
    }
}

/// Decodes the data of a reply.
pub(super) fn given<Out: DeserializeOwned>(
    action_type: String,
    response: Response,
) -> Result<Out, Error> {
    if let Some(error) = response.error {
        return Err(Error::Failed { action_type, error });
    }
    let data = response.data.unwrap_or_else(Data::empty);
    data.read().map_err(|source| Error::Answer {
        action_type,
        source,
    })
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}
