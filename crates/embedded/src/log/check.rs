//! Reads a whole log with its checksums, for people: what is wrong, and where a repair would cut.

use std::{
    fs::File,
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use super::load::{CHUNK, cut_torn, refuse_rdb, zeros_to_the_end};
use super::read::{Item, LogReader, ReadError};
use super::sums::{examine, keep};
use super::{LOG_FILE, LogError, SUMS_FILE};

/// A log as it is on the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreCheck {
    /// Its length.
    pub bytes: u64,
    /// Number of whole transactions.
    pub transactions: u64,
    /// Number of bytes, from the start, that agree with checksums.
    pub checked: u64,
    /// Faults of the log and of its checksums.
    pub faults: Vec<StoreFault>,
}

/// A fault of a log or of its checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreFault {
    /// Description.
    pub what: String,
    /// Position from which a repair cuts the log off; `None` if it cuts nothing.
    pub cut: Option<u64>,
}

impl StoreCheck {
    /// Returns the length that a repair leaves; `None` if it cuts nothing.
    #[must_use]
    pub fn cut(&self) -> Option<u64> {
        self.faults.iter().filter_map(|fault| fault.cut).min()
    }

    fn add(&mut self, what: String, cut: Option<u64>) {
        self.faults.push(StoreFault { what, cut });
    }
}

/// Checks the log in `dir`. Changes nothing.
pub(crate) fn check(dir: &Path) -> Result<StoreCheck, LogError> {
    let path = dir.join(LOG_FILE);
    let mut check = StoreCheck::default();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if dir.join(SUMS_FILE).exists() {
                check.add(
                    format!("{LOG_FILE} is missing, and its checksums are there"),
                    None,
                );
            }
            return Ok(check);
        }
        Err(error) => return Err(LogError::io(&path, "open")(error)),
    };
    check.bytes = file
        .metadata()
        .map_err(LogError::io(&path, "look at"))?
        .len();
    refuse_rdb(&path, &file)?;
    let sums = examine(dir, &path, &file)?;
    check.checked = sums.damage.map_or(sums.end, |(from, _)| from);
    if let Some((from, to)) = sums.damage {
        let what = format!("bytes {from} to {to} have changed since they were written");
        check.add(what, Some(from));
    }
    if let Some(fault) = sums.fault() {
        check.add(fault, None);
    }
    read(&path, &file, &mut check)?;
    Ok(check)
}

/// Reads the transactions.
fn read(path: &Path, file: &File, check: &mut StoreCheck) -> Result<(), LogError> {
    let mut reader = LogReader::new(BufReader::with_capacity(CHUNK, file));
    let fault = loop {
        match reader.next() {
            Ok(None) => return Ok(()),
            Ok(Some(Item::Rewritten)) => {}
            Ok(Some(Item::Transaction { .. })) => check.transactions += 1,
            Err(error) => break error,
        }
    };
    let what = match fault {
        ReadError::Torn => "the log ends in the middle of a write".to_owned(),
        ReadError::Garbage { at, .. } if zeros_to_the_end(path, at)? => {
            "the log ends with zeros, as after a power loss".to_owned()
        }
        ReadError::Garbage { at, what, .. } => format!("byte {at} cannot be read: {what}"),
        ReadError::Database { start, index } => {
            let what = format!("the command at byte {start} selects database {index}");
            check.add(what, None);
            return Ok(());
        }
        ReadError::Io(error) => return Err(LogError::io(path, "read")(error)),
    };
    check.add(what, Some(reader.whole()));
    Ok(())
}

/// Cuts the locked log in `dir` to `len` bytes, and moves its checksums aside. Returns the file with what was cut off.
pub(crate) fn cut(dir: &Path, file: &File, len: Option<u64>) -> Result<Option<PathBuf>, LogError> {
    let kept = match len {
        Some(len) => Some(cut_torn(dir, &dir.join(LOG_FILE), file, len)?.1),
        None => None,
    };
    let sums = dir.join(SUMS_FILE);
    if sums.exists() {
        keep(dir)?;
        std::fs::remove_file(&sums).map_err(LogError::io(&sums, "remove"))?;
    }
    Ok(kept)
}
