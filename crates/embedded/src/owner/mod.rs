//! A data directory and the one process it belongs to: who opens it first owns the engine, all
//! others attach through its socket. What the engine does is not known here.

mod error;
mod lock;
mod place;
mod socket;

use std::{
    fs::DirBuilder,
    io,
    net::SocketAddr,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

pub use error::OpenError;
use lock::Lock;
pub use place::{check_place, open_parents};
pub use socket::attach;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, UnixStream},
    time::{Instant, timeout},
};

use crate::{
    engine::Handle,
    listener::{Listener, MAX_CLIENTS},
    log::{Fsync, Log, Threads},
    world::Clock,
};

/// The first pause between two attempts to take the lock or to reach the one who has it.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
/// The longest such pause: what a take-over may lose by it.
const MAX_PAUSE: Duration = Duration::from_millis(50);
/// One attempt to get an answer; then the lock is tried again.
const ANSWER_WAIT: Duration = Duration::from_secs(1);
/// Below this length the log is not rewritten by itself: replaying so much takes about a second
/// on a busy machine.
const REWRITE_MIN: u64 = 64 * 1024 * 1024;
/// How long an owner may be silent, by default. One that has just begun replays some 50 MB of log
/// a second on a busy machine, so that even one with over a GB gets its time.
const ATTACH_WAIT: Duration = Duration::from_secs(30);

/// How long an owner may be silent before the wait is told.
const TELL_AFTER: Duration = Duration::from_secs(2);

/// How a data directory is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// When writes reach the disk.
    pub fsync: Fsync,
    /// The length of the log in bytes below which it is not rewritten by itself; above, it is
    /// when it has doubled.
    pub rewrite_min: u64,
    /// A loopback address to listen on besides the socket. Port 0 lets the system choose.
    pub tcp: Option<SocketAddr>,
    /// Clients at the same time on all of its sockets together.
    pub max_clients: usize,
    /// How long to wait for a process that has the lock and does not answer.
    pub attach_wait: Duration,
    /// The time of the engine.
    pub clock: Clock,
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
        }
    }
}

/// What opening a data directory came to.
#[derive(Debug)]
pub enum Opened {
    /// It is ours.
    Owner(Owner),
    /// Another process has it and answers on its socket. When it goes away, connections break:
    /// open the directory again, and be its owner, or attach to the next one.
    Attach(Socket),
}

/// The way to the process that owns a data directory.
#[derive(Debug, Clone)]
pub struct Socket {
    dir: PathBuf,
}

impl Socket {
    /// A new connection, which speaks the Redis protocol.
    ///
    /// # Errors
    /// When the owner has gone, or takes no more clients.
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
    let mut told = false;
    loop {
        create(&dir)?;
        check_place(&dir)?;
        if let Some(lock) = Lock::try_take(&dir).map_err(refused(&dir, "lock"))? {
            return Owner::begin(dir, lock, options).await.map(Opened::Owner);
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
        if !told && start.elapsed() >= TELL_AFTER {
            tracing::warn!(dir = %dir.display(), holder = Lock::holder(&dir), "waiting for its owner");
            told = true;
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

/// Why nobody answers for a directory.
enum NoAnswer {
    /// There may be an answer a little later.
    Yet,
    /// The one who does runs as this user.
    Stranger(u32),
}

/// Whether the owner of `dir` answers. What it says does not matter: even "too many clients" is
/// said by one who is there.
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

/// An open data directory that is ours: the engine, its log, and the sockets on which others
/// reach it.
///
/// Dropped without [`Self::close`] it does the same without waiting for its clients; the drop
/// blocks until the log is on the disk.
pub struct Owner {
    dir: PathBuf,
    handle: Handle,
    tcp: Option<SocketAddr>,
    open: Option<Parts>,
}

/// What is given back at the end.
struct Parts {
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
    async fn begin(dir: PathBuf, lock: Lock, options: Options) -> Result<Self, OpenError> {
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
            let load = move || Log::open(&dir, options.fsync, options.rewrite_min, &handle);
            tokio::task::spawn_blocking(load)
                .await
                .expect("loading a log does not panic")?
        };
        let unix = match socket::listen(&dir) {
            Ok(unix) => unix,
            Err(error) => {
                // The error of the socket is the one to be told.
                let _: io::Result<()> = log.close(threads);
                return Err(refused(&dir, "listen in")(error));
            }
        };
        let unix = (unix, socket::path(&dir));
        let listener = Listener::start(&handle, unix, tcp, options.max_clients);
        let open = Some(Parts {
            listener,
            log,
            threads,
            lock,
        });
        Ok(Self {
            dir,
            handle,
            tcp: address,
            open,
        })
    }

    /// The engine.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The data directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The TCP address it listens on, if it was asked to.
    #[must_use]
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.tcp
    }

    /// Lets the clients go (within three seconds), writes the log to the disk, and gives the
    /// directory back. Handles of the engine may still read afterwards; their writes are refused.
    ///
    /// # Errors
    /// When the log could not be written to the disk. The directory has been given back.
    pub async fn close(mut self) -> Result<(), OpenError> {
        let Some(Parts {
            listener,
            log,
            threads,
            lock,
        }) = self.open.take()
        else {
            return Ok(());
        };
        listener.stop().await;
        let dir = self.dir.clone();
        let end = move || give_back(&dir, &log, threads, lock);
        let outcome = tokio::task::spawn_blocking(end).await;
        outcome
            .expect("closing a log does not panic")
            .map_err(refused(&self.dir, "close"))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(Parts {
            listener,
            log,
            threads,
            lock,
        }) = self.open.take()
        {
            drop(listener);
            if let Err(error) = give_back(&self.dir, &log, threads, lock) {
                tracing::error!(dir = %self.dir.display(), %error, "cannot close");
            }
        }
    }
}

/// The lock goes last: what follows is the next owner's.
fn give_back(dir: &Path, log: &Log, threads: Threads, lock: Lock) -> io::Result<()> {
    let synced = log.close(threads);
    let removed = socket::remove(dir);
    drop(lock);
    synced.and(removed)
}
