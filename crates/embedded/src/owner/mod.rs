//! A data directory and its owner: the first process that opens it owns the engine, all others attach through its
//! socket. This module does not know the engine's work.

mod error;
mod import;
mod lock;
mod monitor;
mod place;
mod repair;
mod socket;
mod survey;

use std::{
    fs::{DirBuilder, File},
    io,
    net::SocketAddr,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

pub use error::OpenError;
pub use import::{ImportedAof, import_aof};
use lock::Lock;
pub use place::{check_place, open_parents};
pub use repair::{StoreRepair, check_store, repair_store};
use rustix::process::Signal;
pub use socket::attach;
pub use survey::{Survey, survey};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, UnixStream},
    signal::unix::SignalKind,
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout},
};

use crate::{
    engine::Handle,
    listener::{Listener, MAX_CLIENTS},
    log::{Fsync, LOG_FILE, Log, LogError, Threads, lock_log},
    world::Clock,
};

/// First pause between two attempts to take the lock or to reach the owner.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
/// Greatest such pause, which a takeover may lose.
const MAX_PAUSE: Duration = Duration::from_millis(50);
/// Time for an answer in one attempt; then the lock is tried again.
const ANSWER_WAIT: Duration = Duration::from_secs(1);
/// Default length below which the log is not rewritten automatically: a replay takes about a second on a busy
/// machine.
const REWRITE_MIN: u64 = 64 * 1024 * 1024;
/// Default time to wait for a silent owner. A starting one replays about 50 MB of log a second on a busy machine, so
/// that even more than 1 GB is possible.
const ATTACH_WAIT: Duration = Duration::from_secs(30);

/// Time after which the wait for a silent owner is logged.
const LOG_WAIT_AFTER: Duration = Duration::from_secs(2);

/// Options for opening a data directory.
#[derive(Debug, Clone)]
pub struct Options {
    /// Time at which writes are synced.
    pub fsync: Fsync,
    /// Length of the log in bytes below which it is not rewritten automatically; above, it is when it has doubled.
    pub rewrite_min: u64,
    /// A loopback address to listen on besides the socket. Port 0 lets the system choose.
    pub tcp: Option<SocketAddr>,
    /// Greatest number of clients on all of its sockets together.
    pub max_clients: usize,
    /// Time to wait for a process that has the lock and does not answer.
    pub attach_wait: Duration,
    /// Clock of the engine.
    pub clock: Clock,
    /// True to create the log of a directory without one. If false, [`open`] fails with [`OpenError::Gone`].
    pub create: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fsync: Fsync::default(),
            rewrite_min: REWRITE_MIN,
            tcp: None,
            max_clients: MAX_CLIENTS,
            attach_wait: ATTACH_WAIT,
            clock: Clock::system(),
            create: true,
        }
    }
}

/// The result of opening a data directory.
#[derive(Debug)]
pub enum Opened {
    /// This process owns the directory.
    Owner(Owner),
    /// Another process owns it and answers on its socket. When that process exits, connections break: open the
    /// directory again, to own it or to attach to the next owner.
    Attach(Socket),
}

/// The socket of the process that owns a data directory.
#[derive(Debug, Clone)]
pub struct Socket {
    dir: PathBuf,
}

impl Socket {
    /// Opens a connection, which uses the Redis protocol.
    ///
    /// # Errors
    /// The owner has exited, or accepts no more clients.
    pub async fn connect(&self) -> io::Result<UnixStream> {
        attach(&self.dir).await
    }
}

