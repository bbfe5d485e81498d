//! Log file that a record names: read only in folders that the user allows, since any writer of records can name any
//! file of this host. Symbolic links are not followed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use meshwork_model::job::{Job, log_path_fault};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::out::note;

/// Greatest number of bytes read from the end of a log file.
const MAX_FILE: u64 = 1024 * 1024;

/// Non-blocking, so that a pipe in the file's place does not block.
const STEP: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Folders in which log files may be read.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct LogDirs {
    /// Folder on this host in which the job's log file (--log-path) may be read, as written by a worker of another
    /// system; may be given several times. A relative path is relative to the first of these folders
    #[arg(long = "log-dir", value_name = "FOLDER")]
    folders: Vec<PathBuf>,
}

impl LogDirs {
    /// Returns the end of the log file that the record names. Prints an error if the file exists and cannot be read.
    pub(crate) fn read(&self, job: &Job) -> Option<Vec<u8>> {
        let path = job.log_path.as_deref().filter(|path| !path.is_empty())?;
        if self.folders.is_empty() && !(job.stdout.is_empty() && job.stderr.is_empty()) {
            return None; // the record has the whole output
        }
        match self.end_of(path) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                note(format_args!(
                    "cannot read the log file {path:?} of job {}: {error}",
                    job.id
                ));
                None
            }
        }
    }

    fn end_of(&self, path: &str) -> io::Result<Vec<u8>> {
        if let Some(fault) = log_path_fault(path) {
            return Err(io::Error::other(fault));
        }
        let mut folders = self.folders.iter();
        let found = if Path::new(path).is_absolute() {
            folders.find_map(|folder| inside(folder, Path::new(path)).map(|rest| (folder, rest)))
        } else {
            folders.next().map(|folder| (folder, PathBuf::from(path)))
        };
        let Some((folder, rest)) = found else {
            let what = "it is in no folder that is allowed; give its folder with --log-dir";
            return Err(io::Error::other(what));
        };
        tail(File::from(walk(folder, &rest)?))
    }
}

/// Returns the rest of an absolute path within the folder, by its given or its real name.
fn inside(folder: &Path, path: &Path) -> Option<PathBuf> {
    let names = [std::path::absolute(folder), folder.canonicalize()];
    let mut rests = names.iter().flatten().map(|name| path.strip_prefix(name));
    rests.find_map(Result::ok).map(Path::to_owned)
}

/// Opens each component of the path in turn, so that a concurrent change cannot redirect it.
fn walk(folder: &Path, rest: &Path) -> io::Result<OwnedFd> {
    let mut at = openat(
        CWD,
        folder,
        OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    for step in rest {
        at = openat(&at, step, STEP, Mode::empty()).map_err(|error| match error {
            Errno::LOOP => io::Error::other(format!("{} is a link", step.display())),
            error => error.into(),
        })?;
    }
    Ok(at)
}

fn tail(mut file: File) -> io::Result<Vec<u8>> {
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    file.seek(SeekFrom::Start(about.len().saturating_sub(MAX_FILE)))?;
    let mut end = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut end)?;
    Ok(end)
}
