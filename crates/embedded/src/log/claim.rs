//! The claim of an owner on its data directory: locks on the lock file and on the log. A deleted or replaced file can be
//! locked by a second owner, so the names must still lead to the locked files.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{LOG_FILE, LogError, load};

/// Number of rewrites that may replace the log while it is being locked.
const LOCK_TRIES: usize = 16;

/// The locked files beside the log.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    dir: PathBuf,
    lock: Arc<File>,
    /// Name of the lock file.
    name: &'static str,
}

impl Claim {
    /// Returns the claim of the process that has locked `lock`, the file `name` in `dir`.
    pub(crate) fn new(dir: &Path, name: &'static str, lock: Arc<File>) -> Self {
        Self {
            dir: dir.to_owned(),
            lock,
            name,
        }
    }

    /// Checks that the names of the lock and of `log` still lead to the locked files.
    pub(super) fn check(&self, log: &File) -> Result<(), LogError> {
        for (name, file) in [(self.name, &*self.lock), (LOG_FILE, log)] {
            if !leads_to(&self.dir.join(name), file) {
                let dir = self.dir.clone();
                return Err(LogError::Lost { dir, file: name });
            }
        }
        Ok(())
    }

    /// Unlocks all files, so that another process can own the directory.
    pub(super) fn release(&self, log: &File) {
        for file in [log, &*self.lock] {
            if let Err(error) = file.unlock() {
                tracing::warn!(dir = %self.dir.display(), %error, "cannot unlock a file");
            }
        }
    }
}

/// Returns whether `path` leads to this open file. A path that cannot be looked up proves nothing.
fn leads_to(path: &Path, file: &File) -> bool {
    let identity = |about: fs::Metadata| (about.dev(), about.ino());
    match (fs::metadata(path), file.metadata()) {
        (Ok(named), Ok(open)) => identity(named) == identity(open),
        (Err(error), _) => !matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ),
        (Ok(_), Err(_)) => true,
    }
}

/// Opens the log in `dir` and locks it; `None` if another process has locked it.
pub(crate) fn lock_log(dir: &Path) -> Result<Option<File>, LogError> {
    let path = dir.join(LOG_FILE);
    for _ in 0..LOCK_TRIES {
        let file = load::open_log(dir, &path)?;
        if !lock(&file).map_err(LogError::io(&path, "lock"))? {
            return Ok(None);
        }
        // Otherwise a rewrite has replaced the file since it was opened.
        if leads_to(&path, &file) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// Locks a file; false if another process has locked it.
pub(super) fn lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
