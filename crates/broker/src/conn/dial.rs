//! A single connection to one address: login, TLS and timeouts. The caller chooses the address.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, IntoConnectionInfo, ProtocolVersion,
    PushInfo, PushKind, RedisConnectionInfo, RedisError, RedisResult, TlsCertificates, Value,
};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpStream, UnixStream};

use super::target::{Server, TargetError};
use super::tls::Tls;
use super::{Changed, Subscriber, stranger};
use crate::error::timed_out;

/// Timeout for connecting to the server that has the data.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Name of Meshwork's connections in `CLIENT LIST`.
pub(crate) const CLIENT_NAME: &str = "meshwork";

/// Settings that connections to all servers of one kind share.
#[derive(Clone)]
pub(super) struct Dial {
    login: RedisConnectionInfo,
    tls: Option<TlsCertificates>,
    /// TLS with authorities of a file, if one was given.
    own: Option<Tls>,
    /// True after the first connection: the server is then away, and no other kind of server.
    is_known: Arc<AtomicBool>,
}

impl Dial {
    /// Returns the settings of `server`, with its certificates read.
    pub(super) fn new(server: &Server) -> Result<Self, TargetError> {
        // The redis crate does not choose a provider of cryptography, and panics without one. A provider that the
        // program has installed stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let unusable =
            |why: String| TargetError::Url(format!("its certificates cannot be used ({why})"));
        let tls = server.tls.read()?;
        let dial = Self {
            login: server.login.clone(),
            own: tls.as_ref().map_or(Ok(None), Tls::new).map_err(unusable)?,
            tls,
            is_known: Arc::default(),
        };
        // Unusable certificates are reported here, rather than as a failed connection.
        dial.client(&server.nodes[0])
            .map_err(|e| unusable(e.to_string()))?;
        Ok(dial)
    }

    /// Returns the same settings with another login.
    pub(super) fn with_login(&self, login: RedisConnectionInfo) -> Self {
        Self {
            login,
            ..self.clone()
        }
    }

    /// Returns the same settings with another database.
    pub(super) fn in_database(&self, database: u32) -> Self {
        self.with_login(self.login.clone().set_db(i64::from(database)))
    }

    /// Returns the selected database.
    pub(super) fn db(&self) -> i64 {
        self.login.db()
    }

    /// Opens a connection. It has no timeout for replies, which would end blocking commands and the connection with
    /// them.
    pub(super) async fn connect(
        &self,
        addr: &ConnectionAddr,
        within: Duration,
    ) -> RedisResult<MultiplexedConnection> {
        self.connect_with(addr, within, AsyncConnectionConfig::new())
            .await
    }

    /// Opens a connection that calls `changed` with each key that it has read and that changes after that, and with
    /// `None` if any of them may have changed. `None`: the server does not report changes, or not to this user.
    pub(super) async fn tracking(
        &self,
        addr: &ConnectionAddr,
        within: Duration,
        changed: Changed,
    ) -> RedisResult<Option<MultiplexedConnection>> {
        let config = AsyncConnectionConfig::new().set_push_sender(move |push: PushInfo| {
            match (push.kind, push.data.into_iter().next()) {
                (PushKind::Invalidate, Some(Value::Array(keys))) => {
                    for key in keys {
                        changed(match &key {
                            Value::BulkString(key) => Some(key.as_slice()),
                            _ => None,
                        });
                    }
                }
                (PushKind::Invalidate | PushKind::Disconnection, _) => changed(None),
                _ => {}
            }
            Ok::<(), Infallible>(())
        });
        let login = self.login.clone().set_protocol(ProtocolVersion::RESP3);
        let dial = self.with_login(login);
        let connected = dial.connect_with(addr, within, config);
        let mut connection = match connected.await {
            Err(error) if !error.is_io_error() && !error.is_timeout() => return Ok(None),
            connected => connected?,
        };
        let mut track = redis::cmd("CLIENT");
        track.arg("TRACKING").arg("ON");
        let tracks = tokio::time::timeout(within, track.query_async::<()>(&mut connection));
        match tracks.await.unwrap_or_else(|_| Err(timed_out())) {
            Err(error) if !error.is_io_error() && !error.is_timeout() => Ok(None),
            tracks => tracks.map(|()| Some(connection)),
        }
    }

    async fn connect_with(
        &self,
        addr: &ConnectionAddr,
        within: Duration,
        config: AsyncConnectionConfig,
    ) -> RedisResult<MultiplexedConnection> {
        let config = config
            .set_connection_timeout(Some(within))
            .set_response_timeout(None);
        let made = tokio::time::timeout(within, self.made(addr, config)).await;
        let mut connection = match made.unwrap_or_else(|_| Err(timed_out())) {
            Ok(connection) => connection,
            Err(error) => {
                let said = match error.is_io_error() {
                    true => Box::pin(farewell(addr)).await,
                    false => None,
                };
                let said = match said {
                    None if !self.is_known.load(Ordering::Relaxed) => {
                        Box::pin(stranger::named(addr, &error)).await
                    }
                    said => said,
                };
                return Err(said.unwrap_or(error));
            }
        };
        let introduced = tokio::time::timeout(within, introduce(&mut connection)).await;
        introduced.unwrap_or_else(|_| Err(timed_out()))?;
        self.is_known.store(true, Ordering::Relaxed);
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
        // The task ends with the last clone of the connection.
        tokio::spawn(driver);
        Ok(connection)
    }

