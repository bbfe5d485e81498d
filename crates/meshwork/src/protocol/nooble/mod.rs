//! Services that call each other by actions (Nooble4, seed 1), and their clients. Of a [`Service`], [`pull`] takes
//! messages, [`run`] deals with them, [`answer`] says what of, [`tidy`] does what is left, and [`keep`] keeps them. A
//! [`Cycle`] is several calls for one task.

mod answer;
mod client;
mod context;
mod cycle;
mod error;
mod guard;
mod handle;
mod handler;
mod keep;
mod pull;
mod replies;
mod request;
mod run;
mod state;
mod subscribe;
mod tidy;
mod waits;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::nooble::{Nooble, Source};

pub use client::{AskedFor, Client};
pub use context::ActionContext;
pub use cycle::{Cycle, MAX_STEPS};
pub use error::{ActionError, Error};
pub use handle::ServiceHandle;
pub use handler::{ActionHandler, CallbackHandler};
use handler::{Handlers, Registry, of_event};
pub use request::{Ids, Request};
use state::{Queue, Setup, State};
pub use subscribe::{MAX_UNREAD, Notice, Notification, Subscription};

pub use super::handlers::{HandlerError, UnknownScript};
use crate::worker::MIN_LEASE;

/// Actions that run at once, unless it is said.
const CONCURRENCY: usize = 10;
/// The most.
pub const MAX_CONCURRENCY: usize = 1000;
/// How long a run may take, unless it is said: beyond, Nooble4's standard asks for callbacks; and these take longer.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The longest time that is waited for anything: ten years, which clocks can still add to now.
const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);
/// How many runs an action gets that nobody waits for, unless it is said.
const RUNS: u32 = 3;
/// The pause after the first failure, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(600));
/// How long a message is a service's without a renewal.
const LEASE: Duration = Duration::from_secs(10);
/// How long a service that stops waits for what it runs.
const GRACE: Duration = Duration::from_secs(30);
/// How long an answer waits for its caller: the longest call that makes sense is shorter.
const ANSWER_WAITS: Duration = Duration::from_secs(3_600);
/// How long a callback waits for who takes it, and how long one is waited for: over a weekend.
const WAITS_FOR_CALLBACK: Duration = Duration::from_secs(3 * 86_400);

/// A service, to be started.
pub struct Service {
    client: Client,
    registry: Registry,
    /// Where its actions come from.
    actions: Vec<Arc<Source>>,
    /// Where callbacks come from, and what deals with them.
    callbacks: Vec<(Arc<Source>, Handlers)>,
    concurrency: usize,
    timeout: Duration,
    runs: u32,
    call_runs: u32,
    pauses: (Duration, Duration),
    lease: Duration,
    grace: Duration,
    adopt: Option<Duration>,
    unasked: bool,
}

