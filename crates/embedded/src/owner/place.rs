//! Who else may change a data directory. What others can put there would be loaded as the log, written to
//! as the lock, or talked to as the owner.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use super::OpenError;

/// The group and all others may write.
const WRITABLE: u32 = 0o022;
/// All others may write.
const BY_ALL: u32 = 0o002;
/// In a directory that is so, nobody moves or removes what is not theirs.
const STICKY: u32 = 0o1000;

/// The user that this process runs as.
pub(super) fn own() -> u32 {
    geteuid().as_raw()
}

/// Refuses a data directory that belongs to somebody else, or that others may write to. A link to it is
/// followed: whoever named it may have named it so.
///
/// # Errors
/// [`OpenError::Foreign`], [`OpenError::Writable`]; [`OpenError::Directory`] when it cannot be looked at.
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

/// The directories above a data directory, if any, in which everybody may put another one in its place.
///
/// # Errors
/// When one of them cannot be looked at.
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
