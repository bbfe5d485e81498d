//! Replaces the log by commands that create the present data, while writes continue.
//!
//! The engine is locked twice: for the snapshot, and while the last writes are copied and synced. Measured with
//! 100,000 jobs (a hash of six fields and two index entries each, 45 MB of log) on two busy cores: 3 to 18 ms for the
//! snapshot, in proportion to the number of keys, because values are shared until they are changed; 25 to 60 ms for
//! the last writes, whatever the size. Everything else happens on a separate thread. The old log stays whole and in
//! its place until one rename. A rewrite that fails or crashes before that leaves a file, which the next open
//! removes.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    LOG_FILE, LogError, Shared, State, TEMP_FILE, append::encode_transaction, claim,
    load::sync_dir, read::REWRITTEN, reserve::Reserve, sums::Sums,
};
use crate::engine::Handle;

/// Bytes in one read or write; between two of them a close is noticed.
const CHUNK: usize = 256 * 1024;
/// Greatest number of bytes that may remain when the engine is locked.
const LAST_STRETCH: u64 = 1024 * 1024;
/// Number of bytes with a checksum of their own, so that an error names a place.
const STRETCH: u64 = 1024 * 1024;
/// Number of tries to get below that. If writers are faster than the copy for so long, more bytes remain.
const CATCH_UP_ROUNDS: u32 = 16;

/// Phase of a rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No rewrite.
    Idle,
    /// Requested.
    Requested,
    /// Started; the snapshot is not taken yet.
    Begun,
    /// Snapshot taken; bytes from `from` on are not in it.
    Snapshot { from: u64 },
}

/// The reason why a rewrite failed.
#[derive(Debug, thiserror::Error)]
enum RewriteError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("rewrite of the log: the engine holds writes that the log has refused")]
    Behind,
    #[error("rewrite of the log: given up, the data directory is lost")]
    Lost,
    #[error("rewrite of the log: given up, the data directory is being closed")]
    Closed,
}

/// Returns the length at which a log is rewritten that had `base` bytes after its last rewrite: twice the size.
pub(super) fn due_at(base: u64, min: u64) -> u64 {
    (base * 2).max(min)
}

impl State {
    /// Called when the engine's data and the log are at the same point.
    pub(super) fn snapshot_taken(&mut self) {
        // Refused writes are in the snapshot, and will be appended again. In this case the phase stays, and the
        // rewrite is cancelled.
        if self.rewrite == Phase::Begun && !self.append_failed {
            self.rewrite = Phase::Snapshot {
                from: self.appender.len(),
            };
            self.appender.forget_database();
        }
    }
}

/// Main loop of the thread: one rewrite for each request, until the log is closed.
pub(super) fn run(shared: &Shared, handle: &Handle, dir: &Path) {
    loop {
        let state = shared.lock();
        let idle = |state: &mut State| !state.closed && state.rewrite == Phase::Idle;
        let mut state = shared
            .to_rewrite
            .wait_while(state, idle)
            .expect("no panic under it");
        if state.closed {
            return;
        }
        state.rewrite = Phase::Begun;
        drop(state);
        let outcome = rewrite(shared, handle, dir);
        let mut state = shared.lock();
        state.rewrite = Phase::Idle;
        state.rewrite_failed = outcome.is_err();
        match outcome {
            Ok(()) | Err(RewriteError::Closed) => {}
            Err(error) => {
                tracing::error!(%error, "the log was not rewritten; it stays as it is");
                // The next automatic attempt waits until the log has grown by half.
                let len = state.appender.len();
                state.rewrite_at = (len + len / 2).max(shared.rewrite_min);
            }
        }
    }
}

