//! The verbs over a session: each is one function, in the module of its noun.

use meshwork_macros::boxed;
use std::ops::Deref;
use std::sync::Arc;

use meshwork_model::keys::context::{ContextKeys, ContextLayout};
use meshwork_model::keys::hero::JobKeys;

use crate::Rescue;
use crate::acl;
use crate::clock::Clock;
use crate::conn::{Conn, ConnectError, Target};
use crate::error::Error;
use crate::replication::{ReplicatedConn, WaitReplicas};
use crate::script::Scripts;
use crate::session::Session;

/// The verbs over one [`Session`] for Hero's keys; cheap to clone.
#[derive(Debug, Clone)]
pub struct Broker {
    pub(crate) session: Session<JobKeys>,
    pub(crate) who: Arc<str>,
    pub(crate) rescue: Rescue,
}

impl Deref for Broker {
    type Target = Session<JobKeys>;

    fn deref(&self) -> &Session<JobKeys> {
        &self.session
    }
}

impl Broker {
    /// Connects to `target`, with the rule for replicas in its URL.
    ///
    /// # Errors
    /// As for [`Conn::open`].
    #[boxed]
    pub async fn connect(target: &Target, keys: JobKeys) -> Result<Self, ConnectError> {
        let mut broker = Self::new(Conn::open(target, keys.namespace()).await?, keys);
        broker.session.acknowledge(target.acknowledge());
        Ok(broker)
    }

    /// Returns the verbs over the same store for a context: in its database, or after its prefix in this connection's
    /// database. There, the id of a job is its key.
    ///
    /// # Errors
    /// The connection cannot be opened, or the store has no such database.
    #[boxed]
    pub async fn of_context(&self, keys: ContextKeys) -> Result<Self, Error> {
        let conn = match keys.layout() {
            ContextLayout::Db => self.conn.in_database(keys.database()).await,
            ContextLayout::Prefix => Ok(self.conn.of_key(keys.prefix())),
        };
        let keys = JobKeys::of_context(keys);
        let confirmed = self.confirmed.as_ref();
        let session = Session {
            // Another connection has other writes to confirm.
            confirmed: confirmed.map(ReplicatedConn::again),
            conn: conn.map_err(Error::connect)?,
            scripts: Scripts::default().named(&keys),
            keys,
            ..self.session.clone()
        };
        Ok(Self {
            session,
            ..self.clone()
        })
    }

    /// Returns the verbs over an open connection.
    #[must_use]
    pub fn new(conn: Conn, keys: JobKeys) -> Self {
        let scripts = Scripts::default().named(&keys);
        Self {
            session: Session::new(conn, keys, scripts),
            who: "".into(),
            rescue: Rescue::default(),
        }
    }

    /// Lets [`Broker::enqueue`] succeed only after replicas have the jobs, so that a failover does not lose them.
    /// Otherwise it fails with [`Error::NotReplicated`], and may be repeated.
    #[must_use]
    pub fn acknowledge(mut self, rule: WaitReplicas) -> Self {
        self.session.acknowledge(Some(rule));
        self
    }

    /// Returns the same verbs over a separate connection.
    ///
    /// # Errors
    /// The connection cannot be opened.
    #[boxed]
    pub async fn dedicated(&self) -> Result<Self, Error> {
        Ok(Self {
            session: self.session.dedicated().await?,
            ..self.clone()
        })
    }

    /// Returns the time of the scripts, in milliseconds since 1970.
    ///
    /// # Errors
    /// The server does not answer.
    #[boxed]
    pub async fn now(&self) -> Result<u64, Error> {
        let shown = self.session.now().await?;
        let mut get = redis::cmd("GET");
        get.arg(self.keys.clock());
        let seen: redis::RedisResult<Option<String>> =
            get.query_async(&mut self.conn.clone()).await;
        // Scripts leave a key of another type alone too.
        let seen = seen.ok().flatten().unwrap_or_default();
        Ok(Clock::of_scripts(shown, &seen))
    }

    /// Returns the commands that this user may not send to the server, although the calls of a worker need them. `None`
    /// if the server cannot answer.
    #[boxed]
    pub async fn lacks(&self) -> Option<Vec<&'static str>> {
        acl::worker_lacks(&self.conn, &self.keys).await
    }

    /// Sets another clock than the server's.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.session.clock = clock;
        self
    }

    /// Returns true if the clock is not the server's.
    #[must_use]
    pub fn has_manual_clock(&self) -> bool {
        matches!(self.session.clock, Clock::Manual(_))
    }

    /// Sets altered scripts.
    #[must_use]
    pub fn with_scripts(mut self, scripts: &Scripts) -> Self {
        self.session.scripts = scripts.named(&self.session.keys);
        self
    }

    /// Sets the actor of changes in events. Workers' verbs use the workers' own names.
    #[must_use]
    pub fn acting_as(self, who: &str) -> Self {
        Self {
            who: who.into(),
            ..self
        }
    }

    /// Sets the time after which [`Broker::scan_orphans`] and [`Broker::check_orphans`] push orphans again.
    #[must_use]
    pub fn with_rescue(self, rescue: Rescue) -> Self {
        Self { rescue, ..self }
    }
}
