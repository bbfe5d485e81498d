//! One connection to one address: login, TLS and how long that may take. Which address is not decided here.

use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo,
    RedisResult, TlsCertificates,
};

use super::Ear;
use super::target::{Server, TargetError};
use super::tls::Tls;
use crate::error::timed_out;

/// How long a connection to the server that has the data may take to be made.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What our connections are called.
pub(crate) const CLIENT_NAME: &str = "meshwork";

/// What connections to all servers of one kind have in common.
#[derive(Clone)]
pub(super) struct Dial {
    login: RedisConnectionInfo,
    tls: Option<TlsCertificates>,
    /// Where the authorities are in a file.
    own: Option<Tls>,
}

impl Dial {
    /// As `server` says, its certificates read.
    pub(super) fn new(server: &Server) -> Result<Self, TargetError> {
        // The redis crate leaves the choice of cryptography open and panics where nobody made it. A choice
        // that the program made stands.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let unusable =
            |why: String| TargetError::Url(format!("its certificates cannot be used ({why})"));
        let tls = server.tls.read()?;
        let dial = Self {
            login: server.login.clone(),
            own: tls.as_ref().map_or(Ok(None), Tls::new).map_err(unusable)?,
            tls,
        };
        // Certificates that cannot be used are told now, and not as a connection that fails.
        dial.client(&server.nodes[0])
            .map_err(|e| unusable(e.to_string()))?;
        Ok(dial)
    }

    /// With another login.
    pub(super) fn with_login(&self, login: RedisConnectionInfo) -> Self {
        let (tls, own) = (self.tls.clone(), self.own.clone());
        Self { login, tls, own }
    }

    /// With another database.
    pub(super) fn in_database(&self, database: u32) -> Self {
        self.with_login(self.login.clone().set_db(i64::from(database)))
    }

    /// The selected database.
    pub(super) fn db(&self) -> i64 {
        self.login.db()
    }

    /// A new connection. It has no time limit on replies, which would end a command that waits, and its
    /// connection.
    pub(super) async fn connect(
        &self,
        addr: &ConnectionAddr,
        within: Duration,
    ) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(within))
            .set_response_timeout(None);
        let made = tokio::time::timeout(within, self.made(addr, config)).await;
        let mut connection = made.unwrap_or_else(|_| Err(timed_out()))?;
        let introduced = tokio::time::timeout(within, introduce(&mut connection)).await;
        introduced.unwrap_or_else(|_| Err(timed_out()))?;
        Ok(connection)
    }

    async fn made(
        &self,
        addr: &ConnectionAddr,
        config: AsyncConnectionConfig,
    ) -> RedisResult<MultiplexedConnection> {
        let Some((tls, host, port)) = self.own(addr) else {
            let client = self.client(addr)?;
            let connected = client.get_multiplexed_async_connection_with_config(&config);
            return connected.await;
        };
        let stream = tls.connect(host, port).await?;
        let made = MultiplexedConnection::new_with_config(&self.login, stream, config);
        let (connection, driver) = made.await?;
        // It ends with the last clone of the connection.
        tokio::spawn(driver);
        Ok(connection)
    }

    /// A new connection that hears what others publish.
    pub(super) async fn ear(&self, addr: &ConnectionAddr, within: Duration) -> RedisResult<Ear> {
        let made = async {
            let Some((tls, host, port)) = self.own(addr) else {
                return self.client(addr)?.get_async_pubsub().await;
            };
            PubSub::new(&self.login, tls.connect(host, port).await?).await
        };
        let made = tokio::time::timeout(within, made).await;
        made.unwrap_or_else(|_| Err(timed_out())).map(Ear::server)
    }

    /// Where the way leads over TLS with authorities of ours.
    fn own<'a>(&'a self, addr: &'a ConnectionAddr) -> Option<(&'a Tls, &'a str, u16)> {
        match addr {
            ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                ..
            } => self.own.as_ref().map(|tls| (tls, host.as_str(), *port)),
            _ => None,
        }
    }

    fn client(&self, addr: &ConnectionAddr) -> RedisResult<Client> {
        let info = addr
            .clone()
            .into_connection_info()?
            .set_redis_settings(self.login.clone())
            .set_tcp_settings(Server::tcp());
        match &self.tls {
            Some(tls) => Client::build_with_tls(info, tls.clone()),
            None => Client::open(info),
        }
    }
}

/// Tells the server our name, so that those who wait on lists can be told apart in `CLIENT LIST`.
pub(super) fn introduction() -> redis::Cmd {
    let mut set = redis::cmd("CLIENT");
    set.arg("SETNAME").arg(CLIENT_NAME);
    set
}

/// Says it over a connection.
pub(super) async fn introduce(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    match introduction().query_async::<()>(connection).await {
        Err(error) if error.is_io_error() || error.is_timeout() => Err(error),
        // A user who may not say it, or a server that loads, is no reason to stay away.
        _ => Ok(()),
    }
}

/// Another server of the same kind as `addr`.
pub(super) fn beside(addr: &ConnectionAddr, host: String, port: u16) -> ConnectionAddr {
    match addr {
        ConnectionAddr::TcpTls { insecure, .. } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: *insecure,
            tls_params: None,
        },
        _ => ConnectionAddr::Tcp(host, port),
    }
}
