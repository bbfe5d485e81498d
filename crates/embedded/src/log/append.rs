//! Appends whole transactions to the file, or nothing.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{reserve::Reserve, sums::Sums};
use crate::{resp::encode_command, store::Effect};

/// Size beyond which the encoding buffer is freed, so that one large write does not keep its memory.
const KEPT_BUFFER: usize = 1024 * 1024;

/// Writes transactions at the end of the log.
#[derive(Debug)]
pub(super) struct Appender {
    path: PathBuf,
    file: Arc<File>,
    /// Bytes of whole transactions. The file is longer only while `torn`.
    len: u64,
    /// Database of the last command, if known.
    db: Option<usize>,
    buffer: Vec<u8>,
    reserve: Reserve,
    sums: Sums,
    /// True if a write failed half-way, and its part could not be removed yet.
    torn: bool,
    /// Reason to refuse all further writes: a failed sync, or a lost directory. After a failed sync, the system may have
    /// dropped written data, and the next sync would succeed anyway.
    refusal: Option<String>,
}

impl Appender {
    /// Returns an appender for `file`, which is open for reading and appending and has `len` bytes of whole
    /// transactions.
    pub(super) fn new(path: &Path, file: File, len: u64, sums: Sums) -> Self {
        Self {
            path: path.to_owned(),
            file: Arc::new(file),
            len,
            db: None,
            buffer: Vec::new(),
            reserve: Reserve::default(),
            sums,
            torn: false,
            refusal: None,
        }
    }

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn sums(&mut self) -> &mut Sums {
        &mut self.sums
    }

    /// Lets the next append select its database, whatever precedes it.
    pub(super) fn forget_database(&mut self) {
        self.db = None;
    }

    /// Appends one transaction by one write. After an error the file is unchanged.
    pub(super) fn append(&mut self, effects: &[Effect]) -> io::Result<()> {
        self.check()?;
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BUFFER);
        self.buffer
            .extend(self.sums.annotation(self.len).unwrap_or_default());
        let db = encode_transaction(effects, self.db, &mut self.buffer);
        if let Err(error) = (&*self.file).write_all(&self.buffer) {
            // The engine logs this once, however often it is tried.
            tracing::debug!(log = %self.path.display(), %error, "cannot append; cutting back");
            self.torn = true;
            // The next append reports a failure of this.
            let _ = self.cut_back();
            return Err(error);
        }
        self.len += self.buffer.len() as u64;
        self.sums.appended(&self.buffer);
        self.db = db;
        Ok(())
    }

    /// Reserves disk space for the next `bytes`. A failure does not affect the next attempt.
    pub(super) fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        self.check()?;
        self.reserve.make(&self.file, self.len, bytes)
    }

    /// Frees reserved space, also that of an owner that was killed.
    pub(super) fn give_room_back(&mut self) -> io::Result<()> {
        self.check()?;
        self.cut_back()
    }

    /// Returns an error if appends are not possible.
    pub(super) fn check(&mut self) -> io::Result<()> {
        if let Some(reason) = &self.refusal {
            return Err(io::Error::other(reason.clone()));
        }
        if self.torn { self.cut_back() } else { Ok(()) }
    }

    fn cut_back(&mut self) -> io::Result<()> {
        self.reserve.forget();
        self.file.set_len(self.len)?;
        self.torn = false;
        Ok(())
    }

    /// Waits until all appended data is on the disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.check()?;
        let outcome = self.file.sync_data();
        if let Err(error) = &outcome {
            self.sync_failed(error);
        }
        outcome
    }

    /// Refuses all further writes.
    pub(super) fn sync_failed(&mut self, error: &impl std::fmt::Display) {
        tracing::error!(log = %self.path.display(), %error, "sync failed; refusing writes");
        self.refuse(format!("an earlier sync failed: {error}"));
    }

    /// Refuses all further writes, for this reason.
    pub(super) fn refuse(&mut self, reason: String) {
        self.refusal = Some(reason);
    }

    /// Continues in `file`, which has replaced the old one.
    pub(super) fn replace(&mut self, (file, sums): (File, Sums), len: u64, reserve: Reserve) {
        self.sums = sums;
        self.reserve = reserve;
        self.file = Arc::new(file);
        self.len = len;
        self.torn = false;
        // `db` stays: the end of the new file is a copy of the end of the old one. Without an append after the
        // snapshot, it was reset with the snapshot.
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
