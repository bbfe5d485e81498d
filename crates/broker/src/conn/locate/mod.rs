//! Discovery of the server that has the data: the one in the URL, the master that sentinels name ([`sentinel`]), or
//! the node of a cluster that owns the slot of the keys ([`cluster`]).

mod cluster;
mod sentinel;

use std::time::Duration;

use meshwork_model::name::Namespace;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, ConnectionAddr, FromRedisValue, RedisResult};
use tokio::time::Instant;

use super::dial::{CONNECT_TIMEOUT, Dial};
use super::target::{Kind, Server};
use super::{Changed, ConnectError, Subscriber, in_time};
use cluster::Cluster;
pub use cluster::SlotMap;
pub(super) use cluster::slot_of_key;
pub(super) use sentinel::REFUSED;
use sentinel::Sentinel;

/// Timeout for one of several servers, after which the next one is tried.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);

/// Finds the server that has the data.
pub(super) struct Locator {
    dial: Dial,
    kind: Finder,
}

enum Finder {
    Fixed(ConnectionAddr),
    Sentinel(Sentinel),
    Cluster(Cluster),
}

/// A connection to the server that has the data, and its address.
pub(super) struct Found {
    pub(super) addr: ConnectionAddr,
    pub(super) connection: MultiplexedConnection,
    /// Time at which the connection was open.
    pub(super) opened: Instant,
}

impl Locator {
    pub(super) fn new(server: &Server, namespace: &Namespace) -> Result<Self, ConnectError> {
        let dial = Dial::new(server)?;
        let kind = match &server.kind {
            Kind::Single => Finder::Fixed(server.nodes[0].clone()),
            Kind::Sentinel { service, login } => {
                let asking = dial.with_login(login.clone());
                Finder::Sentinel(Sentinel::new(asking, server.nodes.clone(), service.clone()))
            }
            Kind::Cluster => {
                let slot = cluster::slot(namespace, &server.place())?;
                Finder::Cluster(Cluster::new(slot, server.nodes.clone()))
            }
        };
        Ok(Self { dial, kind })
    }

    /// Returns a locator of the first server, whatever the others are for.
    pub(super) fn of_first(server: &Server) -> Result<Self, ConnectError> {
        let kind = Finder::Fixed(server.nodes[0].clone());
        let dial = Dial::new(server)?;
        Ok(Self { dial, kind })
    }

    /// Returns a locator for the cluster that the server belongs to. `None` if this one is for a cluster already.
    pub(super) fn in_cluster(&self, namespace: &Namespace) -> Result<Option<Self>, ConnectError> {
        let Finder::Fixed(addr) = &self.kind else {
            return Ok(None);
        };
        let slot = cluster::slot(namespace, &addr.to_string())?;
        Ok(Some(Self {
            dial: self.dial.clone(),
            kind: Finder::Cluster(Cluster::new(slot, vec![addr.clone()])),
        }))
    }

