//! Where the data is: the server that a URL names, otherwise the data directory.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use meshwork::{Target, TlsFiles};

use crate::error::CommandError;
use crate::value;

/// Options and variables that say where the data is.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Where the data is")]
#[allow(
    rustdoc::broken_intra_doc_links,
    reason = "the help shows what may be left out in brackets"
)]
pub(crate) struct Place {
    /// The Redis or Valkey server: redis://[user:password@]host[:port][/database], rediss:// for TLS,
    /// unix:///path/to/socket, redis+sentinel://host,host/service[/database] for the master that sentinels
    /// name, redis+cluster://host,host for a cluster. ?wait_replicas=1 waits for replicas. Others see a password on the command line: better set REDIS_URL. Without a
    /// server, the data directory is used: $MESHWORK_DATA, else $XDG_DATA_HOME/meshwork, else
    /// ~/.local/share/meshwork
    #[arg(
        long,
        value_name = "URL",
        env = "REDIS_URL",
        hide_env_values = true,
        global = true
    )]
    redis: Option<String>,
    /// Seconds to keep trying to reach a server that is away or starting; 0: try once
    #[arg(
        long,
        value_name = "S",
        env = "MESHWORK_CONNECT_TIMEOUT",
        default_value = "15",
        value_parser = value::connect_timeout,
        allow_hyphen_values = true,
        global = true
    )]
    pub(crate) connect_timeout: Duration,
    /// Who signed the server's certificate (PEM), where it is no authority of the system
    #[arg(long, value_name = "FILE", env = "REDIS_TLS_CA", global = true)]
    tls_ca: Option<PathBuf>,
    /// The client's certificate (PEM)
    #[arg(long, value_name = "FILE", env = "REDIS_TLS_CERT", global = true)]
    tls_cert: Option<PathBuf>,
    /// The key of the client's certificate (PEM)
    #[arg(long, value_name = "FILE", env = "REDIS_TLS_KEY", global = true)]
    tls_key: Option<PathBuf>,
}

/// Why the data is nowhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TargetError {
    #[error(transparent)]
    Meshwork(#[from] meshwork::Error),
    #[error(
        "there is no place for the data: neither MESHWORK_DATA, XDG_DATA_HOME nor HOME is set; \
         name a server with --redis, or set one of them"
    )]
    NoHome,
    #[error(
        "this runs inside a job{}, and no place for the data is named: {} may not be where the job is kept, and may vanish \
         with the job; let the script call submit(), which adds a child to the job's own store, or name a place: --redis, \
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

impl Place {
    /// The target.
    pub(crate) fn target(&self) -> Result<Target, TargetError> {
        // An empty variable is how shells take one away for a single command.
        if let Some(url) = self.redis.as_deref().filter(|url| !url.is_empty()) {
            let tls = TlsFiles {
                ca: self.tls_ca.clone(),
                cert: self.tls_cert.clone(),
                key: self.tls_key.clone(),
            };
            return Ok(Target::parse(url, tls).map_err(meshwork::Error::from)?);
        }
        Ok(Target::Directory(data_directory()?))
    }

    /// Whether the URL holds a password.
    pub(crate) fn has_password(&self) -> bool {
        let login = self.redis.as_deref().and_then(|url| {
            let (_, rest) = url.split_once("://")?;
            let (login, _) = rest.split(['/', '?']).next()?.rsplit_once('@')?;
            login.split_once(':')
        });
        login.is_some_and(|(_, password)| !password.is_empty())
    }
}

/// Where data lives when no server is named.
fn data_directory() -> Result<PathBuf, TargetError> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(named) = set("MESHWORK_DATA") {
        return Ok(named.into());
    }
    let path = set("XDG_DATA_HOME")
        .map(PathBuf::from)
        // The XDG specification asks to ignore a relative path.
        .filter(|path| path.is_absolute())
        .map(|data| data.join("meshwork"))
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".local/share/meshwork")))
        .ok_or(TargetError::NoHome)?;
    match job_around(&path) {
        Some(job) => Err(TargetError::InsideJob { job, path }),
        None => Ok(path),
    }
}

/// What a worker sets for the scripts that it runs.
const JOB_VARIABLE: &str = "MESHWORK_JOB";

/// The job that this process belongs to, if it belongs to one, and its id where the environment still has it. A script
/// that has cleared its environment is still in the folder of its run, or has its home there.
fn job_around(data: &Path) -> Option<Option<String>> {
    let id = env::var_os(JOB_VARIABLE).filter(|id| !id.is_empty());
    if let Some(id) = id {
        return Some(Some(id.to_string_lossy().into_owned()));
    }
    let here = env::current_dir().unwrap_or_default();
    let mut around = data.ancestors().chain(here.ancestors());
    around.any(is_of_a_run).then_some(None)
}

/// Whether this is the folder that a run has for its script.
fn is_of_a_run(folder: &Path) -> bool {
    let run = folder.parent().filter(|_| folder.ends_with("work"));
    let name = run
        .and_then(Path::file_name)
        .map(|name| name.to_string_lossy());
    name.is_some_and(|name| name.starts_with("meshwork-"))
        && run.is_some_and(|run| run.join("lock").is_file())
}
