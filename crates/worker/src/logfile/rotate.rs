//! Rotates full log files: `name` becomes `name.1`, the earlier `name.1` is compressed to `name.2.gz`, and so on up to
//! [`KEPT`]. The oldest file is deleted.

use std::fs::File;
use std::io;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, renameat, unlinkat,
};
use rustix::io::Errno;

use super::place::LogPath;

/// Number of rotated files to keep.
pub(super) const KEPT: usize = 5;

/// Prevents rotation of a file until the returned guard is dropped. Several writers may hold it.
pub(super) fn hold(file: &File) -> io::Result<impl Drop> {
    match flock(file, FlockOperation::LockShared) {
        // Without locks, no file is rotated.
        Ok(()) | Err(Errno::NOTSUP | Errno::NOLCK) => Ok(Held(file)),
        Err(error) => Err(error.into()),
    }
}

struct Held<'a>(&'a File);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // The lock ends with the file at the latest.
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// Rotates the file, unless another run has done so.
pub(super) fn rotate(place: &LogPath, full: &File) -> io::Result<()> {
    // The lock belongs to the open file, so it ends with this process.
    flock(full, FlockOperation::LockExclusive)?;
    let rotated = locked(place, full);
    let unlocked = flock(full, FlockOperation::Unlock);
    rotated.and(Ok(unlocked?))
}

fn locked(place: &LogPath, full: &File) -> io::Result<()> {
    if !place.is(full)? {
        return Ok(());
    }
    let dir = &*place.dir;
    let archive = |nth: usize| format!("{}.{nth}.gz", place.name);
    let first = format!("{}.1", place.name);
    for nth in (2..KEPT).rev() {
        absent_is_fine(renameat(dir, archive(nth), dir, archive(nth + 1)))?;
    }
    compress(place, &first, &archive(2))?;
    renameat(dir, &place.name, dir, &first)?;
    Ok(())
}

/// Compresses a file under another name, if the file exists.
fn compress(place: &LogPath, from: &str, to: &str) -> io::Result<()> {
    let dir = &*place.dir;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let source = match openat(dir, from, OFlags::RDONLY | flags, Mode::empty()) {
        Ok(source) => source,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if FileType::from_raw_mode(fstat(&source)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other(format!("{from} is no regular file")));
    }
    // The final name appears only when the file is complete.
    let part = format!("{to}.part");
    absent_is_fine(unlinkat(dir, &part, AtFlags::empty()))?;
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | flags;
    let target = openat(dir, &part, new, Mode::RUSR | Mode::WUSR)?;
    let mut encoder = GzEncoder::new(File::from(target), Compression::default());
    io::copy(&mut File::from(source), &mut encoder)?;
    encoder.finish()?;
    renameat(dir, &part, dir, to)?;
    unlinkat(dir, from, AtFlags::empty())?;
    Ok(())
}

fn absent_is_fine(done: rustix::io::Result<()>) -> io::Result<()> {
    match done {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
