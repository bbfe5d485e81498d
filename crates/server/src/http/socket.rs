//! A server on a Unix socket, which only its owner may open.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use axum::Router;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::guard::Connections;
use super::{Bounds, Closing, NO_ROOM, connection};

/// Address that stands for the socket in checks of hosts: `Host: localhost` is right.
const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
/// Address of the clients of the socket, which no client of a listener has.
const OWNER: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// Rights on the socket: its owner's alone.
const MODE: u32 = 0o600;

/// Why nothing is served on a socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// Another process serves on it.
    #[error("another process serves the socket {}: stop it, or give another path", .0.display())]
    Taken(PathBuf),
    /// The path is that of another file.
    #[error("{} is there, and is no socket: give another path", .0.display())]
    NoSocket(PathBuf),
    /// The system refuses it.
    #[error("cannot serve the socket {}: {source}", path.display())]
    System {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// A socket that is served; its file is removed on drop.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Takes a path. A socket that a killed process has left is replaced.
    ///
    /// # Errors
    /// If another process serves on it, the path is that of another file, or the system refuses it.
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        let failed = |source| SocketError::System {
            path: path.to_owned(),
            source,
        };
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
            Ok(there) if !std::os::unix::fs::FileTypeExt::is_socket(&there.file_type()) => {
                return Err(SocketError::NoSocket(path.to_owned()));
            }
            Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
                return Err(SocketError::Taken(path.to_owned()));
            }
            Ok(_) => {}
        }
        // Nobody can open the socket before its rights are set: it begins in a folder of its owner.
        let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = tempfile::Builder::new()
            .prefix(".mw")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(parent.unwrap_or(Path::new(".")))
            .map_err(failed)?;
        let hidden = folder.path().join("s");
        let listener = UnixListener::bind(&hidden).map_err(failed)?;
        fs::set_permissions(&hidden, fs::Permissions::from_mode(MODE)).map_err(failed)?;
        fs::rename(&hidden, path).map_err(failed)?;
        let path = path.to_owned();
        Ok(Self { listener, path })
    }

    /// Serves until `stop`, and then until the requests under way have ended or their grace is over.
    pub async fn serve(self, router: Router, bounds: Bounds, stop: CancellationToken) {
        let connections = Connections::new(bounds.connections);
        let (times, open) = (bounds.times, TaskTracker::new());
        let accepts = async {
            loop {
                match self.listener.accept().await {
                    Ok((stream, _)) => {
                        let permit = connections.admit(OWNER, LOCAL, Instant::now());
                        open.spawn(connection(
                            stream,
                            router.clone(),
                            times,
                            permit,
                            Closing::new(&stop, times.grace, &open),
                        ));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "connection not accepted");
                        tokio::time::sleep(NO_ROOM).await;
                    }
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = accepts => {}
        }
        open.close();
        open.wait().await;
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Another process may have removed it already.
        let _ = fs::remove_file(&self.path);
    }
}
