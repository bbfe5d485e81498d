//! A client for actions: sends them, calls and waits for the answer, asks for callbacks, publishes notifications.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use meshwork_broker::conn::{Target, TlsFiles};
use meshwork_broker::nooble::{Nooble, PendingCallback};
use meshwork_model::keys::nooble::{Dialect, QueueManager, service_of};
use meshwork_model::name::Namespace;
use meshwork_model::nooble::{Action, Data, InvalidData, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::replies::{CallAnswer, Reader, Replies};
use super::request::{Request, new_id, now};
use super::subscribe::Subscription;
use super::{Error, WAITS_FOR_CALLBACK};
use crate::span::Subject;
use crate::worker::config::LONGEST;

/// A client of one service; cheap to clone, all clones share their connections.
#[derive(Clone)]
pub struct Client {
    broker: Nooble,
    service: Arc<str>,
    calls: Arc<Calls>,
}

struct Calls {
    replies: Arc<Replies>,
    /// Reads the answers from the first call on, until the last client is dropped.
    reader: OnceLock<Reader>,
}

/// The request behind a callback. Redis stores it until the callback has come, so that its handler knows the request,
/// also after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AskedFor {
    /// The id of the request's message.
    pub action_id: String,
    /// The type of the requested action.
    pub action_type: String,
    /// The time of the request.
    pub timestamp: String,
    /// Data of the caller's, returned with the callback.
    pub remembers: serde_json::Value,
    /// The record that this one replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Before>,
}

/// The request behind a callback whose answer expects a callback itself: both share one correlation id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Before {
    action_id: String,
    asked: Box<AskedFor>,
}

impl AskedFor {
    /// The request behind the callback of this id. If its own run has replaced the record and did not end, the request
    /// is the replaced one.
    pub(super) fn of(mut self, action_id: &str) -> Self {
        match self.before.take() {
            Some(before) if before.action_id == action_id => *before.asked,
            _ => self,
        }
    }

    /// The stored form.
    pub(super) fn written(&self) -> Result<String, InvalidData> {
        serde_json::to_string(self).map_err(InvalidData::Unwritable)
    }

    /// Replaces the request behind the callback of this id.
    pub(super) fn instead_of(self, action_id: &str, asked: Self) -> Self {
        let before = Before {
            action_id: action_id.to_owned(),
            asked: Box::new(asked),
        };
        Self {
            before: Some(before),
            ..self
        }
    }
}

impl Client {
    /// Connects to the server at `url`, as the service of this name, with the prefix `nooble4`, the environment
    /// that `ENVIRONMENT` says (else `dev`), and the dialect of streams.
    ///
    /// # Errors
    /// If the URL is wrong, nobody answers there, or the server is not fit.
    pub async fn open(url: &str, service: &str) -> Result<Self, Error> {
        let environment = std::env::var("ENVIRONMENT").ok();
        let names = QueueManager::new(
            Namespace::nooble(),
            environment.as_deref(),
            Dialect::default(),
        );
        Self::connect(&Target::parse(url, TlsFiles::default())?, names, service).await
    }

    /// Connects to `target` as the service of this name; `names` say the prefix, the environment and the dialect.
    ///
    /// # Errors
    /// If nobody answers there, or the server is not fit.
    pub async fn connect(
        target: &Target,
        names: QueueManager,
        service: &str,
    ) -> Result<Self, Error> {
        Ok(Self::new(Nooble::connect(target, names).await?, service))
    }

    /// A client over a broker.
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

    /// The broker of this client.
    #[must_use]
    pub fn broker(&self) -> &Nooble {
        &self.broker
    }

    /// The service in whose name it sends.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Waits for an answer on a list of one call, where it stays. None if none came in time.
    pub(super) async fn peek(
        &self,
        list: &str,
        wait: Duration,
    ) -> Result<Option<(String, Response)>, Error> {
        let wait = wait.min(LONGEST);
        self.calls.replies.peek(&self.broker, list, wait).await
    }

    fn names(&self) -> &QueueManager {
        self.broker.names()
    }

