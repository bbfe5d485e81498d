//! Compares a log with its checksums, of which each may be damaged, cut or of another time.
//!
//! A single changed bit of an entry is found by the check of the entries, and corrected. So it never hides a change of the
//! log. Whether the checksums belong to the log is decided by the annotation with their id, of which some bytes may have
//! changed, or by a stretch that agrees.

use std::{fs::File, io, os::unix::fs::FileExt as _, path::Path};

use crc32fast::Hasher;

use super::super::{KEPT_SUMS_FILE, LogError, SUMS_FILE};
use super::{CHUNK, ENTRY, Entry, HEADER, ID, MAGIC, check_of};

/// Bytes of the annotation that may differ. Those of two logs differ in more: they are random.
const CHANGED: usize = 4;
/// Bytes of an entry without its check.
const DATA: usize = ENTRY - 4;

/// A log beside its checksums.
#[derive(Debug, Default)]
pub(in super::super) struct Examined {
    /// True if there are checksums.
    pub(in super::super) is_there: bool,
    /// Id, and the position of the annotation.
    id: Option<(String, u64)>,
    /// True if the annotation in the log has this id.
    is_exact: bool,
    /// True if they belong to this log.
    is_own: bool,
    /// True if bytes of the checksums were changed or cut.
    is_spoilt: bool,
    /// Number of entries.
    entries: u64,
    /// Check of the last entry.
    pub(super) check: u32,
    /// End of the last entry's stretch.
    pub(in super::super) end: u64,
    /// First stretch of the log that has changed.
    pub(in super::super) damage: Option<(u64, u64)>,
    /// Number of bytes that the log lacks at its end.
    pub(in super::super) missing: u64,
    /// Bytes of the log whose entries cannot be read.
    pub(in super::super) unchecked: Option<(u64, u64)>,
}

/// Examines the log in `dir`, and changes nothing.
///
/// # Errors
/// A file cannot be read.
pub(in super::super) fn examine(dir: &Path, path: &Path, log: &File) -> Result<Examined, LogError> {
    let sums = dir.join(SUMS_FILE);
    let bytes = match std::fs::read(&sums) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Examined::default()),
        Err(error) => return Err(LogError::io(&sums, "read")(error)),
    };
    let len = log.metadata().map_err(LogError::io(path, "look at"))?.len();
    Examined::of(log, len, &bytes).map_err(LogError::io(path, "read"))
}

impl Examined {
    fn of(log: &File, len: u64, bytes: &[u8]) -> io::Result<Self> {
        let mut found = Self {
            is_there: true,
            ..Self::default()
        };
        found.read_header(log, bytes);
        let all = found.read_entries(bytes.get(HEADER..).unwrap_or_default());
        let (mut from, mut matched, mut damage) = (0, false, None);
        // Start of bytes whose entry cannot be read, and with it the start of the next stretch.
        let mut lost = None;
        for entry in all {
            let Some(entry) = entry.filter(|entry| entry.end > from) else {
                found.is_spoilt = true;
                lost.get_or_insert(from);
                continue;
            };
            if entry.end > len {
                found.missing = entry.end - len;
                continue;
            }
            if let Some(start) = lost.take() {
                let first = found.unchecked.map_or(start, |(first, _)| first);
                found.unchecked = Some((first, entry.end));
            } else if sum_of(log, from, entry.end)? == entry.sum {
                matched = true;
            } else if damage.is_none() {
                damage = Some((from, entry.end));
            }
            from = entry.end;
        }
        if let Some(start) = lost.filter(|start| *start < len) {
            let first = found.unchecked.map_or(start, |(first, _)| first);
            found.unchecked = Some((first, len));
        }
        found.end = from;
        found.is_own |= matched;
        found.damage = damage.filter(|_| found.is_own);
        Ok(found)
    }

    fn read_header(&mut self, log: &File, bytes: &[u8]) {
        let Some(header) = bytes.get(..HEADER) else {
            self.is_spoilt = true;
            return;
        };
        let (magic, rest) = header.split_at(MAGIC.len());
        let (id, at) = rest.split_at(ID);
        let mut number = [0; 8];
        number.copy_from_slice(at);
        let at = u64::from_le_bytes(number);
        let line = [b"#SUMS:", id, b"\r\n"].concat();
        let differ = differing(log, &line, at);
        self.is_exact = differ == Some(0) && magic == MAGIC;
        let is_near = |at| differing(log, &line, at).is_some_and(|differ| differ <= CHANGED);
        // One bit of the position may have changed.
        self.is_own = is_near(at) || (0..u64::BITS).any(|bit| is_near(at ^ (1 << bit)));
        self.is_spoilt = !self.is_exact;
        self.id = Some((String::from_utf8_lossy(id).into_owned(), at));
    }

