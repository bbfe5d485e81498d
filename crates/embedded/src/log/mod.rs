//! The append-only log: `appendonly.aof`, a plain append-only file of Redis.
//!
//! Every transaction is one write at the end; several commands are a group between MULTI and EXEC. A Redis server can
//! load the file. Opening replays it and cuts off a torn end. A rewrite in the background replaces it by commands
//! that create the present data. This module does not know the meaning of commands.

mod append;
mod check;
mod claim;
mod error;
mod import;
mod load;
mod read;
mod reserve;
mod rewrite;
mod sums;
mod sync;
#[cfg(test)]
mod tests;

use std::{
    fs::File,
    io,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::JoinHandle,
};

use append::Appender;
pub use check::{StoreCheck, StoreFault};
pub(crate) use check::{check, cut};
pub(crate) use claim::{Claim, lock_log};
pub use error::LogError;
pub(crate) use import::import;
use tokio::sync::watch;

use crate::{engine::Handle, store::Effect, world::Journal};

/// File in the data directory, with Redis' default name, so that a server finds it.
pub(crate) const LOG_FILE: &str = "appendonly.aof";
/// File with the checksums of the log.
pub(crate) const SUMS_FILE: &str = "appendonly.aof.sums";
/// Copy of checksums that did not fit the log.
pub(crate) const KEPT_SUMS_FILE: &str = "appendonly.aof.sums.kept";
/// File in which a rewrite builds the next log.
pub(crate) const TEMP_FILE: &str = "appendonly.aof.rewrite";

/// Least number of bytes with a checksum of their own if every write is synced, so that few are written.
const STRETCH: u64 = 64 * 1024;

/// Time at which a write is synced to the disk.
///
/// A crash of the process loses nothing in any of these modes; a crash of the machine may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fsync {
    /// Before the reply. Slow, and loses nothing.
    Always,
    /// A second after the write, in the background. Loses the last second.
    #[default]
    EverySecond,
    /// At a time that the system chooses, and at the close.
    No,
}

/// The log of an open engine. Clones share it: the engine appends by one, the owner of the data directory closes the
/// other.
#[derive(Clone)]
pub(crate) struct Log(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Wake-up for the syncing thread: the first write after a sync, or the end.
    to_sync: Condvar,
    /// Wake-up for the rewriting thread: a request, or the end.
    to_rewrite: Condvar,
    fsync: Fsync,
    rewrite_min: u64,
    claim: Claim,
    /// The reason why the directory is no longer this process', once it is not.
    lost: watch::Sender<Option<Arc<LogError>>>,
}

struct State {
    appender: Appender,
    /// Bytes appended since the start; in contrast to the length, this never shrinks.
    written: u64,
    /// Number of those bytes that are on the disk.
    synced: u64,
    rewrite: rewrite::Phase,
    /// Length that triggers a rewrite.
    rewrite_at: u64,
    /// Length after the last rewrite.
    base: u64,
    rewrite_failed: bool,
    append_failed: bool,
    closed: bool,
}

/// The threads of a log, which end when it is closed.
pub(crate) struct Threads(Vec<JoinHandle<()>>);

impl Log {
    /// Replays the log `file` of `dir` into `handle`. Below a length of `rewrite_min` bytes, the log is not rewritten
    /// automatically.
    ///
    /// Only one process may do so at a time; the caller has the locks of the directory and of the file.
    pub(crate) fn open(
        dir: &Path,
        (claim, file): (Claim, File),
        fsync: Fsync,
        rewrite_min: u64,
        handle: &Handle,
    ) -> Result<(Self, Threads), LogError> {
        let loaded = load::load(dir, file, |effects| {
            effects
                .iter()
                .try_for_each(|effect| handle.replay(effect.db, &effect.args))
        })?;
        let state = State {
            appender: Appender::new(&loaded.path, loaded.file, loaded.len, loaded.sums),
            // Loaded data may not have been synced.
            written: loaded.len,
            synced: 0,
            rewrite: rewrite::Phase::Idle,
            rewrite_at: rewrite::due_at(loaded.base, rewrite_min),
            base: loaded.base,
            rewrite_failed: false,
            append_failed: false,
            closed: false,
        };
        let log = Self(Arc::new(Shared {
            state: Mutex::new(state),
            to_sync: Condvar::new(),
            to_rewrite: Condvar::new(),
            fsync,
            rewrite_min,
            claim,
            lost: watch::Sender::new(None),
        }));
        handle.attach(Box::new(log.clone()));
        let mut threads = Threads(Vec::new());
        let started = log.start(dir, handle, &mut threads);
        if let Err(error) = started {
            let _ = log.close(threads);
            return Err(LogError::io(dir, "start a thread for the log of")(error));
        }
        Ok((log, threads))
    }

    fn start(&self, dir: &Path, handle: &Handle, threads: &mut Threads) -> io::Result<()> {
        let name = |name: &str| std::thread::Builder::new().name(name.to_owned());
        if self.0.fsync == Fsync::EverySecond {
            let shared = Arc::clone(&self.0);
            threads
                .0
                .push(name("log-sync").spawn(move || sync::run(&shared))?);
        }
        let (shared, handle, dir) = (Arc::clone(&self.0), handle.clone(), dir.to_owned());
        threads
            .0
            .push(name("log-rewrite").spawn(move || rewrite::run(&shared, &handle, &dir))?);
        self.0.ask_if_grown(&mut self.0.lock());
        Ok(())
    }

