//! A fresh engine for one run, and the connections to it.

use meshwork::{Client, Target, TlsFiles};
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::name::Namespace;
use redis::AsyncConnectionConfig;
use tempfile::TempDir;

use super::BenchError;
use super::link::Link;
use super::meter::Reading;
use meshwork_test_servers::servers::{RealServer, Tool, find};

/// Store of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A redis-server, over TCP on loopback.
    Redis,
    /// A valkey-server, likewise.
    Valkey,
    /// The embedded engine in this process.
    Embedded,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 3] = [Self::Redis, Self::Valkey, Self::Embedded];

    /// Returns the name of the engine.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Valkey => "valkey",
            Self::Embedded => "embedded",
        }
    }

    /// Returns true if this machine has the engine.
    #[must_use]
    pub fn is_here(self) -> bool {
        match self {
            Self::Redis => find(Tool::Redis).is_some(),
            Self::Valkey => find(Tool::Valkey).is_some(),
            Self::Embedded => true,
        }
    }
}

/// Arguments for an append-only file with every write, flushed once a second.
pub(super) const ON_DISK: [&str; 6] = [
    "--appendonly",
    "yes",
    "--appendfsync",
    "everysec",
    "--auto-aof-rewrite-percentage",
    "0",
];

/// A fresh engine.
pub(super) struct Ground {
    place: Place,
    /// The only connection that a process can have to the embedded engine.
    client: Client,
}

enum Place {
    // The server is stopped when this is dropped.
    Server(Box<RealServer>),
    Directory(TempDir),
}

impl Ground {
    pub(super) async fn start(engine: Engine, args: &[&str]) -> Result<Self, BenchError> {
        let options = match engine {
            Engine::Redis => RealServer::redis(),
            Engine::Valkey => RealServer::valkey(),
            Engine::Embedded => {
                let dir = tempfile::Builder::new().prefix("mw-").tempdir()?;
                let client = Client::connect(&Target::Directory(dir.path().to_owned())).await?;
                let place = Place::Directory(dir);
                return Ok(Self { place, client });
            }
        };
        let options = options.args(&ON_DISK).args(args);
        let server = options.start_for("bench");
        let server = server.ok_or(BenchError::Missing(engine.name()))?;
        let client = connect(&server.url()).await?;
        let place = Place::Server(Box::new(server));
        Ok(Self { place, client })
    }

    /// Returns a client, with its own connections where that is possible.
    pub(super) async fn client(&self) -> Result<Client, BenchError> {
        match &self.place {
            Place::Server(server) => connect(&server.url()).await,
            Place::Directory(_) => Ok(self.client.clone()),
        }
    }

    /// Returns the server.
    pub(super) fn server(&self) -> Result<&RealServer, BenchError> {
        match &self.place {
            Place::Server(server) => Ok(server),
            Place::Directory(_) => Err(BenchError::Odd("a directory has no server".into())),
        }
    }

    /// Returns the verbs for actions in the same way.
    pub(super) async fn actions(&self, dialect: Dialect) -> Result<Nooble, BenchError> {
        let names = NoobleKeys::new(Namespace::nooble(), None, dialect);
        let conn = self.client().await?.broker().conn().clone();
        Ok(Nooble::new(conn, names))
    }

    /// Returns a connection of its own for the floor.
    pub(super) async fn link(&self) -> Result<Link, BenchError> {
        match &self.place {
            Place::Server(server) => {
                let client = redis::Client::open(server.url())?;
                let config = AsyncConnectionConfig::new().set_response_timeout(None);
                let link = client.get_multiplexed_async_connection_with_config(&config);
                Ok(Link::Socket(link.await?))
            }
            Place::Directory(_) => {
                let broker = self.client.broker().dedicated().await?;
                Ok(Link::Inside(broker.conn().clone()))
            }
        }
    }

    /// Reads the counters.
    pub(super) fn read(&self) -> Result<Reading, BenchError> {
        match &self.place {
            Place::Server(server) => Reading::of_server(server),
            Place::Directory(dir) => Ok(Reading::of_directory(dir.path())),
        }
    }
}

/// Returns a client of the server at `url`.
pub(super) async fn connect(url: &str) -> Result<Client, BenchError> {
    let target = Target::parse(url, TlsFiles::default());
    let target = target.map_err(|why| BenchError::Odd(why.to_string()))?;
    Ok(Client::connect(&target).await?)
}
