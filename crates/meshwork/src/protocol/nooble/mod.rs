//! Services that call each other by actions (Nooble4), and their clients. In a [`Service`], [`jobs`] implements the
//! protocol for the engine, [`take`] claims messages, [`report`] reports results, [`answer`] builds replies, [`tidy`]
//! cleans up, and [`maintenance`] retries. A [`Cycle`] makes several calls for one task.

mod answer;
mod call;
mod client;
mod context;
mod cycle;
mod error;
mod guard;
mod handler;
mod jobs;
mod maintenance;
mod message;
mod queue;
mod replies;
mod report;
mod request;
mod script_calls;
mod state;
mod subscribe;
mod take;
mod tidy;

use meshwork_macros::boxed;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use meshwork_broker::nooble::{Nooble, Source};
use meshwork_model::job::Job;
use tokio::sync::watch;

pub(crate) use client::usual_names;
pub use client::{CallbackRequest, Client};
pub use context::ActionContext;
pub use cycle::{Cycle, MAX_STEPS};
pub use error::{ActionError, Error};
pub use handler::{ActionHandler, CallbackHandler};
use handler::{Deals, Handlers, add, add_unless_there, of_event};
pub use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
pub use meshwork_model::name::Namespace;
pub use meshwork_model::nooble::{Data, ErrorDetail};
use queue::Queue;
pub use request::{Ids, Request};
pub(crate) use script_calls::ScriptCalls;
use state::NoobleProtocol;
pub use subscribe::{MAX_UNREAD, Notice, Notification, Subscription};
use tidy::Ends;

use super::handlers::Entry;
pub use super::handlers::{HandlerError, UnknownScript};
use meshwork_worker::{Config, Engine, LogFolders};
pub use meshwork_worker::{MAX_CONCURRENCY, WorkerHandle as ServiceHandle};

/// Default number of attempts of an action without a waiting caller.
const RUNS: u32 = 3;
/// Default pause after the first failure, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(600));
/// TTL of a reply to a call: longer than any useful call.
const ANSWER_WAITS: Duration = Duration::from_secs(3_600);
/// TTL of a callback, and of the record of its request: longer than a weekend.
const WAITS_FOR_CALLBACK: Duration = Duration::from_secs(3 * 86_400);

/// Builder of a service.
pub struct Service {
    client: Client,
    handlers: Handlers,
    /// Queues of its actions.
    actions: Vec<Arc<Source>>,
    /// Queues of callbacks, with their handlers.
    callbacks: Vec<(Arc<Source>, Handlers)>,
    config: Config,
    runs: u32,
    max_call_attempts: u32,
    pauses: (Duration, Duration),
    adopt: Option<Duration>,
    accept_unsolicited: bool,
}

