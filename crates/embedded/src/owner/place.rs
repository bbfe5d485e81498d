//! Write access of other users to a data directory. Their files would be loaded as the log, written to as the lock,
//! or connected to as the owner.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use super::OpenError;

/// Mode bits: writable for the group and all others.
const WRITABLE: u32 = 0o022;
/// Mode bit: writable for all others.
const BY_ALL: u32 = 0o002;
/// Mode bit: users can move or remove only their own files.
const STICKY: u32 = 0o1000;

/// Returns the user of this process.
pub(super) fn own() -> u32 {
    geteuid().as_raw()
}

/// Returns an error for a data directory that belongs to another user, or that others can write to. Links are
/// followed, because the user may have named one deliberately.
///
/// # Errors
/// [`OpenError::Foreign`], [`OpenError::Writable`]; [`OpenError::Directory`] if it cannot be read.
pub fn check_place(dir: &Path) -> Result<(), OpenError> {
    let about = fs::metadata(dir).map_err(|source| OpenError::Directory {
        path: dir.to_owned(),
        action: "look at",
        source,
    })?;
    let (path, own) = (dir.to_owned(), own());
    if about.uid() != own {
        let owner = about.uid();
        return Err(OpenError::Foreign { path, owner, own });
    }
    if about.mode() & WRITABLE != 0 {
        let mode = about.mode() & 0o7777;
        return Err(OpenError::Writable { path, mode });
    }
    Ok(())
}

/// Returns the parents of a data directory, if any, in which every user can replace it.
///
/// # Errors
/// One of them cannot be read.
pub fn open_parents(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut open = Vec::new();
    for parent in dir.canonicalize()?.ancestors().skip(1) {
        let mode = fs::metadata(parent)?.mode();
        if mode & BY_ALL != 0 && mode & STICKY == 0 {
            open.push(parent.to_owned());
        }
    }
    Ok(open)
}
