//! The store of the jobs, which can be killed and filled: a redis-server or the embedded engine's data directory,
//! each with its own small disk.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use meshwork_broker::Broker;
use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_model::keys::hero::JobKeys;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Engine, failed};
use crate::chaos::ChaosError;
use meshwork_test_servers::SmallDisk;
use meshwork_test_servers::servers::{RealServer, Tool};

/// Longest time of a command to the embedded engine.
const ANSWER: Duration = Duration::from_secs(5);

/// Store of the jobs, and its small disk, if this machine can mount one.
pub(in crate::chaos) enum Store {
    /// A server that writes each command to its disk before it answers. Without room there it ends itself.
    Server {
        server: Box<RealServer>,
        disk: Option<SmallDisk>,
    },
    /// The embedded engine, which the first worker owns.
    Embedded {
        data: PathBuf,
        disk: Option<SmallDisk>,
    },
}

impl Store {
    /// Starts the store on a small disk of its own of this many bytes, or else in `dir`.
    pub(in crate::chaos) fn start(
        engine: Engine,
        dir: &Path,
        bytes: Option<u64>,
    ) -> Result<Self, ChaosError> {
        let small = |bytes| SmallDisk::mount("the full disks of `chaos --scenario hostile`", bytes);
        let disk = bytes.and_then(small);
        let data = disk.as_ref().map_or(dir, SmallDisk::path).join("data");
        if engine == Engine::Embedded {
            return Ok(Self::Embedded { data, disk });
        }
        fs::create_dir(&data).map_err(ChaosError::io("the server's directory"))?;
        let place = data.display().to_string();
        let server = RealServer::redis().append_only().args(&["--dir", &place]);
        let server = server.start_for("chaos");
        let server = Box::new(server.ok_or(ChaosError::Missing(Tool::Redis.program()))?);
        Ok(Self::Server { server, disk })
    }

    fn disk(&self) -> Option<&SmallDisk> {
        match self {
            Self::Server { disk, .. } | Self::Embedded { disk, .. } => disk.as_ref(),
        }
    }

    /// Returns true if the store has a disk that can be full.
    pub(in crate::chaos) fn has_disk(&self) -> bool {
        self.disk().is_some()
    }

    /// Fills the disk, or frees it.
    pub(in crate::chaos) fn fill(&self, full: bool) {
        match self.disk() {
            Some(disk) if full => disk.fill(),
            Some(disk) => disk.free(),
            None => {}
        }
    }

    /// Deletes the lock of the data directory.
    pub(in crate::chaos) fn delete_lock(&self) -> Result<(), ChaosError> {
        match self {
            Self::Server { .. } => Ok(()),
            Self::Embedded { data, .. } => {
                fs::remove_file(data.join("lock")).map_err(ChaosError::io("the lock"))
            }
        }
    }

    /// Returns the environment variable by which the command finds the store.
    pub(in crate::chaos) fn variable(&self) -> (&'static str, OsString) {
        match self {
            Self::Server { server, .. } => ("REDIS_URL", server.url().into()),
            Self::Embedded { data, .. } => ("MESHWORK_DATA", data.into()),
        }
    }

    /// Returns the process that owns the data directory, from the lock file.
    pub(in crate::chaos) fn owner(&self) -> Option<u32> {
        let Self::Embedded { data, .. } = self else {
            return None;
        };
        let holder = fs::read_to_string(data.join("lock")).ok()?;
        holder.split_whitespace().nth(1)?.parse().ok()
    }

    /// Sends a command over a connection of its own.
    pub(in crate::chaos) async fn say(&self, words: &[&str]) -> io::Result<()> {
        match self {
            Self::Server { server, .. } => {
                let said = server.say::<redis::Value>(words);
                said.map(drop).map_err(io::Error::other)
            }
            Self::Embedded { data, .. } => {
                let reply = async {
                    let mut stream = meshwork_embedded::attach(data).await?;
                    stream
                        .write_all((words.join(" ") + "\r\n").as_bytes())
                        .await?;
                    stream.read_u8().await
                };
                match tokio::time::timeout(ANSWER, reply).await? {
                    Ok(b'-') => Err(io::Error::other(format!("{} is refused", words.join(" ")))),
                    other => other.map(drop),
                }
            }
        }
    }

    /// Kills the server with `kill -9`; it may have ended itself.
    pub(in crate::chaos) fn kill(&mut self) {
        if let Self::Server { server, .. } = self {
            server.kill9();
        }
    }

    /// Starts the server after a kill.
    pub(in crate::chaos) fn start_again(&mut self) {
        if let Self::Server { server, .. } = self {
            server.start_again();
        }
    }

    /// Returns a broker. On the embedded engine this process may become the owner, so call it only after the last
    /// kill.
    pub(in crate::chaos) async fn broker(&self) -> Result<Broker, ChaosError> {
        let target = match self {
            Self::Server { server, .. } => {
                Target::parse(&server.url(), TlsFiles::default()).map_err(|it| failed(&it))?
            }
            Self::Embedded { data, .. } => Target::Directory(data.clone()),
        };
        let keys = JobKeys::default();
        let conn = Conn::open(&target, keys.namespace()).await;
        Ok(Broker::new(conn.map_err(|error| failed(&error))?, keys))
    }
}
