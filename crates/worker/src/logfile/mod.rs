//! Log files on the worker's host, for jobs with a `log_path`, only inside of allowed folders. [`place`] resolves
//! paths, [`rotate`] rotates full files, [`mod@line`] formats lines.
//!
//! If no folder is allowed, or the path is outside of them, the job fails permanently: its caller relies on the file,
//! and a retry would not help.

mod line;
mod place;
mod rotate;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use meshwork_model::job::log_path_fault;
use meshwork_model::outcome::{Failure, FailureKind};

use meshwork_runtime::clock;
use meshwork_runtime::log::{Entry, LogDrain};
pub use place::LogDirError;
use place::{Folder, LogPath, PlaceError};

/// Greatest number of lines that wait for the disk. Beyond that, the oldest ones are dropped.
pub(super) const CAPACITY: usize = 10_000;

/// Greatest size of a log file in bytes, before it is rotated.
const MAX_SIZE: u64 = 10 * 1024 * 1024;

/// Greatest number of rotations by other runs during one write.
const MOST_TURNS: usize = 100;

/// Reason why a job has no log file.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogPathError {
    #[error(
        "log_path `{0}`: this worker writes no log files; start it with --log-dir and the folder that may \
         hold them, or submit the job without a log_path"
    )]
    NoFolder(String),
    #[error(
        "log_path `{path}` is not inside a folder that this worker allows ({allowed}); name a path in there, \
         or start the worker with --log-dir and a folder that holds it"
    )]
    Outside { path: String, allowed: String },
    #[error("log_path `{path}`: {fault}")]
    Bad { path: String, fault: &'static str },
    #[error("log_path `{path}`: {source}")]
    Refused { path: String, source: PlaceError },
    #[error("log_path `{path}` cannot be opened: {source}")]
    Io { path: String, source: io::Error },
}

impl LogPathError {
    /// Returns the failure of the job.
    pub(super) fn into_failure(self) -> Failure {
        let kind = match self {
            // The disk may work at the next attempt.
            Self::Io { .. } => FailureKind::Script,
            _ => FailureKind::Permanent,
        };
        Failure::new(kind, self.to_string())
    }
}

/// Folders in which jobs may have log files.
#[derive(Debug, Default)]
pub struct LogFolders(Vec<Arc<Folder>>);

impl LogFolders {
    /// Opens the folders; relative paths are relative to the first.
    pub fn open(paths: &[PathBuf]) -> Result<Self, LogDirError> {
        let folders = paths.iter().map(|path| Folder::open(path).map(Arc::new));
        Ok(Self(folders.collect::<Result<_, _>>()?))
    }

    /// Opens the log file of a job.
    pub(super) fn file(&self, path: &str, job: &str) -> Result<LogFile, LogPathError> {
        let (folder, inside) = self.place(path)?;
        let place = folder.place(&inside).and_then(|place| {
            let file = place.open()?;
            Ok((place, file))
        });
        let path = || path.to_owned();
        let (place, file) = place.map_err(|error| match error {
            PlaceError::Io(source) => LogPathError::Io {
                path: path(),
                source,
            },
            source => LogPathError::Refused {
                path: path(),
                source,
            },
        })?;
        Ok(LogFile {
            place,
            file,
            job: line::plain(job),
            max_size: MAX_SIZE,
        })
    }

    /// Returns the folder of a path, and the rest of the path.
    fn place(&self, path: &str) -> Result<(&Folder, PathBuf), LogPathError> {
        let Some(first) = self.0.first() else {
            return Err(LogPathError::NoFolder(line::plain(path)));
        };
        if let Some(fault) = log_path_fault(path) {
            let path = line::plain(path);
            return Err(LogPathError::Bad { path, fault });
        }
        if !path.starts_with('/') {
            return Ok((first, PathBuf::from(path)));
        }
        let holding = self
            .0
            .iter()
            .find_map(|folder| Some((&**folder, folder.inside(Path::new(path))?)));
        holding.ok_or_else(|| {
            let allowed = self.0.iter().map(|folder| folder.to_string());
            LogPathError::Outside {
                path: path.to_owned(),
                allowed: allowed.collect::<Vec<_>>().join(", "),
            }
        })
    }
}

/// The open log file of one run.
#[derive(Debug)]
pub(super) struct LogFile {
    place: LogPath,
    file: File,
    job: String,
    max_size: u64,
}

impl LogFile {
    /// Appends the lines of a run until it ends.
    pub(super) async fn keep(self, mut drain: LogDrain) {
        let (mut this, mut warned) = (self, false);
        while let Some(batch) = drain.next().await {
            if batch.entries.is_empty() {
                continue;
            }
            let write = move || {
                let written = this.append(&batch.entries);
                (this, written)
            };
            let Ok((back, written)) = tokio::task::spawn_blocking(write).await else {
                tracing::error!("the writer of a log file panicked");
                return;
            };
            this = back;
            if let Err(error) = written
                && !std::mem::replace(&mut warned, true)
            {
                // The lines are also in the job's record and log.
                tracing::warn!(job = this.job, %error, "cannot write to the log file of a job");
            }
        }
    }

    fn append(&mut self, entries: &[Entry]) -> io::Result<()> {
        let text = line::lines(&clock::now_iso(), &self.job, entries);
        for _ in 0..MOST_TURNS {
            // While the lock is held, nobody rotates the file. So nothing is written to a file that was compressed.
            let held = rotate::hold(&self.file)?;
            if !self.place.is(&self.file)? {
                // Another run has rotated the file.
                drop(held);
                self.file = self.place.open().map_err(io::Error::other)?;
                continue;
            }
            let size = self.file.metadata()?.len();
            if size == 0 || size + text.len() as u64 <= self.max_size {
                // In one write, so that lines of several runs do not mix.
                return (&self.file).write_all(text.as_bytes());
            }
            drop(held);
            rotate::rotate(&self.place, &self.file)?;
        }
        Err(io::Error::other("other runs rotate it all the time"))
    }
}
