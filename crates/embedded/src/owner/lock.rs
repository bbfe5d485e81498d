//! The lock that says which process a data directory belongs to. The system gives it back when
//! the process ends, however it ends.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

/// The file in the data directory. It is never removed: another process may be about to lock it.
const LOCK_FILE: &str = "lock";
/// What the holder writes about itself is read no further.
const MAX_HOLDER: u64 = 256;

/// The lock, held until dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock; `None` when another process has it.
    pub(super) fn try_take(dir: &Path) -> io::Result<Option<Self>> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            // It is emptied: never what a link leads to.
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
        Ok(Some(Self { _file: file }))
    }

    /// What the holder has written about itself.
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
