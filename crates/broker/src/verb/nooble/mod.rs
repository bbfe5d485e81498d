//! The verbs for actions of Nooble4, on streams and on lists: one file for each step of an action's way.
//! Scripts read no action; what is in one, the caller reads and says.

mod dead;
mod keep;
mod receive;
mod replies;
mod report;
mod send;
mod step;
mod subscribe;
mod tidy;

use std::ops::Deref;
use std::sync::Arc;

use meshwork_model::keys::nooble::{Dialect, QueueKeys, QueueManager};

pub use dead::{DeadAction, DeadActions, Replayed};
pub use keep::{MAX_WAIT, Reclaimed};
pub use receive::Received;
pub use report::{Answer, End, Failed, Failure, Finished};
pub use send::Asked;
pub use step::{Kept, Room, Step, Stepped};
pub use tidy::Over;

use crate::acl;
use crate::clock::Clock;
use crate::conn::{Conn, ConnectError, Target};
use crate::error::Error;
use crate::script::{Call, Scripts, Verb};
use crate::session::Session;

/// What the names of our workers begin with: the others of a group are of another make.
const OURS: &str = "mw.";

/// The verbs for one deployment of Nooble4; cheap to clone.
#[derive(Debug, Clone)]
pub struct Nooble {
    session: Session<Arc<QueueManager>>,
}

impl Deref for Nooble {
    type Target = Session<Arc<QueueManager>>;

    fn deref(&self) -> &Session<Arc<QueueManager>> {
        &self.session
    }
}

/// What the server's access rules keep a service from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// The commands that it may not say of a queue.
    pub commands: Vec<&'static str>,
    /// Whether it cannot even take a message.
    pub takes_nothing: bool,
}

/// A queue that messages are taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    keys: QueueKeys,
    /// The group that a stream's messages are given to; none for a list.
    group: Option<String>,
}

impl Source {
    /// The stream or the list.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.keys.queue
    }

    /// Its names.
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
    /// See [`Conn::open`].
    pub async fn connect(target: &Target, names: QueueManager) -> Result<Self, ConnectError> {
        if target.acknowledge().is_some() {
            tracing::warn!(
                "wait_replicas is for jobs: no replica is waited for when an action is sent"
            );
        }
        let conn = Conn::open(target, names.prefix()).await;
        Ok(Self::new(conn.map_err(ConnectError::of_prefix)?, names))
    }

    /// The verbs over a connection that is there already.
    #[must_use]
    pub fn new(conn: Conn, names: QueueManager) -> Self {
        let scripts = Scripts::default().named_nooble(&names);
        let session = Session::new(conn, Arc::new(names), scripts);
        Self { session }
    }

    /// The same verbs over a connection of their own.
    ///
    /// # Errors
    /// If it cannot be made.
    pub async fn dedicated(&self) -> Result<Self, Error> {
        let session = self.session.dedicated().await?;
        Ok(Self { session })
    }

    /// With another clock than the server's.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.session.clock = clock;
        self
    }

    /// With scripts that were altered.
    #[must_use]
    pub fn with_scripts(mut self, scripts: &Scripts) -> Self {
        self.session.scripts = scripts.named_nooble(&self.session.keys);
        self
    }

    /// The names in use.
    #[must_use]
    pub fn names(&self) -> &QueueManager {
        &self.keys
    }

    /// Where a service takes its actions.
    #[must_use]
    pub fn actions(&self, service: &str, context: Option<&str>) -> Arc<Source> {
        let of_streams = self.keys.dialect() == Dialect::Streams;
        Arc::new(Source {
            keys: self.keys.action_keys(service, context),
            group: of_streams.then(|| QueueManager::group(service)),
        })
    }

    /// Where a service takes the callbacks of an event, or those of one call alone: a list in either dialect.
    #[must_use]
    pub fn callbacks(&self, client: &str, event: &str, call: Option<&str>) -> Arc<Source> {
        Arc::new(Source {
            keys: self.keys.callback_keys(client, event, call),
            group: None,
        })
    }

    /// Whether the server answers.
    ///
    /// # Errors
    /// If it does not.
    pub async fn ping(&self) -> Result<(), Error> {
        self.ask("ping", &redis::cmd("PING")).await
    }

    /// What this user may not say of a queue that a service takes from, and whether the service would take nothing
    /// then. Nothing where the server does not tell, as the embedded engine, which has no users.
    pub async fn denied(&self, source: &Source) -> Denied {
        let told = acl::of_service(&self.conn, source.queue(), source.group.is_some()).await;
        let (commands, takes_nothing) = told.unwrap_or_default();
        Denied {
            commands,
            takes_nothing,
        }
    }

    /// A call, with the time and whether the queue is a stream.
    fn call(&self, verb: Verb, source: &Source) -> Call<'_> {
        let call = self.scripts.call(verb).key(source.queue());
        call.arg(self.clock.argument()).arg(source.group())
    }
}

/// A command whose arguments are about so many bytes long: it does not grow while it is put together.
fn room_for(bytes: usize) -> redis::Cmd {
    const USUAL: (usize, usize) = (16, 128);
    redis::Cmd::with_capacity(USUAL.0, USUAL.1 + bytes)
}
