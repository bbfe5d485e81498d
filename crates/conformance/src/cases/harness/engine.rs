//! Engines of the suite, and an isolated place for each running case.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use meshwork_broker::Broker;
use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_broker::context::ContextStore;
use meshwork_broker::doctor::{bananas_rights, nooble_rights, rights};
use meshwork_embedded::Handle;
use meshwork_model::acl::{AclUser, rules, user_name};
use meshwork_model::keys::context::ContextKeys;
use meshwork_model::keys::hero::JobKeys;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use crate::cases::Failure;
use crate::full_log::with_full_disk_probe;
use meshwork_test_servers::servers::{RealCluster, RealServer, Tool, shared_for};

/// An engine that must pass the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A cluster of one redis-server for each place, which refuses keys of two slots. The verbs use a user with only
    /// the documented rights.
    Redis,
    /// A valkey-server with default settings, which all places share.
    Valkey,
    /// The embedded engine in this process.
    Embedded,
    /// The embedded engine, where each command is tried on a full disk first.
    FullLog,
    /// A redis-server with default settings, which all places share.
    Plain,
    /// Three redis-servers as a cluster. All cases use one slot, so one server runs one case at a time.
    Cluster,
    /// [`Self::Plain`] with the user of [`Self::Redis`].
    Rights,
}

/// The two connections to a place.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    /// Connection for the verbs.
    pub(crate) verbs: Conn,
    /// Connection for checks and direct changes of the data.
    pub(crate) raw: Conn,
    /// Prefix of all keys of a case there. The next case has the same, for which the engine has the scripts already.
    pub(crate) namespace: String,
    /// URL of the server for other users; `None` if the engine has no users.
    pub(crate) url: Option<String>,
}

impl Ways {
    fn new(verbs: Conn, raw: Conn) -> Self {
        let number = NAMESPACES.fetch_add(1, Ordering::Relaxed);
        Self {
            verbs,
            raw,
            namespace: format!("{HASH_TAG}{number}"),
            url: None,
        }
    }

    /// Opens both connections to this server.
    async fn open(url: &str) -> Result<Self, Failure> {
        let conn = open(url).await?;
        Ok(Self::new(conn.clone(), conn).on(url))
    }

    fn on(self, url: &str) -> Self {
        let url = Some(url.to_owned());
        Self { url, ..self }
    }
}

/// Prefix of all namespaces: one slot of a cluster.
const HASH_TAG: &str = "{c}";

/// Name and password of the user with restricted rights.
const USER: &str = "suite";

static CLUSTER: OnceCell<Option<RealCluster>> = OnceCell::const_new();
static TURN: Semaphore = Semaphore::const_new(1);

/// Nodes of [`Engine::Redis`], which live as long as the process.
static NODES: Mutex<Vec<RealCluster>> = Mutex::new(Vec::new());

/// Number of namespaces so far, so that no two places of a process have the same.
static NAMESPACES: AtomicU32 = AtomicU32::new(0);

/// Unused places.
static FREE: Mutex<Vec<(Engine, Ways)>> = Mutex::new(Vec::new());

/// An empty database for one case at a time, free for the next case when dropped.
#[derive(Debug)]
pub struct Place {
    engine: Engine,
    ways: Ways,
    _turn: Option<SemaphorePermit<'static>>,
}

impl Engine {
    /// Engines on which each case, also a heavy one, runs in every check.
    pub const ALL: [Self; 3] = [Self::Redis, Self::Valkey, Self::Embedded];

    /// All engines: those that combine the properties of [`Self::ALL`] separately, and those that are shared.
    pub const EVERY: [Self; 7] = [
        Self::Redis,
        Self::Valkey,
        Self::Embedded,
        Self::FullLog,
        Self::Plain,
        Self::Cluster,
        Self::Rights,
    ];

    /// Returns true if cases with 100,000 items run on it. The other engines do not differ in anything that grows
    /// with the number.
    #[must_use]
    pub const fn takes_heavy(self) -> bool {
        matches!(
            self,
            Self::Redis | Self::Valkey | Self::Embedded | Self::Plain
        )
    }

    /// Returns true if a case may use other keys and databases there.
    #[must_use]
    pub const fn has_others_beside(self) -> bool {
        matches!(
            self,
            Self::Redis | Self::Valkey | Self::Embedded | Self::Plain
        )
    }

    /// Returns the prefix of the names of its trials.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Valkey => "valkey",
            Self::Embedded => "embedded",
            Self::FullLog => "full-log",
            Self::Plain => "plain",
            Self::Cluster => "cluster",
            Self::Rights => "rights",
        }
    }

    /// Returns the program that must be installed for it.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Self::Redis | Self::Plain | Self::Cluster | Self::Rights => "redis-server",
            Self::Valkey => "valkey-server",
            Self::Embedded | Self::FullLog => "nothing",
        }
    }

    /// Returns an empty place on it; `None` if this machine lacks the engine, which has been reported then.
    ///
    /// # Errors
    /// The engine exists and refuses the connection.
    ///
    /// # Panics
    /// In CI, if the engine does not exist.
    pub async fn place(self, test: &str) -> Result<Option<Place>, Failure> {
        let turn = match self {
            Self::Cluster => Some(TURN.acquire().await.map_err(Failure::new)?),
            _ => None,
        };
        let Some(ways) = self.free_or_new(test).await? else {
            return Ok(None);
        };
        redis::cmd("FLUSHDB")
            .query_async::<()>(&mut ways.raw.clone())
            .await?;
        Ok(Some(Place {
            engine: self,
            ways,
            _turn: turn,
        }))
    }

    async fn free_or_new(self, test: &str) -> Result<Option<Ways>, Failure> {
        let free = {
            let mut free = FREE.lock().expect("nobody panics with the lock held");
            let at = free.iter().position(|(engine, _)| *engine == self);
            at.map(|at| free.swap_remove(at).1)
        };
        if free.is_some() {
            return Ok(free);
        }
        match self {
            Self::Redis => node(test).await,
            Self::Plain => server(test, Tool::Redis).await,
            Self::Valkey => server(test, Tool::Valkey).await,
            Self::Embedded => {
                let conn = Conn::embedded(&Handle::in_memory());
                Ok(Some(Ways::new(conn.clone(), conn)))
            }
            Self::Cluster => cluster(test).await,
            Self::Rights => restricted(test).await,
            Self::FullLog => {
                let engine = Handle::in_memory();
                let ways = Ways::new(with_full_disk_probe(&engine), Conn::embedded(&engine));
                Ok(Some(ways))
            }
        }
    }
}

