//! The builder of a client.

use meshwork_macros::boxed;
use std::env;
use std::path::PathBuf;

use meshwork_broker::Broker;
use meshwork_broker::conn::{Target, TlsFiles};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::Namespace;

use super::{Client, local_name};
use crate::Error;

/// Server of a builder without a URL.
const URL: &str = "redis://127.0.0.1";

/// The builder of a client: choose what differs from the defaults, and call [`connect`](ClientBuilder::connect).
///
/// ```no_run
/// use meshwork::{Client, TlsFiles};
///
/// # async fn connect() -> Result<Client, meshwork::Error> {
/// let tls = TlsFiles { ca: Some("ca.pem".into()), ..TlsFiles::default() };
/// Client::builder().url("rediss://redis.example.org").tls(tls).namespace("shop").connect().await
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "the client exists after `connect`"]
pub struct ClientBuilder {
    url: Option<String>,
    directory: Option<PathBuf>,
    tls: TlsFiles,
    namespace: Option<String>,
    name: Option<String>,
}

impl ClientBuilder {
    /// Sets the URL of the server, in the format of `REDIS_URL`. Default: `redis://127.0.0.1`.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Uses the embedded engine, with its data in this folder, instead of a server. Processes may share a folder.
    pub fn directory(mut self, folder: impl Into<PathBuf>) -> Self {
        self.directory = Some(folder.into());
        self
    }

    /// Sets the PEM files of a URL that begins with `rediss://`. Default: the certificates of the system.
    pub fn tls(mut self, files: TlsFiles) -> Self {
        self.tls = files;
        self
    }

    /// Sets the namespace, the first part of all keys: programs with different ones share a server and no job. Default:
    /// `hero`.
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.namespace = Some(name.into());
        self
    }

    /// Sets the name that events have for this client. Default: program, process and host.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Connects.
    ///
    /// # Errors
    /// The URL, a PEM file or the namespace is invalid, both a URL and a folder are given, the server does not answer, or
    /// it is not suitable for jobs.
    #[boxed]
    pub async fn connect(self) -> Result<Client, Error> {
        let namespace = match &self.namespace {
            Some(name) => name.parse()?,
            None => Namespace::default(),
        };
        let target = match (self.directory, self.url) {
            (Some(_), Some(_)) => return Err(Error::TwoStores),
            (Some(folder), None) => Target::Directory(folder),
            (None, url) => Target::parse(url.as_deref().unwrap_or(URL), self.tls)?,
        };
        let broker = Broker::connect(&target, JobKeys::new(namespace)).await?;
        let name = self.name.unwrap_or_else(|| local_name("client"));
        Ok(Client::new(broker.acting_as(&name)))
    }
}

/// Returns the data directory of the command, for use without a server: `MESHWORK_DATA`, else `$XDG_DATA_HOME/meshwork`, else
/// `~/.local/share/meshwork`; none if no variable names one.
///
/// ```no_run
/// # async fn connect() -> Result<meshwork::Client, Box<dyn std::error::Error>> {
/// let folder = meshwork::data_directory().ok_or("HOME is not set")?;
/// # Ok(
/// meshwork::Client::builder().directory(folder).connect().await?
/// # )
/// # }
/// ```
#[must_use]
pub fn data_directory() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(named) = set("MESHWORK_DATA") {
        return Some(named.into());
    }
    let data = set("XDG_DATA_HOME").map(PathBuf::from);
    // The XDG specification requires to ignore a relative path.
    let data = data.filter(|path| path.is_absolute());
    data.map(|data| data.join("meshwork"))
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".local/share/meshwork")))
}