    /// Reads the entries; `None` for one that cannot be read.
    fn read_entries(&mut self, bytes: &[u8]) -> Vec<Option<Entry>> {
        let chunks = bytes.chunks_exact(ENTRY);
        // The rest of an interrupted write.
        self.is_spoilt |= !chunks.remainder().is_empty();
        let mut before = 0;
        let mut all = Vec::new();
        for chunk in chunks {
            let (data, check) = chunk.split_at(DATA);
            let check = u32::from_le_bytes([check[0], check[1], check[2], check[3]]);
            let entry = entry_of(data);
            let is_right = check_of(before, entry) == check;
            self.is_spoilt |= !is_right;
            let entry = match is_right {
                true => Some(entry),
                false => corrected(before, data, check),
            };
            before = entry.map_or(check, |entry| check_of(before, entry));
            all.push(entry);
        }
        (self.entries, self.check) = (all.len() as u64, before);
        all
    }

    /// Returns the id and the number of entries, if further ones can follow them.
    pub(super) fn continues(&self) -> Option<((String, u64), u64)> {
        let is_whole = self.is_exact && !self.is_spoilt && self.missing == 0;
        Some((self.id.clone().filter(|_| is_whole)?, self.entries))
    }

    /// Returns what is wrong, without changed bytes of the log; `None` if nothing is.
    pub(in super::super) fn fault(&self) -> Option<String> {
        if !self.is_there || self.continues().is_some() {
            None
        } else if self.missing > 0 {
            Some(format!(
                "the log is at least {} bytes shorter than its checksums say: its end is missing, or they are of another log",
                self.missing
            ))
        } else if let Some((from, to)) = self.unchecked.filter(|_| self.is_own) {
            Some(format!(
                "the checksums are damaged: bytes {from} to {to} of the log cannot be checked"
            ))
        } else if self.is_own {
            Some("the checksums are damaged; the log agrees with them".to_owned())
        } else {
            Some(
                "the checksums are damaged or of another log: the log cannot be checked".to_owned(),
            )
        }
    }

    /// Warns of what is wrong.
    pub(super) fn warn(&self, log: &Path) {
        let Some(fault) = self.fault() else {
            return;
        };
        let log = log.display();
        tracing::warn!(%log, kept_in = KEPT_SUMS_FILE, "{fault}; new ones begin with the next write");
    }
}

fn entry_of(data: &[u8]) -> Entry {
    let mut end = [0; 8];
    end.copy_from_slice(&data[..8]);
    Entry {
        end: u64::from_le_bytes(end),
        sum: u32::from_le_bytes([data[8], data[9], data[10], data[11]]),
    }
}

/// Returns an entry of which one bit has changed, or of whose check one has.
fn corrected(before: u32, data: &[u8], check: u32) -> Option<Entry> {
    let entry = entry_of(data);
    if (check_of(before, entry) ^ check).count_ones() == 1 {
        return Some(entry);
    }
    (0..DATA * 8).find_map(|bit| {
        let mut data = data.to_vec();
        data[bit / 8] ^= 1 << (bit % 8);
        let entry = entry_of(&data);
        (check_of(before, entry) == check).then_some(entry)
    })
}

/// Returns the number of bytes in which the log differs from `line` at a position; `None` if it ends before.
fn differing(log: &File, line: &[u8], at: u64) -> Option<usize> {
    let mut found = vec![0; line.len()];
    log.read_exact_at(&mut found, at).ok()?;
    Some(
        found
            .iter()
            .zip(line)
            .filter(|(one, other)| one != other)
            .count(),
    )
}

fn sum_of(log: &File, from: u64, to: u64) -> io::Result<u32> {
    let (mut sum, mut chunk, mut at) = (Hasher::new(), vec![0; CHUNK], from);
    while at < to {
        let size = usize::try_from(to - at).unwrap_or(CHUNK).min(CHUNK);
        log.read_exact_at(&mut chunk[..size], at)?;
        sum.update(&chunk[..size]);
        at += size as u64;
    }
    Ok(sum.finalize())
}
