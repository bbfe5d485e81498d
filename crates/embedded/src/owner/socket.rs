//! The Unix socket of a data directory, also for paths longer than a socket address.

use std::{
    fs::{self, File, Permissions},
    io,
    os::{
        fd::AsRawFd as _,
        unix::fs::{MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use tokio::net::{UnixListener, UnixStream};

use super::place;

/// The socket in the data directory.
pub(super) const SOCKET_FILE: &str = "redis.sock";
/// Name of the new socket before it is renamed.
pub(super) const FRESH_FILE: &str = "redis.sock.new";
/// Number of the user who has all rights.
const ROOT: u32 = 0;
/// Greatest length of a path for a socket address on all systems (107 bytes on Linux, 103 on the BSDs).
const MAX_PATH: usize = 103;

/// Returns the path of the socket of `dir`.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(SOCKET_FILE)
}

/// Connects to the process that owns the data directory `dir`.
///
/// # Errors
/// `NotFound` and `ConnectionRefused` if no process serves it; `PermissionDenied` if that of another user does, who
/// is not root.
pub async fn attach(dir: &Path) -> io::Result<UnixStream> {
    reach(dir).await?.map_err(|user| {
        let what = format!("{} is served by user {user}", path(dir).display());
        io::Error::new(io::ErrorKind::PermissionDenied, what)
    })
}

/// Does the same. The inner error is the other user who serves it, and must not be connected to.
pub(super) async fn reach(dir: &Path) -> io::Result<Result<UnixStream, u32>> {
    let short = ShortPath::of(dir)?;
    let stream = UnixStream::connect(short.to(SOCKET_FILE)).await?;
    let user = stream.peer_cred()?.uid();
    Ok(match [place::own(), ROOT].contains(&user) {
        true => Ok(stream),
        false => Err(user),
    })
}

/// The file of a socket: its device and its inode.
pub(super) type SocketId = (u64, u64);

/// Returns the present socket of `dir`, if there is one.
pub(super) fn present(dir: &Path) -> Option<SocketId> {
    let about = fs::symlink_metadata(path(dir)).ok()?;
    Some((about.dev(), about.ino()))
}

/// Listens in `dir`, and replaces the socket of a dead owner. Only for the holder of the lock.
pub(super) fn listen(dir: &Path) -> io::Result<UnixListener> {
    let fresh = dir.join(FRESH_FILE);
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let short = ShortPath::of(dir)?;
    let listener = UnixListener::bind(short.to(FRESH_FILE))?;
    // The socket gets its name last, so that no client connects before it has its mode.
    fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
    fs::rename(&fresh, path(dir))?;
    Ok(listener)
}

/// Removes the socket. Only for the holder of the lock.
pub(super) fn remove(dir: &Path) -> io::Result<()> {
    fs::remove_file(path(dir))
}

/// A name of a directory that is short enough for a socket address.
struct ShortPath {
    dir: PathBuf,
    /// Open as long as `dir` goes through its descriptor.
    _open: Option<File>,
}

impl ShortPath {
    fn of(dir: &Path) -> io::Result<Self> {
        if dir.as_os_str().len() + 1 + FRESH_FILE.len() <= MAX_PATH {
            return Ok(Self {
                dir: dir.to_owned(),
                _open: None,
            });
        }
        if !cfg!(target_os = "linux") {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "{} is too long for a socket; name a shorter directory",
                    dir.display()
                ),
            ));
        }
        let open = File::open(dir)?;
        let dir = format!("/proc/self/fd/{}", open.as_raw_fd()).into();
        Ok(Self {
            dir,
            _open: Some(open),
        })
    }

    fn to(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}