    /// Checks that the directory is still this process'. If not, refuses writes and unlocks the directory.
    pub(crate) fn check_claim(&self) -> io::Result<()> {
        self.0.check_claim(&mut self.0.lock())
    }

    /// Unlocks the directory, although handles of the engine may still keep its files open.
    pub(crate) fn release(&self) {
        let state = self.0.lock();
        self.0.claim.release(state.appender.file());
    }

    /// Returns the reason why the directory is no longer this process', and its changes.
    pub(crate) fn lost(&self) -> watch::Receiver<Option<Arc<LogError>>> {
        self.0.lost.subscribe()
    }

    /// Ends the threads (cancels a running rewrite) and waits until everything is on the disk. Later appends are
    /// refused.
    pub(crate) fn close(&self, threads: Threads) -> io::Result<()> {
        self.0.lock().closed = true;
        self.0.to_sync.notify_all();
        self.0.to_rewrite.notify_all();
        for thread in threads.0 {
            thread
                .join()
                .map_err(|_| io::Error::other("a thread of the log panicked"))?;
        }
        let mut state = self.0.lock();
        self.0.check_claim(&mut state)?;
        // If this fails the log is still whole; the next owner frees the space when it closes.
        let _ = state.appender.give_room_back();
        if state.synced != state.written {
            state.appender.sync()?;
            state.synced = state.written;
        }
        let sums = state.appender.sums();
        sums.cut(1);
        sums.write();
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("nothing that can panic is done under this lock")
    }

    fn check_claim(&self, state: &mut State) -> io::Result<()> {
        // A lost directory stays lost, even if somebody restores its files.
        if let Some(error) = &*self.lost.borrow() {
            return Err(io::Error::other(error.to_string()));
        }
        let Err(error) = self.claim.check(state.appender.file()) else {
            return Ok(());
        };
        tracing::error!(%error, "the data directory is lost; refusing writes");
        let refusal = error.to_string();
        state.appender.refuse(refusal.clone());
        self.claim.release(state.appender.file());
        self.lost.send_replace(Some(Arc::new(error)));
        Err(io::Error::other(refusal))
    }

    fn append(&self, effects: &[Effect]) -> io::Result<()> {
        let mut state = self.lock();
        let outcome = self.append_to(&mut state, effects);
        state.append_failed = outcome.is_err();
        outcome
    }

    fn make_room(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.lock();
        if state.closed {
            return Err(io::Error::other("the data directory is closed"));
        }
        state.appender.make_room(bytes)
    }

    fn append_to(&self, state: &mut State, effects: &[Effect]) -> io::Result<()> {
        if state.closed {
            return Err(io::Error::other("the data directory is closed"));
        }
        let before = state.appender.len();
        state.appender.append(effects)?;
        let all_synced = state.synced == state.written;
        state.written += state.appender.len() - before;
        match self.fsync {
            Fsync::Always => {
                self.check_claim(state)?;
                // If this fails the log refuses all writes: it may or may not have the transaction, as after a crash.
                state.appender.sync()?;
                state.synced = state.written;
                let sums = state.appender.sums();
                sums.cut(STRETCH);
                sums.write();
            }
            Fsync::EverySecond if all_synced => self.to_sync.notify_all(),
            Fsync::EverySecond | Fsync::No => {}
        }
        self.ask_if_grown(state);
        Ok(())
    }

    fn ask_if_grown(&self, state: &mut State) {
        if state.rewrite == rewrite::Phase::Idle && state.appender.len() >= state.rewrite_at {
            state.rewrite = rewrite::Phase::Requested;
            self.to_rewrite.notify_all();
        }
    }
}

impl Journal for Log {
    fn append(&mut self, effects: &[Effect]) -> io::Result<()> {
        self.0.append(effects)
    }

    fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        self.0.make_room(bytes)
    }

    fn snapshot_taken(&mut self) {
        self.0.lock().snapshot_taken();
    }

    fn start_rewrite(&mut self) -> Result<(), String> {
        let mut state = self.0.lock();
        if state.closed {
            return Err("ERR the data directory is closed".to_owned());
        }
        if state.rewrite != rewrite::Phase::Idle {
            return Err("ERR Background append only file rewriting already in progress".to_owned());
        }
        state.rewrite = rewrite::Phase::Requested;
        self.0.to_rewrite.notify_all();
        Ok(())
    }

    fn info(&self) -> Vec<String> {
        let state = self.0.lock();
        let status = if state.rewrite_failed { "err" } else { "ok" };
        vec![
            format!(
                "aof_rewrite_in_progress:{}",
                u8::from(state.rewrite != rewrite::Phase::Idle)
            ),
            format!("aof_last_bgrewrite_status:{status}"),
            format!("aof_current_size:{}", state.appender.len()),
            format!("aof_base_size:{}", state.base),
            format!(
                "aof_pending_bio_fsync:{}",
                u8::from(state.synced != state.written)
            ),
        ]
    }
}
