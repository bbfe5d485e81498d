//! The store of the jobs, which can be killed and filled: a redis-server or the embedded engine's data directory, each
//! on a small disk of its own.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use meshwork_broker::Broker;
use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_model::keys::hero::Hero;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Engine, failed};
use crate::chaos::ChaosError;
use meshwork_test_servers::SmallDisk;
use meshwork_test_servers::servers::{RealServer, Tool};

/// Longest time of a command to the embedded engine.
const ANSWER: Duration = Duration::from_secs(5);

/// The place of the jobs, and its small disk, where this machine lets one be mounted.
pub(super) enum Store {
    /// Redis writes each command to its disk before it answers; without room there it ends itself.
    Server {
        server: Box<RealServer>,
        disk: Option<SmallDisk>,
    },
    /// Owned by the worker that opened it first.
    Embedded {
        data: PathBuf,
        disk: Option<SmallDisk>,
    },
}

impl Store {
    /// With a disk of so many bytes, else in `dir`.
    pub(super) fn start(engine: Engine, dir: &Path, bytes: u64) -> Result<Self, ChaosError> {
        let disk = SmallDisk::mount("the full disks of `chaos --scenario hostile`", bytes);
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

    /// Returns true if it has a disk that can be full.
    pub(super) fn has_disk(&self) -> bool {
        self.disk().is_some()
    }

    /// Takes all the room on its disk, or gives it back.
    pub(super) fn fill(&self, full: bool) {
        match self.disk() {
            Some(disk) if full => disk.fill(),
            Some(disk) => disk.free(),
            None => {}
        }
    }

    /// Returns the environment variable by which the command finds it.
    pub(super) fn variable(&self) -> (&'static str, OsString) {
        match self {
            Self::Server { server, .. } => ("REDIS_URL", server.url().into()),
            Self::Embedded { data, .. } => ("MESHWORK_DATA", data.into()),
        }
    }

    /// The process that owns the data directory, by what it wrote into its lock.
    pub(super) fn owner(&self) -> Option<u32> {
        let Self::Embedded { data, .. } = self else {
            return None;
        };
        let holder = fs::read_to_string(data.join("lock")).ok()?;
        holder.split_whitespace().nth(1)?.parse().ok()
    }

    /// Says a command over a connection of its own.
    pub(super) async fn say(&self, words: &[&str]) -> io::Result<()> {
        match self {
            Self::Server { server, .. } => {
                let said = server.say::<redis::Value>(words);
                said.map(drop).map_err(io::Error::other)
            }
            Self::Embedded { data, .. } => {
                let asked = async {
                    let mut stream = meshwork_embedded::attach(data).await?;
                    stream
                        .write_all((words.join(" ") + "\r\n").as_bytes())
                        .await?;
                    stream.read_u8().await
                };
                match tokio::time::timeout(ANSWER, asked).await? {
                    Ok(b'-') => Err(io::Error::other(format!("{} is refused", words.join(" ")))),
                    other => other.map(drop),
                }
            }
        }
    }

    /// `kill -9` of the server, which may have ended itself.
    pub(super) fn kill(&mut self) {
        if let Self::Server { server, .. } = self {
            server.kill9();
        }
    }

    /// Starts the server after that.
    pub(super) fn start_again(&mut self) {
        if let Self::Server { server, .. } = self {
            server.start_again();
        }
    }

    /// A way to the jobs. On the embedded engine this process may be the next owner: only when nobody is killed
    /// any more.
    pub(super) async fn broker(&self) -> Result<Broker, ChaosError> {
        let target = match self {
            Self::Server { server, .. } => {
                Target::parse(&server.url(), TlsFiles::default()).map_err(|it| failed(&it))?
            }
            Self::Embedded { data, .. } => Target::Directory(data.clone()),
        };
        let keys = Hero::default();
        let conn = Conn::open(&target, keys.namespace()).await;
        Ok(Broker::new(conn.map_err(|error| failed(&error))?, keys))
    }
}
