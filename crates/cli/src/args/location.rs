//! Location of the data: the server of a URL, otherwise the data directory.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use meshwork::{Target, TlsFiles};

use crate::args::parsers;
use crate::error::CommandError;
use crate::remote::{self, Remote};

/// Options and variables that locate the data.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Location of the data")]
#[allow(
    rustdoc::broken_intra_doc_links,
    reason = "the help shows what may be left out in brackets"
)]
pub(crate) struct DataLocation {
    /// Redis or Valkey server: redis://[user:password@]host[:port][/database], rediss:// for TLS,
    /// unix:///path/to/socket, redis+sentinel://host,host/service[/database] for the master that sentinels name,
    /// redis+cluster://host,host for a cluster. ?wait_replicas=1 waits for a replica. Other users see a password on the
    /// command line: use REDIS_URL. Without a server, the data directory is used: $MESHWORK_DATA, else
    /// $XDG_DATA_HOME/meshwork, else ~/.local/share/meshwork
    #[arg(
        long,
        value_name = "URL",
        env = "REDIS_URL",
        hide_env_values = true,
        global = true
    )]
    redis: Option<String>,
    /// API of a supervisor, in place of a store: http://HOST:PORT, https://HOST, unix:///path/to/socket. For people without
    /// access to the store; docs/api.md has the commands
    #[arg(long, value_name = "URL", env = "MESHWORK_API", global = true)]
    api: Option<String>,
    /// File with the key of the API
    #[arg(
        long,
        value_name = "FILE",
        env = "MESHWORK_API_KEY_FILE",
        global = true
    )]
    key_file: Option<PathBuf>,
    /// Time to retry the connection to an unreachable or starting server, in seconds, up to 3600; 0: try once
    #[arg(
        long,
        value_name = "DURATION",
        env = "MESHWORK_CONNECT_TIMEOUT",
        default_value = "15",
        value_parser = parsers::connect_timeout,
        allow_hyphen_values = true,
        global = true
    )]
    pub(crate) connect_timeout: Duration,
    /// CA certificates that sign the server's certificate (PEM) [default: those of the system]
    #[arg(long, value_name = "FILE", env = "REDIS_TLS_CA", global = true)]
    tls_ca: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE", env = "REDIS_TLS_CERT", global = true)]
    tls_cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", env = "REDIS_TLS_KEY", global = true)]
    tls_key: Option<PathBuf>,
}

/// Errors of the location.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TargetError {
    #[error(transparent)]
    Meshwork(#[from] meshwork::Error),
    #[error(
        "no data directory: neither MESHWORK_DATA, XDG_DATA_HOME nor HOME is set; \
         name a server with --redis, or set one of them"
    )]
    NoHome,
    #[error(
        "this runs inside a job{}, and no store is named: {} may not be the store of the job, and may be deleted \
         with the job; let the script call add_child(), which adds a child to the job's own store, or name a place: --redis, \
         REDIS_URL or MESHWORK_DATA", job.as_ref().map(|id| format!(" ({id})")).unwrap_or_default(), path.display()
    )]
    InsideJob { job: Option<String>, path: PathBuf },
}

impl From<TargetError> for CommandError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Meshwork(error) => error.into(),
            _ => Self::usage(error),
        }
    }
}

impl DataLocation {
    /// Returns the target.
    pub(crate) fn target(&self) -> Result<Target, TargetError> {
        // Shells unset a variable for one command with an empty value.
        if let Some(url) = self.redis.as_deref().filter(|url| !url.is_empty()) {
            return Ok(Target::parse(url, self.tls()).map_err(meshwork::Error::from)?);
        }
        Ok(Target::Directory(data_directory()?))
    }

    fn tls(&self) -> TlsFiles {
        TlsFiles {
            ca: self.tls_ca.clone(),
            cert: self.tls_cert.clone(),
            key: self.tls_key.clone(),
        }
    }

    /// Returns the API that `command` uses in place of a store; none if neither an option nor a variable names one.
    pub(crate) fn remote(&self, command: &str) -> Result<Option<Remote>, CommandError> {
        match self.api.as_deref().filter(|url| !url.is_empty()) {
            Some(url) if remote::commands::check(command)? => {
                let key_file = self.key_file.as_deref();
                Remote::new(url, key_file, self.tls()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Lets a store that the command line names come before an API that the environment names.
    pub(crate) fn without_api(&mut self) {
        self.api = None;
    }

    /// Returns true if an option or a variable names a store.
    pub(crate) fn is_named(&self) -> bool {
        let is_set = |value: Option<OsString>| value.is_some_and(|value| !value.is_empty());
        is_set(self.redis.as_deref().map(Into::into)) || is_set(env::var_os("MESHWORK_DATA"))
    }

    /// Returns true if the URL contains a password.
    pub(crate) fn has_password(&self) -> bool {
        let login = self.redis.as_deref().and_then(|url| {
            let (_, rest) = url.split_once("://")?;
            let (login, _) = rest.split(['/', '?']).next()?.rsplit_once('@')?;
            login.split_once(':')
        });
        login.is_some_and(|(_, password)| !password.is_empty())
    }
}

/// Returns the data directory, for use without a server.
fn data_directory() -> Result<PathBuf, TargetError> {
    let path = meshwork::data_directory().ok_or(TargetError::NoHome)?;
    let is_named = env::var_os("MESHWORK_DATA").is_some_and(|named| !named.is_empty());
    match job_around(&path).filter(|_| !is_named) {
        Some(job) => Err(TargetError::InsideJob { job, path }),
        None => Ok(path),
    }
}

/// Variable that workers set for scripts.
const JOB_VARIABLE: &str = "MESHWORK_JOB";

/// Returns the job that this process belongs to, if any, with its id if the environment still has it. A script that has
/// cleared its environment still runs in, or has its home in, the folder of its run.
fn job_around(data: &Path) -> Option<Option<String>> {
    let id = env::var_os(JOB_VARIABLE).filter(|id| !id.is_empty());
    if let Some(id) = id {
        return Some(Some(id.to_string_lossy().into_owned()));
    }
    let here = env::current_dir().unwrap_or_default();
    let mut around = data.ancestors().chain(here.ancestors());
    around.any(is_of_a_run).then_some(None)
}

/// Returns true for the working folder of a run.
fn is_of_a_run(folder: &Path) -> bool {
    let run = folder.parent().filter(|_| folder.ends_with("work"));
    let name = run
        .and_then(Path::file_name)
        .map(|name| name.to_string_lossy());
    name.is_some_and(|name| name.starts_with("meshwork-"))
        && run.is_some_and(|run| run.join("lock").is_file())
}