    /// Sends an action and waits for nothing. Gives the message's id.
    ///
    /// # Errors
    /// If no service could read it ([`Action::check`]), or the server does not take it.
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
        asked: Option<PendingCallback<'_>>,
    ) -> Result<(), Error> {
        self.sign(action)?;
        self.put_signed(action, context, asked).await
    }

    /// Makes it one of this service, if any other could read it.
    fn sign(&self, action: &mut Action) -> Result<(), Error> {
        action.origin_service = Some(self.service.to_string());
        Ok(action.check(self.names().dialect())?)
    }

    async fn put_signed(
        &self,
        action: &Action,
        context: Option<&str>,
        asked: Option<PendingCallback<'_>>,
    ) -> Result<(), Error> {
        let names = self.names();
        let queue = names.actions(service_of(&action.action_type), context);
        let message = action.write(names.dialect());
        self.broker.send(&queue, &message, asked).await?;
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

    /// Sends an action and waits for its answer, good or bad. An answer that comes later is dropped.
    ///
    /// # Errors
    /// As [`Self::send`]; if no answer comes in time, or what comes cannot be read; and if a call with this correlation id
    /// is under way.
    pub async fn call(&self, request: Request, wait: Duration) -> Result<Response, Error> {
        let Request {
            mut action,
            context,
            own_list,
        } = request;
        let wait = wait.min(LONGEST);
        let id = action.correlation_id.get_or_insert_with(new_id).clone();
        let (names, replies) = (self.names(), &self.calls.replies);
        let list = match own_list {
            true => names.response(&self.service, &action.action_type, &id, None),
            false => replies.list(names, &action.action_type),
        };
        action.callback_queue_name = Some(list.clone());
        self.sign(&mut action)?;
        let call = replies.begin(&self.broker, (&id, list), own_list)?;
        if !own_list {
            let reader = || Reader::start(self.broker.clone(), Arc::clone(replies));
            self.calls.reader.get_or_init(reader);
        }
        self.put_signed(&action, context.as_deref(), None).await?;
        if !own_list {
            replies.called();
        }
        // The rest of it is dropped before the answer comes, not after.
        let sent = Sent::of(action);
        let came = call.answer(wait).await?;
        answered(came, sent, wait)
    }

    /// Stops reading the answers to calls, and returns when nothing is left of it: where an answer may still come late,
    /// it ends within an hour. (That is done too when the last clone of a client is dropped, if the runtime goes on.)
    /// Calls under way then get no answer, and those that are made are not sent: [`Error::Closed`].
    pub async fn close(&self) {
        self.calls.replies.close(&self.broker);
        if let Some(reader) = self.calls.reader.get() {
            reader.end().await;
        }
        self.calls.replies.ended().await;
    }

    /// The same, for an answer of a type.
    ///
    /// # Errors
    /// As [`Self::call`]; and if the action failed, or its answer is not of that type.
    pub async fn ask<Out: DeserializeOwned>(
        &self,
        request: Request,
        wait: Duration,
    ) -> Result<Out, Error> {
        let action_type = request.action.action_type.clone();
        given(action_type, self.call(request, wait).await?)
    }

    /// Sends an action whose answer comes as an action of the type `event`, to whichever process of this service
    /// listens for that ([`super::Service::on_callback`]), also after a restart. What is to be known again then goes
    /// with it. Gives the correlation id.
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
            own_list,
        } = request;
        let id = action.correlation_id.get_or_insert_with(new_id).clone();
        let (list, asked) = self.expects(&action, event, remembers, &id, own_list)?;
        let record = asked.written()?;
        action.callback_queue_name = Some(list);
        action.callback_action_type = Some(event.to_owned());
        let asked = PendingCallback {
            key: &self.names().pending_callback(&self.service, event, &id),
            record: &record,
            stays: WAITS_FOR_CALLBACK,
        };
        self.put(&mut action, context.as_deref(), Some(asked))
            .await?;
        Ok(id)
    }

    /// The list of a callback, and the record of its request.
    pub(super) fn expects(
        &self,
        action: &Action,
        event: &str,
        remembers: &(impl Serialize + ?Sized),
        id: &str,
        own_list: bool,
    ) -> Result<(String, AskedFor), Error> {
        let asked = AskedFor {
            action_id: action.action_id.clone(),
            action_type: action.action_type.clone(),
            timestamp: now(),
            remembers: serde_json::to_value(remembers).map_err(InvalidData::Unwritable)?,
            before: None,
        };
        let names = self.names();
        let one = own_list.then_some(id);
        let context = one.filter(|_| names.dialect() == Dialect::Lists);
        let list = names.callback(&self.service, event, one, context);
        Ok((list, asked))
    }

    /// Publishes a notification of this service: whoever listens at the moment hears it. Gives how many did.
    ///
    /// # Errors
    /// As [`Self::send`].
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

    /// Listens to what the service `origin` announces of these events, in a context if one is given: what is
    /// published from when it returns. `T` is what their data is read as.
    ///
    /// # Errors
    /// If the server does not let us listen.
    pub async fn subscribe<T: DeserializeOwned>(
        &self,
        origin: &str,
        events: &[&str],
        context: Option<&str>,
    ) -> Result<Subscription<T>, Error> {
        Ok(Subscription::start(&self.broker, origin, events, context).await?)
    }
}

/// The facts of a sent action, for its errors.
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

/// The answer of a call, or the error if none came in time.
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

/// The data of an answer, as a type of the caller's.
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
