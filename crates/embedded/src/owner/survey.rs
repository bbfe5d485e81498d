//! A data directory as it lies there, for people: its size, its owner, and files that no process needs. Changes nothing.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
};

use super::lock::{LOCK_FILE, Lock};
use super::socket::{FRESH_FILE, SOCKET_FILE};
use crate::log::{KEPT_SUMS_FILE, LOG_FILE, SUMS_FILE, TEMP_FILE};

/// Greatest number of files that are looked at. The engine has six.
const MOST_FILES: usize = 10_000;

/// The state of a data directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Survey {
    /// Bytes of all files in it, without folders.
    pub bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Description of the process that owns it; `None` if no process does.
    pub owner: Option<String>,
    /// Files that a killed owner left. The next owner removes or replaces them.
    pub left_over: Vec<String>,
    /// Files and folders that are not the engine's.
    pub foreign: Vec<String>,
}

/// Looks at a data directory, without opening it.
///
/// # Errors
/// It cannot be read.
pub fn survey(dir: &Path) -> io::Result<Survey> {
    let mut survey = Survey {
        owner: is_owned(dir)?.then(|| Lock::holder(dir)),
        ..Survey::default()
    };
    for entry in fs::read_dir(dir)?.take(MOST_FILES) {
        let entry = entry?;
        // A file that was removed meanwhile.
        let Ok(about) = entry.metadata() else {
            continue;
        };
        if about.is_file() {
            survey.bytes = survey.bytes.saturating_add(about.len());
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        match name.as_str() {
            LOG_FILE => survey.log_bytes = about.len(),
            // A socket without an owner is replaced by the next one.
            LOCK_FILE | SOCKET_FILE | SUMS_FILE | KEPT_SUMS_FILE => {}
            // An owner rewrites its log, or begins to listen.
            TEMP_FILE | FRESH_FILE if survey.owner.is_some() => {}
            TEMP_FILE | FRESH_FILE => survey.left_over.push(name),
            _ => survey.foreign.push(name),
        }
    }
    survey.left_over.sort();
    survey.foreign.sort();
    Ok(survey)
}

/// Returns whether a process has locked the directory. Somebody may have deleted one of the locked files.
fn is_owned(dir: &Path) -> io::Result<bool> {
    Ok(is_locked(&dir.join(LOCK_FILE))? || is_locked(&dir.join(LOG_FILE))?)
}

fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // Shared and dropped at once. A process that opens the directory at this moment tries again.
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_described() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        assert_eq!(survey(dir).unwrap(), Survey::default());
        for (name, bytes) in [(LOG_FILE, 7), (TEMP_FILE, 5), ("notes.txt", 3)] {
            fs::write(dir.join(name), vec![b'x'; bytes]).unwrap();
        }
        fs::create_dir(dir.join("folder")).unwrap();
        let mut should = Survey {
            bytes: 15,
            log_bytes: 7,
            owner: None,
            left_over: vec![TEMP_FILE.to_owned()],
            foreign: vec!["folder".to_owned(), "notes.txt".to_owned()],
        };
        assert_eq!(survey(dir).unwrap(), should);
        // An owner may be at work on that file.
        let lock = Lock::try_take(dir).unwrap().unwrap();
        let found = survey(dir).unwrap();
        let process = format!("process {}", std::process::id());
        assert!(
            found.owner.as_ref().unwrap().starts_with(&process),
            "{found:?}"
        );
        should.left_over.clear();
        (should.owner, should.bytes) = (found.owner.clone(), found.bytes);
        assert_eq!(found, should);
        drop(lock);
        assert_eq!(survey(dir).unwrap().owner, None);
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(survey(&dir.path().join("missing")).is_err());
    }
}
