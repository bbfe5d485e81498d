//! The end of the file: whole transactions go on, or nothing does.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::reserve::Reserve;
use crate::{resp::encode_command, store::Effect};

/// The encoding buffer is given back beyond this size, so that one large write is not paid for
/// ever after.
const KEPT_BUFFER: usize = 1024 * 1024;

/// Writes transactions at the end of the log.
#[derive(Debug)]
pub(super) struct Appender {
    path: PathBuf,
    file: Arc<File>,
    /// Bytes of whole transactions. The file is longer only while `torn`.
    len: u64,
    /// The database of the last command, if it is known.
    db: Option<usize>,
    buffer: Vec<u8>,
    reserve: Reserve,
    /// A write failed half-way, and its half could not be cut off yet.
    torn: bool,
    /// A sync failed. The system may have dropped what was written, and the next sync would
    /// succeed all the same, so nothing may be promised any more.
    unsynced: Option<String>,
}

impl Appender {
    /// `file` is open for reading and appending and holds `len` bytes of whole transactions.
    pub(super) fn new(path: &Path, file: File, len: u64) -> Self {
        Self {
            path: path.to_owned(),
            file: Arc::new(file),
            len,
            db: None,
            buffer: Vec::new(),
            reserve: Reserve::default(),
            torn: false,
            unsynced: None,
        }
    }

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The next append names its database, whatever stands before it.
    pub(super) fn forget_database(&mut self) {
        self.db = None;
    }

    /// Appends one transaction by one write. After an error the file is as before.
    pub(super) fn append(&mut self, effects: &[Effect]) -> io::Result<()> {
        self.check()?;
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BUFFER);
        let db = encode_transaction(effects, self.db, &mut self.buffer);
        if let Err(error) = (&*self.file).write_all(&self.buffer) {
            // The engine says so once, however often it is tried.
            tracing::debug!(log = %self.path.display(), %error, "cannot append; cutting back");
            self.torn = true;
            // Its own failure is told by the next append.
            let _ = self.cut_back();
            return Err(error);
        }
        self.len += self.buffer.len() as u64;
        self.db = db;
        Ok(())
    }

    /// Makes sure that the next `bytes` have their place on the disk. No room for them now is no
    /// reason to refuse the next attempt.
    pub(super) fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        self.check()?;
        self.reserve.make(&self.file, self.len, bytes)
    }

    /// Gives back the space that was set aside, also by an owner that was killed.
    pub(super) fn give_room_back(&mut self) -> io::Result<()> {
        self.check()?;
        self.cut_back()
    }

    /// Whether an append may be tried.
    pub(super) fn check(&mut self) -> io::Result<()> {
        if let Some(error) = &self.unsynced {
            return Err(io::Error::other(format!("an earlier sync failed: {error}")));
        }
        if self.torn { self.cut_back() } else { Ok(()) }
    }

    fn cut_back(&mut self) -> io::Result<()> {
        self.reserve.forget();
        self.file.set_len(self.len)?;
        self.torn = false;
        Ok(())
    }

    /// Waits until all that was appended is on the disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.check()?;
        let outcome = self.file.sync_data();
        if let Err(error) = &outcome {
            self.sync_failed(error);
        }
        outcome
    }

    /// Refuses everything from here on.
    pub(super) fn sync_failed(&mut self, error: &impl std::fmt::Display) {
        tracing::error!(log = %self.path.display(), %error, "sync failed; refusing writes");
        self.unsynced = Some(error.to_string());
    }

    /// Goes on in `file`, which has taken the place of the old one.
    pub(super) fn replace(&mut self, file: File, len: u64, reserve: Reserve) {
        self.reserve = reserve;
        self.file = Arc::new(file);
        self.len = len;
        self.torn = false;
        // `db` stays: the end of the new file is a copy of the end of the old one, and where no
        // append followed the snapshot, it was forgotten with the snapshot.
    }
}

/// Encodes effects as one unit and returns the database that the last of them left selected.
pub(super) fn encode_transaction(
    effects: &[Effect],
    mut db: Option<usize>,
    out: &mut Vec<u8>,
) -> Option<usize> {
    let group = effects.len() > 1;
    if group {
        encode_command(&["MULTI"], out);
    }
    for effect in effects {
        if db != Some(effect.db) {
            encode_command(&["SELECT", &effect.db.to_string()], out);
            db = Some(effect.db);
        }
        encode_command(&effect.args, out);
    }
    if group {
        encode_command(&["EXEC"], out);
    }
    db
}
