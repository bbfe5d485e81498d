//! HTTP/1.1 to one server: a connection that is opened when it is needed.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use meshwork::TlsFiles;
use meshwork_broker::conn::connect_by_tls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// Longest time to open a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest time to the end of an answer: the longest wait of a call, and a minute for the answer.
const ANSWER: Duration = Duration::from_secs(360);
/// Greatest size of an answer, in bytes: the server holds no more in memory for all its clients.
const MAX_ANSWER: usize = 64 << 20;

/// Way to a server.
#[derive(Debug, PartialEq, Eq)]
enum Way {
    Tcp {
        host: String,
        port: u16,
        is_tls: bool,
    },
    Socket(PathBuf),
}

/// Address of an API.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    way: Way,
    /// Value of the header `host`.
    host: String,
    /// Path before that of the API, for proxies that serve it below one.
    below: String,
}

impl std::str::FromStr for Address {
    type Err = &'static str;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        if let Some(path) = url.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match Path::new(path).is_absolute() {
                true => Ok(Self {
                    way: Way::Socket(path.into()),
                    host: "localhost".to_owned(),
                    below: String::new(),
                }),
                false => Err("write the whole path of a socket, as unix:///run/meshwork.sock"),
            };
        }
        let read: Uri = url.parse().map_err(|_| "it is no URL")?;
        let is_tls = match read.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err("write http://HOST:PORT, https://HOST or unix:///PATH"),
        };
        let authority = read.authority().ok_or("it names no host")?;
        if authority.as_str().contains('@') {
            return Err("it has a user or a password: give a key with --key-file");
        }
        if read.query().is_some() {
            return Err("it has a part from `?` on: leave that out");
        }
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        Ok(Self {
            way: Way::Tcp {
                host: bare.unwrap_or(host).to_owned(),
                port: authority
                    .port_u16()
                    .unwrap_or(if is_tls { 443 } else { 80 }),
                is_tls,
            },
            host: authority.to_string(),
            below: read.path().trim_end_matches('/').to_owned(),
        })
    }
}

/// An open connection.
pub(super) type Sender = SendRequest<String>;

impl Address {
    /// Opens a connection.
    pub(super) async fn open(&self, tls: &TlsFiles) -> io::Result<Sender> {
        let opened = async {
            match &self.way {
                Way::Socket(path) => begun(UnixStream::connect(path).await?).await,
                Way::Tcp { host, port, is_tls } => match is_tls {
                    true => begun(connect_by_tls(tls, (host, *port)).await?).await,
                    false => begun(TcpStream::connect((host.as_str(), *port)).await?).await,
                },
            }
        };
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer");
        tokio::time::timeout(CONNECT, opened).await.map_err(late)?
    }

    /// Sends a request with a body, or without one to read. Returns the status and the body of the answer.
    pub(super) async fn send(
        &self,
        sender: &mut Sender,
        (path, body): (&str, Option<String>),
        key: Option<&HeaderValue>,
    ) -> io::Result<(StatusCode, Vec<u8>)> {
        let method = if body.is_some() { "POST" } else { "GET" };
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.below))
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, "application/json");
        let request = match key {
            Some(key) => request.header(AUTHORIZATION, key),
            None => request,
        };
        let request = request.body(body.unwrap_or_default());
        let request = request.map_err(io::Error::other)?;
        let answered = async {
            let answer = sender.send_request(request).await;
            whole(answer.map_err(io::Error::other)?).await
        };
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer");
        tokio::time::timeout(ANSWER, answered).await.map_err(late)?
    }
}

/// Begins to speak HTTP on a connection.
async fn begun(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> io::Result<Sender> {
    let begun = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = begun.map_err(io::Error::other)?;
    // It ends with the sender; the sender gets its error.
    tokio::spawn(connection);
    Ok(sender)
}

async fn whole(answer: Response<Incoming>) -> io::Result<(StatusCode, Vec<u8>)> {
    let status = answer.status();
    let (mut body, mut bytes) = (answer.into_body(), Vec::new());
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(io::Error::other)?;
        if let Ok(part) = frame.into_data() {
            bytes.extend_from_slice(&part);
        }
        if bytes.len() > MAX_ANSWER {
            return Err(io::Error::other("its answer has over 64 MiB"));
        }
    }
    Ok((status, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url_without_a_login() {
        let tcp = |host: &str, port, is_tls| Way::Tcp {
            host: host.to_owned(),
            port,
            is_tls,
        };
        for (url, way, host, below) in [
            ("http://a:3030", tcp("a", 3030, false), "a:3030", ""),
            ("https://a.b/", tcp("a.b", 443, true), "a.b", ""),
            ("https://a/jobs/", tcp("a", 443, true), "a", "/jobs"),
            ("http://[::1]:80", tcp("::1", 80, false), "[::1]:80", ""),
            (
                "unix:///run/a.sock",
                Way::Socket("/run/a.sock".into()),
                "localhost",
                "",
            ),
        ] {
            let (host, below) = (host.to_owned(), below.to_owned());
            assert_eq!(url.parse(), Ok(Address { way, host, below }), "{url}");
        }
        for url in [
            "",
            "a:3030",
            "ftp://a",
            "http://u:p@a",
            "http://a?key=1",
            "unix:a.sock",
        ] {
            assert!(url.parse::<Address>().is_err(), "{url}");
        }
    }
}