/// Opens the data directory `dir`, and creates it (0700) if there is none.
///
/// Must be called within a tokio runtime, which then serves the socket.
///
/// # Errors
/// [`OpenError`]; nothing was changed then.
pub async fn open(dir: &Path, options: Options) -> Result<Opened, OpenError> {
    if let Some(address) = options.tcp.filter(|address| !address.ip().is_loopback()) {
        return Err(OpenError::NotLoopback { address });
    }
    let dir = std::path::absolute(dir).map_err(refused(dir, "find"))?;
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    let mut logged = false;
    loop {
        if !options.create && !dir.join(LOG_FILE).exists() {
            return Err(OpenError::Gone { path: dir });
        }
        create(&dir)?;
        check_place(&dir)?;
        if let Some(lock) = Lock::try_take(&dir).map_err(refused(&dir, "lock"))?
            // An owner whose lock file was deleted still has the lock of the log.
            && let Some(file) = lock_log(&dir)?
        {
            let begun = Owner::begin(dir, (lock, file), options).await;
            return begun.map(Opened::Owner);
        }
        match answers(&dir).await {
            Ok(()) => return Ok(Opened::Attach(Socket { dir })),
            Err(NoAnswer::Stranger(user)) => {
                let own = place::own();
                return Err(OpenError::Stranger {
                    path: dir,
                    user,
                    own,
                });
            }
            Err(NoAnswer::Yet) => {}
        }
        if start.elapsed() >= options.attach_wait {
            let holder = Lock::holder(&dir);
            return Err(OpenError::Busy {
                path: dir,
                holder,
                waited: options.attach_wait,
            });
        }
        if !logged && start.elapsed() >= LOG_WAIT_AFTER {
            tracing::warn!(dir = %dir.display(), holder = Lock::holder(&dir), "waiting for the owner of the data directory");
            logged = true;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

fn create(dir: &Path) -> Result<(), OpenError> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    if dir.exists() && !dir.is_dir() {
        return Err(OpenError::NotADirectory {
            path: dir.to_owned(),
        });
    }
    created.map_err(refused(dir, "create"))
}

/// The reason why a directory's owner does not answer.
enum NoAnswer {
    /// An answer is possible later.
    Yet,
    /// The answering process runs as this other user.
    Stranger(u32),
}

/// Checks that the owner of `dir` answers. The answer's content does not matter: even "too many clients" proves that
/// the owner lives.
async fn answers(dir: &Path) -> Result<(), NoAnswer> {
    let ask = async {
        let mut stream = match socket::reach(dir).await? {
            Ok(stream) => stream,
            Err(user) => return Ok(Err(NoAnswer::Stranger(user))),
        };
        stream.write_all(b"PING\r\n").await?;
        stream.read_u8().await.map(|_| Ok(()))
    };
    match timeout(ANSWER_WAIT, ask).await {
        Ok(Ok(answer)) => answer,
        Ok::<io::Result<_>, _>(Err(_)) | Err(_) => Err(NoAnswer::Yet),
    }
}

fn refused(dir: &Path, action: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::Directory {
        path: dir.to_owned(),
        action,
        source,
    }
}

/// An open data directory that this process owns: the engine, its log, and the sockets for other processes.
///
/// Dropping it without [`Self::close`] does the same without waiting for clients; the drop blocks until the log is on
/// the disk.
pub struct Owner {
    dir: PathBuf,
    handle: Handle,
    tcp: Option<SocketAddr>,
    lost: watch::Receiver<Option<Arc<LogError>>>,
    open: Option<Parts>,
}

/// The task that watches the directory, until dropped.
struct Monitor(JoinHandle<()>);

impl Drop for Monitor {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Parts that are released at the end.
struct Parts {
    monitor: Monitor,
    listener: Listener,
    log: Log,
    threads: Threads,
    lock: Lock,
}

impl std::fmt::Debug for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owner")
            .field("dir", &self.dir)
            .field("tcp", &self.tcp)
            .finish_non_exhaustive()
    }
}

impl Owner {
    async fn begin(
        dir: PathBuf,
        (lock, file): (Lock, File),
        options: Options,
    ) -> Result<Self, OpenError> {
        survive_file_limit();
        let handle = Handle::with_clock(options.clock);
        let (tcp, address) = match options.tcp {
            None => (None, None),
            Some(address) => {
                let bound = TcpListener::bind(address).await.and_then(|tcp| {
                    let address = tcp.local_addr()?;
                    Ok((Some(tcp), Some(address)))
                });
                bound.map_err(|source| OpenError::Tcp { address, source })?
            }
        };
        let (log, threads) = {
            let (dir, handle) = (dir.clone(), handle.clone());
            let claimed = (lock.claim(&dir), file);
            let load =
                move || Log::open(&dir, claimed, options.fsync, options.rewrite_min, &handle);
            tokio::task::spawn_blocking(load)
                .await
                .expect("loading a log does not panic")?
        };
        let unix = match socket::listen(&dir) {
            Ok(unix) => unix,
            Err(error) => {
                // The error of the socket is the one to report.
                let _: io::Result<()> = log.close(threads);
                log.release();
                return Err(refused(&dir, "listen in")(error));
            }
        };
        let unix = (unix, socket::path(&dir));
        let listener = Listener::start(&handle, unix, tcp, options.max_clients);
        let lost = log.lost();
        let watched = monitor::watch(dir.clone(), log.clone(), listener.control());
        let open = Some(Parts {
            monitor: Monitor(tokio::spawn(watched)),
            listener,
            log,
            threads,
            lock,
        });
        Ok(Self {
            dir,
            handle,
            tcp: address,
            lost,
            open,
        })
    }

    /// Returns the engine.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns the data directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the TCP address that it listens on, if there is one.
    #[must_use]
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.tcp
    }

    /// Returns the reason why the directory is no longer this process', if it is not: its lock or its log was deleted
    /// or replaced. The engine then refuses writes, and the clients are disconnected.
    #[must_use]
    pub fn is_lost(&self) -> Option<Arc<LogError>> {
        self.lost.borrow().clone()
    }

    /// Waits until the directory is no longer this process', and returns the reason.
    pub async fn lost(&self) -> Arc<LogError> {
        let mut lost = self.lost.clone();
        let found = lost.wait_for(Option::is_some).await;
        let reason = found.ok().and_then(|reason| reason.clone());
        match reason {
            Some(reason) => reason,
            // The log is closed.
            None => std::future::pending().await,
        }
    }

    /// Disconnects the clients (within three seconds), syncs the log, and releases the directory. Handles of the
    /// engine may still read afterwards; their writes are refused.
    ///
    /// # Errors
    /// The log could not be synced, or the directory is no longer this process'. The directory has been released.
    pub async fn close(mut self) -> Result<(), OpenError> {
        let Some(Parts {
            monitor,
            listener,
            log,
            threads,
            lock,
        }) = self.open.take()
        else {
            return Ok(());
        };
        drop(monitor);
        listener.stop().await;
        let dir = self.dir.clone();
        let end = move || release_directory(&dir, &log, threads, lock);
        let outcome = tokio::task::spawn_blocking(end).await;
        outcome
            .expect("closing a log does not panic")
            .map_err(refused(&self.dir, "close"))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(Parts {
            monitor,
            listener,
            log,
            threads,
            lock,
        }) = self.open.take()
        {
            drop((monitor, listener));
            if let Err(error) = release_directory(&self.dir, &log, threads, lock) {
                tracing::error!(dir = %self.dir.display(), %error, "cannot close");
            }
        }
    }
}

/// Lets a write beyond the limit on the size of files fail, as on a full disk. By default, its signal kills the process.
fn survive_file_limit() {
    let signal = SignalKind::from_raw(Signal::XFSZ.as_raw());
    // The handler stays for the life of the process; programs that it starts get the default again.
    if let Err(error) = tokio::signal::unix::signal(signal) {
        tracing::debug!(%error, "a write beyond the limit on the size of files would kill this process");
    }
}

/// The lock is released last, because the next owner uses everything after it.
fn release_directory(dir: &Path, log: &Log, threads: Threads, lock: Lock) -> io::Result<()> {
    let synced = log.close(threads);
    // Of a lost directory, the socket may be that of another owner.
    let removed = match &*log.lost().borrow() {
        Some(_) => Ok(()),
        None => socket::remove(dir),
    };
    log.release();
    drop(lock);
    synced.and(removed)
}
