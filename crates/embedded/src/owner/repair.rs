//! Checks the log of a data directory that no process uses, and cuts off what cannot be used.

use std::path::{Path, PathBuf};

use super::{OpenError, check_place, lock::Lock, refused};
use crate::log::{self, StoreCheck, lock_log};

/// A repair.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreRepair {
    /// State of the log before it.
    pub check: StoreCheck,
    /// File that keeps what was cut off.
    pub kept: Option<PathBuf>,
}

/// Reads the whole log of the data directory `dir`, with its checksums. Changes nothing.
///
/// # Errors
/// [`OpenError`]: a process uses the directory, or a file cannot be read.
pub fn check_store(dir: &Path) -> Result<StoreCheck, OpenError> {
    let (dir, _lock) = locked(dir)?;
    Ok(log::check(&dir)?)
}

/// Cuts the log of the data directory `dir` to the part before its first fault, and moves checksums that do not fit aside. What
/// is cut off is kept in a file beside it. A directory without a fault is not changed.
///
/// # Errors
/// [`OpenError`]: a process uses the directory, or a file cannot be read or written.
pub fn repair_store(dir: &Path) -> Result<StoreRepair, OpenError> {
    let (dir, _lock) = locked(dir)?;
    let check = log::check(&dir)?;
    let mut kept = None;
    if !check.faults.is_empty() {
        let Some(file) = lock_log(&dir)? else {
            return Err(used(dir));
        };
        kept = log::cut(&dir, &file, check.cut())?;
    }
    Ok(StoreRepair { check, kept })
}

/// Locks a directory, so that no owner begins meanwhile.
fn locked(dir: &Path) -> Result<(PathBuf, Lock), OpenError> {
    let dir = std::path::absolute(dir).map_err(refused(dir, "find"))?;
    std::fs::read_dir(&dir).map_err(refused(&dir, "read"))?;
    check_place(&dir)?;
    match Lock::try_take(&dir).map_err(refused(&dir, "lock"))? {
        Some(lock) => Ok((dir, lock)),
        None => Err(used(dir)),
    }
}

fn used(dir: PathBuf) -> OpenError {
    let holder = Lock::holder(&dir);
    OpenError::Used { path: dir, holder }
}