impl Service {
    /// The service that `client` is a client of, without handlers. It takes the actions that go to no context.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        let mut service = Self::listener(client);
        service.take_from(None);
        service
    }

    /// A part of that service that takes no actions: callbacks, and what goes to contexts, as far as it is told so.
    #[must_use]
    pub fn listener(client: &Client) -> Self {
        Self {
            client: client.clone(),
            registry: Registry::default(),
            actions: Vec::new(),
            callbacks: Vec::new(),
            concurrency: CONCURRENCY,
            timeout: TIMEOUT,
            runs: RUNS,
            call_runs: 1,
            pauses: PAUSES,
            lease: LEASE,
            grace: GRACE,
            adopt: None,
            unasked: false,
        }
    }

    /// Deals with actions of this type by a function.
    #[must_use]
    pub fn handle<H, Signature>(mut self, action_type: &str, handler: H) -> Self
    where
        H: ActionHandler<Signature>,
        Signature: 'static,
    {
        self.registry.add(action_type, handler);
        self
    }

    /// Deals with actions of this type by a script, whose file says by its ending what runs it: `.py`, `.rhai`. It
    /// finds the data where scripts find their input; its result is the answer's data, an object.
    ///
    /// # Errors
    /// If the file cannot be read, or nothing runs such files.
    pub fn script(mut self, action_type: &str, path: &Path) -> Result<Self, HandlerError> {
        self.registry.add_script(action_type, path)?;
        Ok(self)
    }

    /// Deals with callbacks of this event, which this service asked for, by a function.
    #[must_use]
    pub fn on_callback<H, Signature>(mut self, event: &str, handler: H) -> Self
    where
        H: CallbackHandler<Signature>,
        Signature: 'static,
    {
        let handlers = of_event(event, handler);
        // In the lists dialect a service may take its callbacks among its actions.
        self.registry.add_unless_there(&handlers);
        self.listen(event, None, handlers)
    }

    /// The same for the callback of one call, which was asked for with a list of its own
    /// ([`Request::own_list`]), as Nooble4's clients do.
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

    /// Deals with callbacks too that have no record of what was asked for, as those that clients of Nooble4 asked for
    /// in this service's name; one that comes twice is dealt with twice. Without, they are dropped.
    #[must_use]
    pub fn unasked(self) -> Self {
        Self {
            unasked: true,
            ..self
        }
    }

    /// Takes the actions of this context too, as of a tenant. All queues get slots in turn.
    #[must_use]
    pub fn context(mut self, context: &str) -> Self {
        self.take_from(Some(context));
        self
    }

    /// Takes from this queue too, once.
    fn take_from(&mut self, context: Option<&str>) {
        let broker: &Nooble = self.client.broker();
        let source = broker.actions(self.client.service(), context);
        if !self.actions.contains(&source) {
            self.actions.push(source);
        }
    }

    /// Deals with so many at once, at least 1 and at most [`MAX_CONCURRENCY`].
    #[must_use]
    pub fn concurrency(self, actions: usize) -> Self {
        Self {
            concurrency: actions.clamp(1, MAX_CONCURRENCY),
            ..self
        }
    }

    /// A run may take so long, ten years at most (default 5 min).
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self {
            timeout: timeout.min(LONGEST),
            ..self
        }
    }

    /// An action that nobody waits for gets so many runs (default 3).
    #[must_use]
    pub fn runs(self, runs: u32) -> Self {
        Self { runs, ..self }
    }

    /// A call whose caller waits gets so many runs (default 1: the caller is told, and may call again).
    #[must_use]
    pub fn call_runs(self, runs: u32) -> Self {
        Self {
            call_runs: runs,
            ..self
        }
    }

    /// Between two runs lies `first`, twice as long after each, and `longest` at most.
    #[must_use]
    pub fn pauses(self, first: Duration, longest: Duration) -> Self {
        Self {
            pauses: (first, longest),
            ..self
        }
    }

    /// A message is this service's for so long without a renewal (default 10 s, at least 0.3 s): as late it is taken over
    /// when the process is killed.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self {
            lease: lease.max(MIN_LEASE),
            ..self
        }
    }

    /// When it is stopped it waits so long for what it runs.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Takes over what workers of Nooble4 left in a stream for so long. Off unless it is said: these do not say that
    /// they are alive, and have answered what failed.
    #[must_use]
    pub fn adopt(self, age: Option<Duration>) -> Self {
        Self { adopt: age, ..self }
    }

    /// Starts it.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub async fn start(self) -> Result<ServiceHandle, Error> {
        let incarnation = format!("{}.{}", self.client.service(), request::new_id());
        let handlers = Arc::new(self.registry.ready(self.timeout));
        let of_actions = |source| Queue::new(source, false, Arc::clone(&handlers));
        let of_callbacks = |(source, handlers)| Queue::new(source, true, Arc::new(handlers));
        let queues = self.actions.into_iter().map(of_actions);
        let queues = queues.chain(self.callbacks.into_iter().map(of_callbacks));
        let setup = Setup {
            broker: self.client.broker().clone(),
            worker: Nooble::worker(&incarnation),
            client: self.client,
            queues: queues.map(Arc::new).collect(),
            concurrency: self.concurrency,
            timeout: self.timeout,
            runs: self.runs,
            call_runs: self.call_runs,
            pause: self.pauses.0,
            longest_pause: self.pauses.1,
            lease: self.lease,
            grace: self.grace,
            adopt: self.adopt,
            unasked: self.unasked,
        };
        handle::start(Arc::new(State::new(setup)))
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}
