//! Opens the log of a data directory: refuses foreign files, replays whole transactions, cuts off a torn end.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use super::{
    LOG_FILE, LogError, TEMP_FILE,
    read::{Item, LogReader, ReadError},
    sums::{Sums, examine},
};
use crate::store::{DATABASES, Effect};

/// Bytes in one read.
pub(super) const CHUNK: usize = 64 * 1024;
/// Number of torn ends that are kept; the oldest are removed first. No client got a reply for these writes, so they
/// are only evidence. If a damaged length earlier in the file makes all that follows look like a torn write, however,
/// they are the only copy.
const TORN_KEPT: usize = 8;
/// Start of an RDB image, of Redis and of Valkey.
const RDB: [&[u8]; 2] = [b"REDIS", b"VALKE"];
/// Directory that a Redis server creates after it has loaded the log.
pub(super) const SERVER_DIR: &str = "appendonlydir";

/// A replayed log.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) path: PathBuf,
    /// Open for reading and appending.
    pub(super) file: File,
    /// Its length.
    pub(super) len: u64,
    /// Its length after its last rewrite; 0 if it was never rewritten.
    pub(super) base: u64,
    /// Its checksums.
    pub(super) sums: Sums,
}

/// Replays the locked log of `dir`: passes every transaction to `replay`.
pub(super) fn load(
    dir: &Path,
    file: File,
    mut replay: impl FnMut(&[Effect]) -> Result<(), String>,
) -> Result<Loaded, LogError> {
    let path = dir.join(LOG_FILE);
    refuse_rdb(&path, &file)?;
    let sums = Sums::continued(dir, &path, &examine(dir, &path, &file)?)?;
    let Content { len, base, torn } = read_all(&path, &file, &mut replay)?;
    if torn {
        let (bytes, aside) = cut_torn(dir, &path, &file, len)?;
        tracing::warn!(
            log = %path.display(),
            bytes,
            offset = len,
            kept_in = %aside.display(),
            "the log ends in the middle of a write; cut back to the last whole transaction",
        );
    }
    remove_leftover(&dir.join(TEMP_FILE))?;
    let sums = sums.catch_up(dir, &file, len);
    let sums = sums.map_err(LogError::io(&path, "read"))?;
    Ok(Loaded {
        path,
        file,
        len,
        base,
        sums,
    })
}

/// The extent of a file that was read to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Content {
    /// Bytes of whole transactions.
    pub(super) len: u64,
    /// Bytes at the end of the last rewrite; 0 if there was none.
    pub(super) base: u64,
    /// True if the file ends within a transaction.
    pub(super) torn: bool,
}

/// Reads a file from its start, and passes every transaction to `replay`.
pub(super) fn read_all(
    path: &Path,
    file: &File,
    mut replay: impl FnMut(&[Effect]) -> Result<(), String>,
) -> Result<Content, LogError> {
    let mut reader = LogReader::new(BufReader::with_capacity(CHUNK, file));
    let mut base = 0;
    let torn = loop {
        match reader.next() {
            Ok(None) => break false,
            Ok(Some(Item::Rewritten)) => base = reader.whole(),
            Ok(Some(Item::Transaction { effects, start })) => {
                replay(&effects).map_err(|reply| LogError::Replay {
                    path: path.to_owned(),
                    offset: start,
                    reply,
                })?;
            }
            Err(ReadError::Torn) => break true,
            Err(ReadError::Garbage { start, at, what }) => {
                // After a power loss, the file may end with zeros.
                if zeros_to_the_end(path, at)? {
                    break true;
                }
                return Err(LogError::Corrupt {
                    path: path.to_owned(),
                    offset: start,
                    what,
                });
            }
            Err(ReadError::Database { start, index }) => {
                return Err(LogError::Database {
                    path: path.to_owned(),
                    offset: start,
                    index,
                    count: DATABASES,
                });
            }
            Err(ReadError::Io(error)) => return Err(LogError::io(path, "read")(error)),
        }
    };
    let len = reader.whole();
    Ok(Content { len, base, torn })
}

/// Opens the log, and creates it if there is none.
pub(super) fn open_log(dir: &Path, path: &Path) -> Result<File, LogError> {
    if dir.join(SERVER_DIR).exists() {
        return Err(LogError::TakenOver {
            path: dir.to_owned(),
        });
    }
    let fresh = !path.exists();
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(LogError::io(path, "open"))?;
    if fresh {
        // Otherwise, a power loss could remove the name of a synced file.
        sync_dir(dir)?;
    }
    Ok(file)
}

pub(super) fn sync_dir(dir: &Path) -> Result<(), LogError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(LogError::io(dir, "sync"))
}

pub(super) fn refuse_rdb(path: &Path, mut file: &File) -> Result<(), LogError> {
    let mut start = Vec::new();
    file.take(5)
        .read_to_end(&mut start)
        .and_then(|_| file.rewind())
        .map_err(LogError::io(path, "read"))?;
    if RDB.contains(&&start[..]) {
        Err(LogError::Rdb {
            path: path.to_owned(),
        })
    } else {
        Ok(())
    }
}

pub(super) fn zeros_to_the_end(path: &Path, at: u64) -> Result<bool, LogError> {
    let zeros = || -> io::Result<bool> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(at))?;
        let mut chunk = vec![0; CHUNK];
        loop {
            match file.read(&mut chunk)? {
                0 => return Ok(true),
                read if chunk[..read].iter().any(|byte| *byte != 0) => return Ok(false),
                _ => {}
            }
        }
    };
    zeros().map_err(LogError::io(path, "read"))
}

/// Copies the torn end to another file, then cuts the log back to `len`.
/// Returns the number of its bytes, and that file.
pub(super) fn cut_torn(
    dir: &Path,
    path: &Path,
    mut file: &File,
    len: u64,
) -> Result<(u64, PathBuf), LogError> {
    let aside = dir.join(format!("{LOG_FILE}.torn-{len}"));
    remove_old_tails(dir, &aside)?;
    let mut keep = || -> io::Result<u64> {
        file.seek(SeekFrom::Start(len))?;
        let mut copy = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&aside)?;
        let bytes = io::copy(&mut file, &mut copy)?;
        copy.flush()?;
        copy.sync_all()?;
        Ok(bytes)
    };
    let bytes = keep().map_err(LogError::io(&aside, "keep the torn end of the log in"))?;
    file.set_len(len)
        .and_then(|()| file.sync_all())
        .map_err(LogError::io(path, "cut back"))?;
    sync_dir(dir)?;
    Ok((bytes, aside))
}

/// Removes old torn ends, so that one more can be kept.
fn remove_old_tails(dir: &Path, next: &Path) -> Result<(), LogError> {
    let prefix = format!("{LOG_FILE}.torn-");
    let list = || -> io::Result<Vec<_>> {
        let mut tails = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let tail = entry.file_name().to_string_lossy().starts_with(&prefix);
            if tail && entry.path() != next {
                tails.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        Ok(tails)
    };
    let mut tails = list().map_err(LogError::io(dir, "list"))?;
    tails.sort();
    let surplus = (tails.len() + 1).saturating_sub(TORN_KEPT);
    for (_, tail) in tails.drain(..surplus) {
        fs::remove_file(&tail).map_err(LogError::io(&tail, "remove"))?;
    }
    Ok(())
}

/// Removes the file of an incomplete rewrite.
fn remove_leftover(temp: &Path) -> Result<(), LogError> {
    match fs::remove_file(temp) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(LogError::io(temp, "remove")(error))
        }
        _ => Ok(()),
    }
}
