//! The verbs for actions of Nooble4, on streams and on lists: one file for each step in the life of an action.
//! Scripts do not parse actions; the caller does.

mod cleanup;
mod dead;
mod receive;
mod replies;
mod report;
mod saga_step;
mod send;
mod subscribe;
mod upkeep;

use meshwork_macros::boxed;
use std::ops::Deref;
use std::sync::Arc;

use meshwork_model::keys::nooble::{Dialect, NoobleKeys, QueueKeys};

pub use cleanup::AckCleanup;
pub use dead::{DeadAction, DeadActions, RetriedDead};
pub use receive::Received;
pub use report::{Answer, Completed, Completion, Failed, Failure};
pub use saga_step::{CycleLimits, SagaStep, StepResult, StoredReply};
pub use send::PendingCallback;
pub use upkeep::{MAX_WAIT, Reclaimed};

use crate::acl;
use crate::clock::Clock;
use crate::conn::{Conn, ConnectError, Target};
use crate::error::Error;
use crate::script::{Call, Scripts, Verb};
use crate::session::Session;

/// Prefix of the names of Meshwork's workers. Other consumers of a group are foreign.
const OURS: &str = "mw.";

/// The verbs for one deployment of Nooble4; cheap to clone.
#[derive(Debug, Clone)]
pub struct Nooble {
    session: Session<Arc<NoobleKeys>>,
}

impl Deref for Nooble {
    type Target = Session<Arc<NoobleKeys>>;

    fn deref(&self) -> &Session<Arc<NoobleKeys>> {
        &self.session
    }
}

/// Rights on a queue that a service lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingRights {
    /// Commands that it may not send for the queue.
    pub commands: Vec<&'static str>,
    /// True if it cannot receive messages at all.
    pub takes_nothing: bool,
}

/// A queue of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    keys: QueueKeys,
    /// Consumer group of a stream; `None` for a list.
    group: Option<String>,
}

impl Source {
    /// Returns the stream or the list.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.keys.queue
    }

    /// Returns its keys.
    #[must_use]
    pub fn keys(&self) -> &QueueKeys {
        &self.keys
    }

    fn group(&self) -> &str {
        self.group.as_deref().unwrap_or_default()
    }
}

impl Nooble {
    /// Connects to `target`.
    ///
    /// # Errors
    /// As for [`Conn::open`].
    #[boxed]
    pub async fn connect(target: &Target, names: NoobleKeys) -> Result<Self, ConnectError> {
        if target.acknowledge().is_some() {
            tracing::warn!("wait_replicas ignored: it applies to jobs, not to actions");
        }
        let conn = Conn::open(target, names.prefix()).await;
        Ok(Self::new(conn.map_err(ConnectError::of_prefix)?, names))
    }

    /// Returns the verbs over an open connection.
    #[must_use]
    pub fn new(conn: Conn, names: NoobleKeys) -> Self {
        let scripts = Scripts::default().named_nooble(&names);
        let session = Session::new(conn, Arc::new(names), scripts);
        Self { session }
    }

    /// Returns the same verbs over a separate connection.
    ///
    /// # Errors
    /// The connection cannot be opened.
    #[boxed]
    pub async fn dedicated(&self) -> Result<Self, Error> {
        let session = self.session.dedicated().await?;
        Ok(Self { session })
    }

    /// Sets another clock than the server's.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.session.clock = clock;
        self
    }

    /// Sets altered scripts.
    #[must_use]
    pub fn with_scripts(mut self, scripts: &Scripts) -> Self {
        self.session.scripts = scripts.named_nooble(&self.session.keys);
        self
    }

    /// Returns the keys.
    #[must_use]
    pub fn names(&self) -> &NoobleKeys {
        &self.keys
    }

    /// Returns the queue of a service's actions.
    #[must_use]
    pub fn actions(&self, service: &str, context: Option<&str>) -> Arc<Source> {
        let of_streams = self.keys.dialect() == Dialect::Streams;
        Arc::new(Source {
            keys: self.keys.action_keys(service, context),
            group: of_streams.then(|| NoobleKeys::group(service)),
        })
    }

    /// Returns the queue of an event's callbacks, or of those of one call: a list in either dialect.
    #[must_use]
    pub fn callbacks(&self, client: &str, event: &str, call: Option<&str>) -> Arc<Source> {
        Arc::new(Source {
            keys: self.keys.callback_keys(client, event, call),
            group: None,
        })
    }

    /// Checks that the server answers.
    ///
    /// # Errors
    /// The server does not answer.
    #[boxed]
    pub async fn ping(&self) -> Result<(), Error> {
        self.ask("ping", &redis::cmd("PING")).await
    }

    /// Returns the rights on a queue that a service lacks. None if the server cannot answer, as the embedded engine,
    /// which has no users.
    #[boxed]
    pub async fn missing_rights(&self, source: &Source) -> MissingRights {
        let rights = acl::of_service(&self.conn, source.queue(), source.group.is_some()).await;
        let (commands, takes_nothing) = rights.unwrap_or_default();
        MissingRights {
            commands,
            takes_nothing,
        }
    }

    /// Begins a call, with the time and whether the queue is a stream.
    fn call(&self, verb: Verb, source: &Source) -> Call<'_> {
        let call = self.scripts.call(verb).key(source.queue());
        call.arg(self.clock.argument()).arg(source.group())
    }
}

/// Returns an empty command with capacity for arguments of this total length.
fn room_for(bytes: usize) -> redis::Cmd {
    const USUAL: (usize, usize) = (16, 128);
    redis::Cmd::with_capacity(USUAL.0, USUAL.1 + bytes)
}
