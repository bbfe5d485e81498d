//! Checksums beside the log. Redis' format has none, so a flipped bit in a value would be loaded silently.
//!
//! `appendonly.aof.sums` has an entry for each synced stretch of the log. An annotation in the log has the id of that
//! file, so that checksums never apply to another log. An entry is written after its stretch is on the disk. A crash
//! between the two leaves a stretch without an entry, which the next owner adds. Redis ignores both.
//! [`mod@examine`] reads both, also where one of them is damaged.

mod examine;

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use crc32fast::Hasher;

use super::{KEPT_SUMS_FILE, LogError, SUMS_FILE};
pub(super) use examine::{Examined, examine};

/// Start of the file, with the version of its format.
const MAGIC: &[u8; 8] = b"MWSUMS1\n";
/// Characters of an id: 64 random bits.
const ID: usize = 16;
/// Bytes of the file before the entries: the magic, the id, and the position of the annotation in the log.
const HEADER: usize = MAGIC.len() + ID + 8;
/// Bytes of an entry: the end of its stretch, its sum, and a check of the entries up to this one.
const ENTRY: usize = 16;
/// Bytes in one read of the log.
const CHUNK: usize = 256 * 1024;
/// Greatest number of entries that wait for a disk with space. Then the file is given up until the next rewrite.
const MOST_READY: usize = 4096;

/// A stretch of the log, from the end of the stretch before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    end: u64,
    sum: u32,
}

/// The checksums of a log, and the file that keeps them.
#[derive(Debug)]
pub(super) struct Sums {
    path: PathBuf,
    /// The open file, once it has a header.
    file: Option<File>,
    /// Id in the annotation, and the position of the annotation.
    id: Option<(String, u64)>,
    /// True if the annotation is in the log.
    begun: bool,
    /// Number of entries in the file.
    written: u64,
    /// Check of the last of them.
    check: u32,
    /// Finished stretches that are not in the file yet.
    ready: Vec<Entry>,
    /// Start of the present stretch.
    from: u64,
    /// End of the log.
    end: u64,
    stretch: Hasher,
    given_up: bool,
}

impl Sums {
    /// Returns the checksums of an empty log in `dir`.
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            path: dir.join(SUMS_FILE),
            file: None,
            id: None,
            begun: false,
            written: 0,
            check: 0,
            ready: Vec::new(),
            from: 0,
            end: 0,
            stretch: Hasher::new(),
            given_up: false,
        }
    }

    /// Continues with the checksums that were read, if the log and they are whole. Otherwise keeps a copy of them, and begins
    /// anew.
    ///
    /// # Errors
    /// A stretch of the log has changed since it was written, or a file cannot be read or written.
    pub(super) fn continued(dir: &Path, log: &Path, found: &Examined) -> Result<Self, LogError> {
        if let Some((from, to)) = found.damage {
            let path = log.to_owned();
            return Err(LogError::Damaged { path, from, to });
        }
        let mut sums = Self::new(dir);
        if !found.is_there {
            return Ok(sums);
        }
        let Some((id, written)) = found.continues() else {
            found.warn(log);
            // A full disk or a missing right must not keep the owner out.
            if let Err(error) = keep(dir) {
                tracing::warn!(%error, "the checksums are not kept");
            }
            return Ok(sums);
        };
        let file = OpenOptions::new().read(true).write(true).open(&sums.path);
        sums.file = Some(file.map_err(LogError::io(&sums.path, "open"))?);
        (sums.id, sums.begun) = (Some(id), true);
        (sums.written, sums.check) = (written, found.check);
        (sums.from, sums.end) = (found.end, found.end);
        Ok(sums)
    }

    /// Adds the bytes of the log up to `len`, which have no checksum yet.
    pub(super) fn catch_up(mut self, dir: &Path, log: &File, len: u64) -> io::Result<Self> {
        if len < self.from {
            self = Self::new(dir);
        }
        self.add_from(log, len)?;
        Ok(self)
    }

    fn add_from(&mut self, log: &File, to: u64) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        self.end = self.from;
        while self.end < to {
            let size = usize::try_from(to - self.end).unwrap_or(CHUNK).min(CHUNK);
            log.read_exact_at(&mut chunk[..size], self.end)?;
            self.add(&chunk[..size]);
        }
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) {
        self.stretch.update(bytes);
        self.end += bytes.len() as u64;
    }

    /// Returns the annotation to write at the end of the log, `at`; `None` if the log has it.
    pub(super) fn annotation(&mut self, at: u64) -> Option<Vec<u8>> {
        if self.begun {
            return None;
        }
        let id = format!("{:016x}", rand::random::<u64>());
        let line = line(&id);
        self.id = Some((id, at));
        Some(line)
    }

    /// Adds bytes that were appended to the log, with the annotation if there was one.
    pub(super) fn appended(&mut self, bytes: &[u8]) {
        self.begun = self.id.is_some();
        self.add(bytes);
    }

    /// Ends the present stretch if it has at least `least` bytes.
    pub(super) fn cut(&mut self, least: u64) {
        if self.begun && self.end - self.from >= least.max(1) {
            let sum = std::mem::take(&mut self.stretch).finalize();
            self.from = self.end;
            self.ready.push(Entry { end: self.end, sum });
        }
    }

    /// Writes finished stretches, which must be on the disk. Without space, they wait for the next call.
    pub(super) fn write(&mut self) {
        if self.given_up || self.ready.is_empty() {
            return;
        }
        let failed = match self.try_write() {
            Ok(()) => return,
            Err(error) => error,
        };
        if self.ready.len() > MOST_READY {
            self.given_up = true;
            self.ready = Vec::new();
            tracing::warn!(file = %self.path.display(), error = %failed, "the log has no checksums until its next rewrite");
        } else {
            tracing::debug!(file = %self.path.display(), error = %failed, "cannot write checksums");
        }
    }

    fn try_write(&mut self) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.create()?,
        };
        let mut bytes = Vec::with_capacity(self.ready.len() * ENTRY);
        let mut check = self.check;
        for entry in &self.ready {
            check = check_of(check, *entry);
            bytes.extend_from_slice(&entry.end.to_le_bytes());
            bytes.extend_from_slice(&entry.sum.to_le_bytes());
            bytes.extend_from_slice(&check.to_le_bytes());
        }
        let outcome = file.write_all_at(&bytes, HEADER as u64 + self.written * ENTRY as u64);
        self.file = Some(file);
        outcome?;
        (self.check, self.written) = (check, self.written + self.ready.len() as u64);
        self.ready.clear();
        Ok(())
    }

    fn create(&self) -> io::Result<File> {
        let (id, at) = self.id.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(id.as_bytes());
        header.extend_from_slice(&at.to_le_bytes());
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&self.path)?;
        file.write_all_at(&header, 0)?;
        Ok(file)
    }
}

/// Keeps a copy of checksums that do not fit the log, in place of an earlier copy.
pub(super) fn keep(dir: &Path) -> Result<(), LogError> {
    let kept = dir.join(KEPT_SUMS_FILE);
    let copied = std::fs::copy(dir.join(SUMS_FILE), &kept);
    copied.map(drop).map_err(LogError::io(&kept, "write"))
}

/// Returns the check of the entries up to this one.
fn check_of(before: u32, entry: Entry) -> u32 {
    let mut check = Hasher::new_with_initial(before);
    check.update(&entry.end.to_le_bytes());
    check.update(&entry.sum.to_le_bytes());
    check.finalize()
}

fn line(id: &str) -> Vec<u8> {
    format!("#SUMS:{id}\r\n").into_bytes()
}