    /// Returns whether the data always stays on the same server.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self.kind, Finder::Fixed(_))
    }

    /// Returns a locator for the slot of `key` in the same cluster, over the same connections, and the slot. `None`
    /// outside of clusters.
    pub(super) fn of_key(&self, key: &str) -> Option<(u16, Self)> {
        let Finder::Cluster(cluster) = &self.kind else {
            return None;
        };
        let slot = cluster::slot_of_key(key);
        let kind = Finder::Cluster(cluster.of_slot(slot));
        let dial = self.dial.clone();
        Some((slot, Self { dial, kind }))
    }

    /// Returns the slot of the data in a cluster.
    pub(super) fn slot(&self) -> Option<u16> {
        match &self.kind {
            Finder::Cluster(cluster) => Some(cluster.slot()),
            Finder::Fixed(_) | Finder::Sentinel(_) => None,
        }
    }

    /// Returns the owners of all slots; `None` outside of clusters.
    pub(super) async fn slot_map(&self) -> RedisResult<Option<SlotMap>> {
        match &self.kind {
            Finder::Cluster(cluster) => cluster.map(&self.dial).await.map(Some),
            Finder::Fixed(_) | Finder::Sentinel(_) => Ok(None),
        }
    }

    /// Makes the first connection to each further node of a cluster check that the node is suitable for jobs.
    pub(super) fn check_nodes(&self) {
        if let Finder::Cluster(cluster) = &self.kind {
            cluster.check_nodes();
        }
    }

    /// Returns an address to begin with: that of the server, or of any sentinel or node.
    pub(super) fn any(&self) -> ConnectionAddr {
        match &self.kind {
            Finder::Fixed(addr) => addr.clone(),
            Finder::Sentinel(sentinel) => sentinel.any(),
            Finder::Cluster(cluster) => cluster.any(),
        }
    }

    /// Returns the same locator with another database, over connections of its own; `None` for a cluster, which has
    /// only database 0.
    pub(super) fn in_database(&self, database: u32) -> Option<Self> {
        let kind = match &self.kind {
            Finder::Fixed(addr) => Finder::Fixed(addr.clone()),
            Finder::Sentinel(sentinel) => Finder::Sentinel(sentinel.again()),
            Finder::Cluster(cluster) if database == 0 => Finder::Cluster(cluster.again()),
            Finder::Cluster(_) => return None,
        };
        let dial = self.dial.in_database(database);
        Some(Self { dial, kind })
    }

    /// Returns the selected database.
    pub(super) fn db(&self) -> i64 {
        self.dial.db()
    }

    /// Returns the address of the server that has the data.
    pub(super) async fn locate(&self) -> RedisResult<ConnectionAddr> {
        match &self.kind {
            Finder::Fixed(addr) => Ok(addr.clone()),
            Finder::Sentinel(sentinel) => sentinel.locate().await,
            Finder::Cluster(cluster) => cluster.locate(&self.dial, Some(Instant::now())).await,
        }
    }

    /// Opens a connection that receives messages published on that server.
    pub(super) async fn subscriber(&self) -> RedisResult<Subscriber> {
        let addr = self.locate().await?;
        self.dial.subscriber(&addr, self.patience()).await
    }

    /// Opens a connection to that server that reports changes; `None` if the server does not report them.
    pub(super) async fn tracking(&self, changed: Changed) -> RedisResult<Option<Found>> {
        let addr = self.locate().await?;
        let tracking = self.dial.tracking(&addr, self.patience(), changed);
        let Some(mut connection) = tracking.await? else {
            return Ok(None);
        };
        if matches!(self.kind, Finder::Sentinel(_)) {
            sentinel::verify(&mut connection, &addr).await?;
        }
        let opened = Instant::now();
        Ok(Some(Found {
            addr,
            connection,
            opened,
        }))
    }

    fn patience(&self) -> Duration {
        if self.is_fixed() {
            CONNECT_TIMEOUT
        } else {
            ASK_TIMEOUT
        }
    }

    /// Returns a connection for calls that do not block. The slots of a cluster share one per node, which is opened
    /// again if it is not newer than `lost`. With `known`, an address that was found before is used.
    pub(super) async fn shared(&self, lost: Option<Instant>, known: bool) -> RedisResult<Found> {
        let Finder::Cluster(cluster) = &self.kind else {
            return self.connect().await;
        };
        let since = (!known).then(Instant::now);
        let addr = cluster.locate(&self.dial, since).await?;
        let cluster::Shared { connection, opened } =
            cluster.shared(&self.dial, &addr, lost).await?;
        Ok(Found {
            addr,
            connection,
            opened,
        })
    }

    /// Opens a connection to that server.
    pub(super) async fn connect(&self) -> RedisResult<Found> {
        let addr = self.locate().await?;
        let mut connection = self.dial.connect(&addr, self.patience()).await?;
        if matches!(self.kind, Finder::Sentinel(_)) {
            sentinel::verify(&mut connection, &addr).await?;
        }
        let opened = Instant::now();
        Ok(Found {
            addr,
            connection,
            opened,
        })
    }
}

/// Queries a server that may hang.
async fn ask<T: FromRedisValue>(
    connection: &mut MultiplexedConnection,
    cmd: &Cmd,
) -> RedisResult<T> {
    in_time(Some(ASK_TIMEOUT), cmd.query_async(connection)).await
}
