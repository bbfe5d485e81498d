//! File of an audit trail: a JSON object per line, as `--json` prints it. A later call continues after the last entry.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use meshwork::context::AuditEntry;
use serde::Deserialize;

use crate::error::CommandError;

/// Rights of a new file: only its owner reads it.
const MODE: u32 = 0o600;
/// Greatest number of bytes read from the end of the file. A longer line is no entry: long values are shortened.
const END: u64 = 64 * 1024;
/// Id before all entries of a stream.
const START: &str = "0-0";
/// First bytes of each line.
const HEAD: &[u8] = br#"{"id":""#;

/// An open file. One process writes it at a time.
pub(super) struct AuditFile {
    path: PathBuf,
    file: File,
    /// Id of the last entry in the file.
    last: String,
}

/// The part of a line that is read again.
#[derive(Deserialize)]
struct Line {
    id: String,
}

impl AuditFile {
    /// Opens or creates the file. Removes an incomplete last line, which a killed process left.
    pub(super) fn open(path: &Path) -> Result<Self, CommandError> {
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).create(true).mode(MODE);
        let file = opened.open(path).map_err(|error| failed(path, &error))?;
        if file.try_lock().is_err() {
            return Err(CommandError::usage(format_args!(
                "{} is being written by another process: name another file",
                path.display()
            )));
        }
        let last = last_id(&file).map_err(|error| failed(path, &error))?;
        let last = last.ok_or_else(|| {
            CommandError::usage(format_args!(
                "{} contains something else than an audit trail: name another file",
                path.display()
            ))
        })?;
        let path = path.to_owned();
        Ok(Self { path, file, last })
    }

    /// Returns the id of the last entry in the file.
    pub(super) fn last(&self) -> &str {
        &self.last
    }

    /// Appends entries, and waits until they are on the disk.
    pub(super) fn append(&mut self, entries: &[AuditEntry]) -> Result<(), CommandError> {
        let Some(last) = entries.last() else {
            return Ok(());
        };
        let mut lines = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut lines, entry)
                .map_err(|error| failed(&self.path, &error.into()))?;
            lines.push(b'\n');
        }
        let written = self.file.write_all(&lines);
        let written = written.and_then(|()| self.file.sync_data());
        written.map_err(|error| failed(&self.path, &error))?;
        self.last.clone_from(&last.id);
        Ok(())
    }
}

fn failed(path: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(format_args!("cannot write {}: {error}", path.display()))
}

/// Returns the id of the last complete line, and cuts an incomplete one. `None` if it is no entry.
fn last_id(mut file: &File) -> io::Result<Option<String>> {
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(END)))?;
    let mut end = Vec::new();
    file.take(END).read_to_end(&mut end)?;
    let complete = end
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let cut = &end[complete..];
    let is_start = complete == 0 && size > END;
    // Not a line that was cut: the user's own file must not be shortened.
    if is_start || !(HEAD.starts_with(cut) || cut.starts_with(HEAD)) {
        return Ok(None);
    }
    let mut lines = end[..complete].split(|byte| *byte == b'\n').rev().skip(1);
    let last = match lines.next() {
        None => Some(START.to_owned()),
        Some(line) => serde_json::from_slice(line)
            .ok()
            .and_then(|Line { id }| is_stream_id(&id).then_some(id)),
    };
    if last.is_some() {
        file.set_len(size - cut.len() as u64)?;
    }
    Ok(last)
}

fn is_stream_id(id: &str) -> bool {
    let parts = id.split_once('-');
    parts.is_some_and(|(ms, sequence)| ms.parse::<u64>().is_ok() && sequence.parse::<u64>().is_ok())
}
