//! The lock of a data directory's owner. The system releases it when the process ends, in any way.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::Arc,
};

use rustix::fs::OFlags;

use crate::log::Claim;

/// File in the data directory. It is never removed: another process may be about to lock it.
pub(super) const LOCK_FILE: &str = "lock";
/// Greatest length that is read of the owner's description.
const MAX_HOLDER: u64 = 256;

/// The lock. The system releases it with the last claim on the directory.
#[derive(Debug)]
pub(super) struct Lock {
    file: Arc<File>,
}

impl Lock {
    /// Takes the lock; `None` if another process has it.
    pub(super) fn try_take(dir: &Path) -> io::Result<Option<Self>> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            // The file is truncated, which must not happen to the target of a link.
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(dir.join(LOCK_FILE))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        file.set_len(0)?;
        let system = rustix::system::uname();
        let host = system.nodename().to_string_lossy();
        write!(file, "process {} on {host}", std::process::id())?;
        let file = Arc::new(file);
        Ok(Some(Self { file }))
    }

    /// Returns the claim on `dir` that the lock gives.
    pub(super) fn claim(&self, dir: &Path) -> Claim {
        Claim::new(dir, LOCK_FILE, Arc::clone(&self.file))
    }

    /// Returns the owner's description.
    pub(super) fn holder(dir: &Path) -> String {
        let read = || -> io::Result<String> {
            let mut text = Vec::new();
            File::open(dir.join(LOCK_FILE))?
                .take(MAX_HOLDER)
                .read_to_end(&mut text)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        read()
            .ok()
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| "unknown".to_owned())
    }
}