fn rewrite(shared: &Shared, handle: &Handle, dir: &Path) -> Result<(), RewriteError> {
    let mut next = NextLog::create(dir)?;
    let snapshot = handle.snapshot();
    let Phase::Snapshot { from } = shared.phase() else {
        return Err(RewriteError::Behind);
    };
    let mut buffer = Vec::with_capacity(CHUNK);
    let mut db = None;
    for effect in snapshot.snapshot() {
        db = encode_transaction(std::slice::from_ref(&effect), db, &mut buffer);
        if buffer.len() >= CHUNK {
            shared.still_open()?;
            next.write(&buffer)?;
            buffer.clear();
        }
    }
    buffer.extend_from_slice(REWRITTEN);
    next.write(&buffer)?;
    let base = next.len;
    let from = catch_up(shared, &mut next, from)?;
    next.sync()?;

    let mut state = shared.lock();
    if state.closed {
        return Err(RewriteError::Closed);
    }
    let old = Arc::clone(state.appender.file());
    next.copy(&old, from..state.appender.len())?;
    if shared.check_claim(&mut state).is_err() {
        return Err(RewriteError::Lost);
    }
    let mut reserve = Reserve::default();
    // If there is no space for it beside the old log, there may be when that is gone.
    let _ = reserve.make(next.file(), next.len, 0);
    let (file, len, sums) = next.put_in_place(dir)?;
    state.appender.replace((file, sums), len, reserve);
    state.synced = state.written;
    state.base = base;
    state.rewrite_at = due_at(base, shared.rewrite_min);
    // Until then, a power loss brings the old log back, without later writes.
    sync_dir(dir).inspect_err(|error| state.appender.sync_failed(error))?;
    tracing::info!(bytes = len, "rewrote the log");
    Ok(())
}

/// Copies the bytes that were appended meanwhile, and returns the end position.
fn catch_up(shared: &Shared, next: &mut NextLog, mut from: u64) -> Result<u64, RewriteError> {
    for _ in 0..CATCH_UP_ROUNDS {
        let (old, len) = {
            let state = shared.lock();
            (Arc::clone(state.appender.file()), state.appender.len())
        };
        if len - from <= LAST_STRETCH {
            break;
        }
        shared.still_open()?;
        next.copy(&old, from..len)?;
        from = len;
    }
    Ok(from)
}

impl Shared {
    fn phase(&self) -> Phase {
        self.lock().rewrite
    }

    fn still_open(&self) -> Result<(), RewriteError> {
        if self.lock().closed {
            Err(RewriteError::Closed)
        } else {
            Ok(())
        }
    }
}

/// The new log, which removes its file unless it was put in place.
struct NextLog {
    path: PathBuf,
    file: Option<File>,
    len: u64,
    sums: Sums,
}

impl NextLog {
    fn create(dir: &Path) -> Result<Self, LogError> {
        let path = dir.join(TEMP_FILE);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(LogError::io(&path, "create"))?;
        // It is locked before it becomes the log, so that no second owner can open it.
        claim::lock(&file).map_err(LogError::io(&path, "lock"))?;
        let mut sums = Sums::new(dir);
        let annotation = sums.annotation(0).unwrap_or_default();
        let mut next = Self {
            path,
            file: Some(file),
            len: 0,
            sums,
        };
        next.write(&annotation)?;
        Ok(next)
    }

    fn file(&self) -> &File {
        self.file
            .as_ref()
            .expect("taken only when it is put in place")
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        self.file()
            .write_all(bytes)
            .map_err(LogError::io(&self.path, "write"))?;
        self.len += bytes.len() as u64;
        self.sums.appended(bytes);
        self.sums.cut(STRETCH);
        Ok(())
    }

    fn copy(&mut self, old: &File, range: std::ops::Range<u64>) -> Result<(), LogError> {
        let mut chunk = vec![0; CHUNK];
        let mut at = range.start;
        while at < range.end {
            let size = usize::try_from(range.end - at).unwrap_or(CHUNK).min(CHUNK);
            let chunk = &mut chunk[..size];
            old.read_exact_at(chunk, at)
                .map_err(LogError::io(&self.path, "copy the log to"))?;
            self.write(chunk)?;
            at += size as u64;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), LogError> {
        self.file()
            .sync_all()
            .map_err(LogError::io(&self.path, "sync"))
    }

    /// Renames the file to that of the log, which is the decisive step. From now on, appends must go to it.
    fn put_in_place(mut self, dir: &Path) -> Result<(File, u64, Sums), LogError> {
        self.sync()?;
        let log = dir.join(LOG_FILE);
        fs::rename(&self.path, &log).map_err(LogError::io(&log, "replace"))?;
        let file = self.file.take().expect("put in place once");
        // The file of the old log's checksums no longer counts, since its id is not in the new log.
        let mut sums = std::mem::replace(&mut self.sums, Sums::new(dir));
        sums.cut(1);
        sums.write();
        Ok((file, self.len, sums))
    }
}

impl Drop for NextLog {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _: io::Result<()> = fs::remove_file(&self.path);
        }
    }
}