/// Returns a fresh database of the server that all tests of this binary share. The first database is left to contexts
/// in the layout `prefix`.
async fn server(test: &str, tool: Tool) -> Result<Option<Ways>, Failure> {
    let database = shared_for(test, tool).filter(|database| database.number > 0);
    let Some(database) = database.or_else(|| shared_for(test, tool)) else {
        return Ok(None);
    };
    Ways::open(&database.url()).await.map(Some)
}

/// Returns a fresh database of the same server, with a user.
async fn restricted(test: &str) -> Result<Option<Ways>, Failure> {
    let Some(database) = shared_for(test, Tool::Redis) else {
        return Ok(None);
    };
    let url = database.url();
    add_user(database.server, &url).await.map(Some)
}

/// Starts a cluster of one node, with a user.
async fn node(test: &str) -> Result<Option<Ways>, Failure> {
    let Some(cluster) = RealCluster::start_masters_for(test, RealServer::redis(), 1).await else {
        return Ok(None);
    };
    let ways = add_user(&cluster.nodes()[0], &cluster.url()).await;
    let mut nodes = NODES.lock().expect("nobody panics with the lock held");
    nodes.push(cluster);
    ways.map(Some)
}

/// Adds the user with restricted rights, for the verbs only. Cases check and change data without these restrictions.
async fn add_user(server: &RealServer, url: &str) -> Result<Ways, Failure> {
    // The namespaces of cases follow the tag.
    let tag = HASH_TAG.parse()?;
    let rules = [rights(&tag), bananas_rights(&tag), nooble_rights(&tag)].join(" ");
    let rule = format!("on >{USER} {rules} ~{HASH_TAG}* &{HASH_TAG}*");
    let words = ["ACL", "SETUSER", USER].into_iter().chain(rule.split(' '));
    server.say::<()>(&Vec::from_iter(words))?;
    let login = login(url, USER);
    Ok(Ways::new(open(&login).await?, open(url).await?).on(url))
}

/// Returns the URL for a user whose password is his name.
fn login(url: &str, user: &str) -> String {
    url.replacen("://", &format!("://{user}:{user}@"), 1)
}

/// Opens a connection to a context as the ACL user of its runner, with the rules that `meshwork context acl` writes.
/// `None` if the server cannot restrict a user to this context, or if there are several: each has users of its own.
pub(crate) async fn as_runner(
    raw: &Conn,
    url: &str,
    keys: &ContextKeys,
) -> Result<Option<Conn>, Failure> {
    let slots = raw.slots().await?;
    if slots.is_some_and(|slots| slots.nodes().count() > 1) {
        return Ok(None);
    }
    let acl = ContextStore::of(&Broker::new(raw.clone(), JobKeys::default()));
    let Ok(rules) = rules(
        AclUser::Runner,
        keys,
        acl.node_keys(),
        acl.acl_server().await?,
    ) else {
        return Ok(None);
    };
    let user = user_name(AclUser::Runner, keys);
    let head = ["SETUSER", &user, "reset", "on", &format!(">{user}")].map(str::to_owned);
    acl.acl(&head.into_iter().chain(rules).collect::<Vec<_>>())
        .await?;
    // The URL of a cluster has no database.
    let url = match url.rsplit_once('/') {
        Some((server, number)) if number.parse::<u32>().is_ok() => {
            format!("{server}/{}", keys.database())
        }
        _ => url.to_owned(),
    };
    open(&login(&url, &user)).await.map(Some)
}

/// Starts the cluster that all tests of this binary share.
async fn cluster(test: &str) -> Result<Option<Ways>, Failure> {
    let start = || RealCluster::start_for(test, RealServer::redis(), 0);
    match CLUSTER.get_or_init(start).await {
        Some(cluster) => Ways::open(&cluster.url()).await.map(Some),
        None => Ok(None),
    }
}

async fn open(url: &str) -> Result<Conn, Failure> {
    let target = Target::parse(url, TlsFiles::default()).map_err(Failure::new)?;
    let conn = Conn::open(&target, &HASH_TAG.parse()?).await;
    conn.map_err(Failure::new)
}

impl Place {
    /// Returns the connection to the place.
    #[must_use]
    pub fn conn(&self) -> &Conn {
        &self.ways.raw
    }

    /// Returns both connections for a case.
    pub(crate) fn ways(&self) -> &Ways {
        &self.ways
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut free = FREE.lock().expect("nobody panics with the lock held");
        free.push((self.engine, self.ways.clone()));
    }
}