    /// Opens a connection that receives published messages.
    pub(super) async fn subscriber(
        &self,
        addr: &ConnectionAddr,
        within: Duration,
    ) -> RedisResult<Subscriber> {
        let made = async {
            let Some((tls, host, port)) = self.own(addr) else {
                return self.client(addr)?.get_async_pubsub().await;
            };
            PubSub::new(&self.login, tls.connect(host, port).await?).await
        };
        let made = tokio::time::timeout(within, made).await;
        made.unwrap_or_else(|_| Err(timed_out()))
            .map(Subscriber::new)
    }

    /// Returns the TLS settings and the address, if the address needs TLS with authorities of a file.
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

/// Description of the error of [`farewell`].
pub(super) const CLOSED: &str = "the server closes new connections";
/// Time for a server to refuse a connection. It does so before it reads anything.
const FAREWELL: Duration = Duration::from_millis(500);
/// Greatest length of a refusal, in bytes.
const MAX_FAREWELL: u64 = 512;

/// Returns the error by which a server closes a new connection, such as that of too many clients. The request of the
/// failed connection crossed it, so it was not read. Over TLS there is none.
async fn farewell(addr: &ConnectionAddr) -> Option<RedisError> {
    let listen = async {
        let mut text = Vec::new();
        match addr {
            ConnectionAddr::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await.ok()?;
                stream
                    .take(MAX_FAREWELL)
                    .read_to_end(&mut text)
                    .await
                    .ok()?;
            }
            ConnectionAddr::Unix(path) => {
                let stream = UnixStream::connect(path).await.ok()?;
                stream
                    .take(MAX_FAREWELL)
                    .read_to_end(&mut text)
                    .await
                    .ok()?;
            }
            _ => return None,
        }
        Some(text)
    };
    let text = tokio::time::timeout(FAREWELL, listen).await.ok()??;
    let text = String::from_utf8_lossy(&text);
    let said = text.strip_prefix('-')?.lines().next()?.to_owned();
    Some((ErrorKind::Io, CLOSED, said).into())
}

/// Sets the name of the connection, which identifies Meshwork's blocked clients in `CLIENT LIST`.
pub(super) fn introduction() -> redis::Cmd {
    let mut set = redis::cmd("CLIENT");
    set.arg("SETNAME").arg(CLIENT_NAME);
    set
}

/// Sends the name over a connection.
pub(super) async fn introduce(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    match introduction().query_async::<()>(connection).await {
        Err(error) if error.is_io_error() || error.is_timeout() => Err(error),
        // A missing right, or a server that is loading, does not prevent the connection.
        _ => Ok(()),
    }
}

/// Returns the address of another server of the same kind as `addr`.
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

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;
    use crate::conn::{Target, TlsFiles};

    /// Serves `good` connections, and closes each later one after its first bytes, which it returns.
    async fn server(good: usize) -> (Dial, ConnectionAddr, UnboundedReceiver<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, heads) = unbounded_channel();
        tokio::spawn(async move {
            for number in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let seen = seen.clone();
                tokio::spawn(async move {
                    let mut read = vec![0; 4096];
                    while let Ok(length) = stream.read(&mut read).await {
                        if number >= good {
                            let _ = seen.send(read[..length].to_vec());
                            return;
                        }
                        let commands = read[..length].iter().filter(|byte| **byte == b'*');
                        let replies = "+OK\r\n".repeat(commands.count());
                        if length == 0 || stream.write_all(replies.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        let url = format!("redis://127.0.0.1:{port}/");
        let Ok(Target::Server(server)) = Target::parse(&url, TlsFiles::default()) else {
            panic!("{url}");
        };
        let addr = server.nodes[0].clone();
        (Dial::new(&server).unwrap(), addr, heads)
    }

    #[tokio::test]
    async fn only_before_the_first_connection_other_kinds_of_servers_are_tried() {
        let within = Duration::from_secs(10);
        // The beginnings of a command, of nothing, and of a connection with TLS.
        for (good, expected) in [
            (0, &[Some(b'*'), None, Some(0x16)][..]),
            (1, &[Some(b'*'), None]),
        ] {
            let (dial, addr, mut heads) = server(good).await;
            for _ in 0..good {
                dial.connect(&addr, within).await.unwrap();
            }
            // A clone with another login is of the same server.
            let dial = dial.in_database(1);
            dial.connect(&addr, within).await.map(drop).unwrap_err();
            for first in expected {
                assert_eq!(heads.recv().await.unwrap().first().copied(), *first);
            }
            assert!(heads.try_recv().is_err());
        }
    }
}
