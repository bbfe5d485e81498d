//! Meshwork's queues. Every atomic step is a Lua script ([`script`]), the same on Redis, Valkey and the
//! embedded engine, with one typed function each ([`Broker`]); [`conn`] is the way to the data, and the
//! only place that talks to it. What runs the jobs is not here.

mod acknowledge;
mod backoff;
mod clock;
pub mod conn;
pub mod doctor;
mod error;
mod outages;
pub mod script;
mod verb;

use std::sync::Arc;

use meshwork_model::keys::context::ContextKeys;
use meshwork_model::keys::hero::Hero;

pub use acknowledge::Acknowledge;
pub use backoff::Backoff;
pub use clock::Clock;
pub use error::Error;
pub use outages::Outages;
pub use verb::*;

use acknowledge::Confirmed;
use conn::{Conn, ConnectError, Target};
use script::{Named, Scripts};

/// The verbs over one connection and one namespace; cheap to clone.
#[derive(Debug, Clone)]
pub struct Broker {
    conn: Conn,
    keys: Hero,
    scripts: Named,
    who: Arc<str>,
    clock: Clock,
    confirmed: Option<Confirmed>,
    rescue: Rescue,
}

impl Broker {
    /// Connects to `target`, and keeps to what its URL says of acknowledgements.
    ///
    /// # Errors
    /// See [`Conn::open`].
    pub async fn connect(target: &Target, keys: Hero) -> Result<Self, ConnectError> {
        let broker = Self::new(Conn::open(target, keys.namespace()).await?, keys);
        Ok(match target.acknowledge() {
            Some(rule) => broker.acknowledge(rule),
            None => broker,
        })
    }

    /// The verbs over the same store for a context: in its database, or after its prefix in the first one. The id of
    /// a job is its key there.
    ///
    /// # Errors
    /// If the connection cannot be made, or the store has no such database.
    pub async fn of_context(&self, keys: ContextKeys) -> Result<Self, Error> {
        let conn = self.conn.in_database(keys.database()).await;
        let keys = Hero::of_context(keys);
        Ok(Self {
            conn: conn.map_err(Error::connect)?,
            scripts: Scripts::default().named(&keys),
            keys,
            ..self.clone()
        })
    }

    /// The verbs over a connection that is there already.
    #[must_use]
    pub fn new(conn: Conn, keys: Hero) -> Self {
        Self {
            scripts: Scripts::default().named(&keys),
            who: "".into(),
            conn,
            keys,
            clock: Clock::default(),
            confirmed: None,
            rescue: Rescue::default(),
        }
    }

    /// Lets [`Broker::enqueue`] succeed only when replicas have the jobs: a failover does not lose them then.
    /// Else it fails with [`Error::NotReplicated`], and may be repeated.
    #[must_use]
    pub fn acknowledge(self, rule: Acknowledge) -> Self {
        let confirmed = Some(Confirmed::new(rule));
        Self { confirmed, ..self }
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

    /// Gives all scripts to the server, so that none has to be sent when it is first needed. Not needed for
    /// more than that: a script that the server does not know is sent by the call.
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
            scripts: scripts.named(&self.keys),
            ..self
        }
    }

    /// In the name of `who`, for the events that tell who changed what. What workers do, they do in their
    /// own names.
    #[must_use]
    pub fn acting_as(self, who: &str) -> Self {
        Self {
            who: who.into(),
            ..self
        }
    }

    /// Sets when [`Broker::sweep`] and [`Broker::watch`] push orphans again.
    #[must_use]
    pub fn with_rescue(self, rescue: Rescue) -> Self {
        Self { rescue, ..self }
    }

    /// The names in use.
    #[must_use]
    pub fn keys(&self) -> &Hero {
        &self.keys
    }

    /// What fails over this connection, and those made from it.
    #[must_use]
    pub fn outages(&self) -> &Outages {
        self.conn.outages()
    }

    /// The connection in use.
    #[must_use]
    pub fn conn(&self) -> &Conn {
        &self.conn
    }
}
