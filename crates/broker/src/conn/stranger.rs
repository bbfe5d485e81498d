//! Names what answers at an address in another way than the URL says: a web server, a server with TLS, or one without.

use std::sync::Arc;
use std::time::Duration;

use redis::{ConnectionAddr, ErrorKind, RedisError};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Description of these errors; the detail is for people.
pub(super) const STRANGER: &str = "another kind of server answers";
/// Longest wait for an answer: a server that is there has answered long before.
const WAIT: Duration = Duration::from_millis(500);
/// A question to any web server, which is no command of Redis.
const HEAD: &[u8] = b"HEAD / HTTP/1.0\r\n\r\n";
/// A question to Redis without TLS.
const PING: &[u8] = b"PING\r\n";
/// Types of the records in which a server with TLS answers: an alert, and a handshake.
const TLS_RECORDS: [u8; 2] = [0x15, 0x16];

/// Returns an error of another kind of server.
pub(super) fn stranger(said: String) -> RedisError {
    (ErrorKind::InvalidClientConfig, STRANGER, said).into()
}

/// Asks the address in other ways after a failed connection. Returns an error with what it is, and what to write.
pub(super) async fn named(addr: &ConnectionAddr, error: &RedisError) -> Option<RedisError> {
    let said = match addr {
        ConnectionAddr::Tcp(host, port) if error.kind() == ErrorKind::Parse => {
            let answer = ask((host, *port), HEAD).await?;
            let is_web = answer.starts_with(b"HTTP/") || answer.starts_with(b"<");
            match is_web {
                true => {
                    "a web server (HTTP) answers there, not Redis: correct the host or the port"
                }
                false => {
                    "what answers there does not speak the protocol of Redis: correct the host or the port"
                }
            }
        }
        ConnectionAddr::Tcp(host, port) if error.is_io_error() => {
            let answer = ask((host, *port), &hello()?).await?;
            let is_tls = answer.first().is_some_and(|of| TLS_RECORDS.contains(of));
            is_tls.then_some("the server expects TLS: write rediss:// in place of redis://")?
        }
        ConnectionAddr::TcpTls { host, port, .. } if error.is_io_error() || error.is_timeout() => {
            let answer = ask((host, *port), PING).await?;
            let is_plain = answer.starts_with(b"+") || answer.starts_with(b"-");
            is_plain.then_some(
                "the server has no TLS on this port: write redis://, or give its port for TLS",
            )?
        }
        _ => return None,
    };
    Some(stranger(said.to_owned()))
}

/// Sends a question over a new connection, and returns the beginning of the answer.
async fn ask((host, port): (&str, u16), question: &[u8]) -> Option<Vec<u8>> {
    let ask = async {
        let mut stream = TcpStream::connect((host, port)).await.ok()?;
        stream.write_all(question).await.ok()?;
        let mut answer = vec![0; 16];
        let read = stream.read(&mut answer).await.ok()?;
        answer.truncate(read);
        (read > 0).then_some(answer)
    };
    tokio::time::timeout(WAIT, ask).await.ok()?
}

/// Returns the beginning of a connection with TLS.
fn hello() -> Option<Vec<u8>> {
    let config = ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").ok()?;
    let mut client = ClientConnection::new(Arc::new(config), name).ok()?;
    let mut hello = Vec::new();
    client.write_tls(&mut hello).ok()?;
    Some(hello)
}