impl Service {
    /// Creates a service with the name of `client`, without handlers. It takes actions without a context.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        let mut service = Self::listener(client);
        service.take_from(None);
        service
    }

    /// Creates a part of the service that takes no actions, only callbacks, and messages for added contexts.
    #[must_use]
    pub fn listener(client: &Client) -> Self {
        Self {
            client: client.clone(),
            handlers: Handlers::default(),
            actions: Vec::new(),
            callbacks: Vec::new(),
            config: Config::default(),
            runs: RUNS,
            max_call_attempts: 1,
            pauses: PAUSES,
            adopt: None,
            accept_unsolicited: false,
        }
    }

    /// Handles actions of this type with a function.
    #[must_use]
    pub fn handle<H, Signature>(mut self, action_type: &str, handler: H) -> Self
    where
        H: ActionHandler<Signature>,
        Signature: 'static,
    {
        add(&mut self.handlers, action_type, handler);
        self
    }

    /// Handles actions of this type with a script: `.py`, `.rhai`, `.sh`, or with a `#!` line. Its input is the data of
    /// the action, and its result is the data of the reply, a JSON object.
    ///
    /// # Errors
    /// The file cannot be read, or no runtime runs such files.
    pub fn script(mut self, action_type: &str, path: &Path) -> Result<Self, HandlerError> {
        let script = Deals::Script(Arc::new(Entry::script(action_type, path)?));
        self.handlers.insert(action_type.to_owned(), script);
        Ok(self)
    }

    /// Handles callbacks of this event, which this service requested, with a function.
    #[must_use]
    pub fn on_callback<H, Signature>(mut self, event: &str, handler: H) -> Self
    where
        H: CallbackHandler<Signature>,
        Signature: 'static,
    {
        let handlers = of_event(event, handler);
        // In the lists dialect, callbacks may arrive in the list of actions.
        add_unless_there(&mut self.handlers, &handlers);
        self.listen(event, None, handlers)
    }

    /// Handles callbacks of this event with a script. Its input is the data of the callback, and the input `request` is
    /// the record of its request: a [`CallbackRequest`] as JSON. A failed request has the data
    /// `{"status": "failure", "error": {…}}`.
    ///
    /// # Errors
    /// As [`Self::script`].
    pub fn callback_script(mut self, event: &str, path: &Path) -> Result<Self, HandlerError> {
        let script = Deals::Script(Arc::new(Entry::script(event, path)?));
        let handlers = Handlers::from([(event.to_owned(), script)]);
        add_unless_there(&mut self.handlers, &handlers);
        Ok(self.listen(event, None, handlers))
    }

    /// Handles the callback of one call with a private list ([`Request::private_list`]), as Nooble4's clients do.
    #[must_use]
    pub fn on_callback_of<H, Signature>(self, event: &str, call: &str, handler: H) -> Self
    where
        H: CallbackHandler<Signature>,
        Signature: 'static,
    {
        self.listen(event, Some(call), of_event(event, handler))
    }

    fn listen(mut self, event: &str, call: Option<&str>, handlers: Handlers) -> Self {
        let broker: &Nooble = self.client.broker();
        let source = broker.callbacks(self.client.service(), event, call);
        // Events whose names differ in a dot share a list.
        match self.callbacks.iter_mut().find(|(it, _)| *it == source) {
            Some((_, of_list)) => of_list.extend(handlers),
            None => self.callbacks.push((source, handlers)),
        }
        self
    }

    /// Accepts callbacks without a record of their request, for example those that Nooble4's clients requested in the
    /// name of this service. Repeated callbacks are handled again. Default: dropped.
    #[must_use]
    pub fn accept_unsolicited(self) -> Self {
        Self {
            accept_unsolicited: true,
            ..self
        }
    }

    /// Also takes the actions of a context, for example of a tenant. All queues share the slots in turn.
    #[must_use]
    pub fn context(mut self, context: &str) -> Self {
        self.take_from(Some(context));
        self
    }

    /// Adds a queue, unless it is added already.
    fn take_from(&mut self, context: Option<&str>) {
        let broker: &Nooble = self.client.broker();
        let source = broker.actions(self.client.service(), context);
        if !self.actions.contains(&source) {
            self.actions.push(source);
        }
    }

    /// Sets the greatest number of actions that run at once. Default: 10, minimum: 1, maximum: 1,000.
    #[must_use]
    pub fn concurrency(mut self, actions: usize) -> Self {
        self.config.concurrency = actions;
        self
    }

    /// Sets the timeout of an action. Default: 5 min, minimum: 1 ms, maximum: 10 years.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.config.timeout = timeout;
        self
    }

    /// Sets the number of attempts of an action without a waiting caller. Default: 3.
    #[must_use]
    pub fn max_attempts(self, runs: u32) -> Self {
        Self { runs, ..self }
    }

    /// Sets the number of attempts of a call with a waiting caller. Default: 1, since the caller gets the error and may
    /// call again.
    #[must_use]
    pub fn max_call_attempts(self, runs: u32) -> Self {
        Self {
            max_call_attempts: runs,
            ..self
        }
    }

    /// Sets the pause before the first retry, which doubles with each retry, and its maximum. Default: 1 s, 10 min.
    #[must_use]
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        Self {
            pauses: (first, longest),
            ..self
        }
    }

    /// Sets the lease of an action. If the process dies, another service takes its messages after this time. Default:
    /// 10 s, minimum: 300 ms, maximum: 1 h.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.lease = lease;
        self
    }

    /// Sets the timeout of running actions at shutdown, before they are released. Default: 25 s, maximum: 10 years.
    #[must_use]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.config.shutdown_timeout = timeout;
        self
    }

    /// Takes messages that workers of Nooble4 have left pending in a stream longer than `age`. Default: off, since such
    /// workers do not show that they are alive, and leave failed actions pending after their reply.
    #[must_use]
    pub fn rescue_orphans_after(self, age: Option<Duration>) -> Self {
        Self { adopt: age, ..self }
    }

    /// Starts the service.
    ///
    /// # Errors
    /// A setting is outside of its limits ([`Error::Setting`]), or the system has no thread left.
    #[boxed]
    pub async fn start(self) -> Result<ServiceHandle, Error> {
        self.config.validate()?;
        let incarnation = format!("{}.{}", self.client.service(), request::new_id());
        let handlers = Arc::new(self.handlers);
        let of_actions = |source| Queue::new(source, false, Arc::clone(&handlers));
        let of_callbacks = |(source, handlers)| Queue::new(source, true, Arc::new(handlers));
        let queues = self.actions.into_iter().map(of_actions);
        let queues = queues.chain(self.callbacks.into_iter().map(of_callbacks));
        let queues: Vec<_> = queues.map(Arc::new).collect();
        let names = queues.iter().map(|queue| queue.name().to_owned()).collect();
        let protocol = NoobleProtocol {
            broker: self.client.broker().clone(),
            worker: Nooble::worker(&incarnation),
            client: self.client,
            queues,
            names: watch::Sender::new(Arc::new(names)),
            timeout: self.config.timeout,
            runs: self.runs,
            max_call_attempts: self.max_call_attempts,
            pauses: self.pauses,
            adopt: self.adopt,
            accept_unsolicited: self.accept_unsolicited,
            over: Arc::new(Ends::default()),
            no_job: Arc::new(Job::from_fields("", Vec::new())),
            leaves: AtomicBool::new(false),
        };
        let engine = Engine::new(protocol, self.config, LogFolders::default());
        Ok(meshwork_worker::start_engine(engine)?)
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}
