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

use std::sync::Arc;

use meshwork_model::keys::nooble::{Dialect, QueueKeys, QueueManager};

pub use dead::{DeadAction, DeadActions, Replayed};
pub use keep::{MAX_WAIT, Reclaimed};
pub use receive::Received;
pub use report::{Answer, End, Failed, Failure, Finished};
pub use send::Asked;
pub use step::{Kept, Room, Step, Stepped};
pub use tidy::Over;

use crate::Outages;
use crate::clock::Clock;
use crate::conn::{Conn, ConnectError, Target};
use crate::doctor::access;
use crate::error::{Error, keys_of};
use crate::script::{Call, Named, Scripts, Verb};

/// What the names of our workers begin with: the others of a group are of another make.
const OURS: &str = "mw.";

/// The verbs for one deployment of Nooble4; cheap to clone.
#[derive(Debug, Clone)]
pub struct Nooble {
    conn: Conn,
    names: Arc<QueueManager>,
    scripts: Named,
    clock: Clock,
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
    /// What fails over this connection, and those made from it.
    #[must_use]
    pub fn outages(&self) -> &Outages {
        self.conn.outages()
    }

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
        Self {
            scripts: Scripts::default().named_nooble(&names),
            conn,
            names: Arc::new(names),
            clock: Clock::default(),
        }
    }

    /// The same verbs over a connection of their own.
    ///
    /// # Errors
    /// If it cannot be made.
    pub async fn dedicated(&self) -> Result<Self, Error> {
        let conn = self.conn.dedicated().await.map_err(Error::connect)?;
        Ok(Self {
            conn,
            ..self.clone()
        })
    }

    /// Gives all scripts to the server, so that none has to be sent when it is first needed.
    ///
    /// # Errors
    /// If the server does not take them.
    pub async fn load(&self) -> Result<(), Error> {
        self.scripts.load(&self.conn).await
    }

    /// With another clock than the server's.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// With scripts that were altered.
    #[must_use]
    pub fn with_scripts(self, scripts: &Scripts) -> Self {
        Self {
            scripts: scripts.named_nooble(&self.names),
            ..self
        }
    }

    /// The names in use.
    #[must_use]
    pub fn names(&self) -> &QueueManager {
        &self.names
    }

    /// The connection in use.
    #[must_use]
    pub fn conn(&self) -> &Conn {
        &self.conn
    }

    /// Where a service takes its actions.
    #[must_use]
    pub fn actions(&self, service: &str, context: Option<&str>) -> Arc<Source> {
        let of_streams = self.names.dialect() == Dialect::Streams;
        Arc::new(Source {
            keys: self.names.action_keys(service, context),
            group: of_streams.then(|| QueueManager::group(service)),
        })
    }

    /// Where a service takes the callbacks of an event, or those of one call alone: a list in either dialect.
    #[must_use]
    pub fn callbacks(&self, client: &str, event: &str, call: Option<&str>) -> Arc<Source> {
        Arc::new(Source {
            keys: self.names.callback_keys(client, event, call),
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
        let told = access::of_service(&self.conn, source.queue(), source.group.is_some()).await;
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

    /// A command that is no script.
    async fn ask<T: redis::FromRedisValue>(
        &self,
        verb: &'static str,
        cmd: &redis::Cmd,
    ) -> Result<T, Error> {
        let asked = cmd.query_async(&mut self.conn.clone()).await;
        asked.map_err(|source| Error::of_keys(verb, &keys_of(cmd), source))
    }
}

/// A command whose arguments are about so many bytes long: it does not grow while it is put together.
fn room_for(bytes: usize) -> redis::Cmd {
    const USUAL: (usize, usize) = (16, 128);
    redis::Cmd::with_capacity(USUAL.0, USUAL.1 + bytes)
}
