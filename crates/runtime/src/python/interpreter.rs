//! Finds the Python interpreter for scripts.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::time::duration_of;
use tokio::process::Command;
use tokio::sync::Mutex;

use super::super::process;

/// Variable that names the interpreter.
pub(super) const VARIABLE: &str = "MESHWORK_PYTHON";

/// Interpreter if that variable is not set.
const DEFAULT: &str = "python3";

/// Longest wait for the interpreter's answer. A wrapper needs tenths of a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// Script that prints the version check, the version, the real path, and the files that Python needs, each followed by a
/// NUL. The command may be a slow wrapper.
const QUESTION: &str = "
import os, sys
files = [sys.executable, os.path.realpath(sys.executable), sys.prefix, sys.base_prefix, sys.exec_prefix]
files += [path for path in sys.path if os.path.isabs(path)]
version = '.'.join(str(part) for part in sys.version_info[:3])
fields = [str(int(sys.version_info >= (3, 8))), version] + files
sys.stdout.buffer.write(b''.join(os.fsencode(field) + b'\\0' for field in fields))
";

/// Reason why no interpreter was found.
#[derive(Debug, thiserror::Error)]
pub(super) enum InterpreterError {
    #[error(
        "no Python: `{name}` cannot be started ({source}); install Python 3.8 or newer, or name it: `worker --python PATH`, or {VARIABLE}"
    )]
    Start {
        name: String,
        source: std::io::Error,
    },
    #[error(
        "no Python: `{name}` does not answer as Python does; name Python 3.8 or newer: `worker --python PATH`, or {VARIABLE}"
    )]
    Answer { name: String },
    #[error("no Python: `{name}` does not answer within {}", duration_of(PATIENCE))]
    Silent { name: String },
    #[error(
        "no Python: `{name}` is older than Python 3.8; name a newer one: `worker --python PATH`, or {VARIABLE}"
    )]
    Old { name: String },
}

/// The usual interpreter, the same for all workers of the process.
static FOUND: Mutex<Option<Interpreter>> = Mutex::const_new(None);

/// An interpreter that a worker names.
#[derive(Debug)]
pub(super) struct Searched {
    name: String,
    found: Mutex<Option<Interpreter>>,
}

/// An interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// Its path, without wrappers.
    pub(super) path: PathBuf,
    /// Its version, as `3.11.2`.
    pub(super) version: String,
    /// Files and folders that it reads, besides those of the system.
    pub(super) files: Vec<PathBuf>,
}

/// Returns the usual interpreter. It is searched once, and again when its file is gone.
pub(super) async fn found() -> Result<Interpreter, InterpreterError> {
    known_or(&FOUND, find()).await
}

impl Searched {
    pub(super) fn new(path: &Path) -> Self {
        // A name without a slash would be searched in `PATH`.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self {
            name: path.to_string_lossy().into_owned(),
            found: Mutex::new(None),
        }
    }

    /// Returns the interpreter. It is searched once, and again when its file is gone.
    pub(super) async fn found(&self) -> Result<Interpreter, InterpreterError> {
        known_or(&self.found, ask(self.name.clone())).await
    }
}

async fn known_or(
    known: &Mutex<Option<Interpreter>>,
    search: impl Future<Output = Result<Interpreter, InterpreterError>>,
) -> Result<Interpreter, InterpreterError> {
    let mut known = known.lock().await;
    if let Some(found) = known.as_ref().filter(|found| found.path.exists()) {
        return Ok(found.clone());
    }
    Ok(known.insert(search.await?).clone())
}

impl From<InterpreterError> for Failure {
    fn from(error: InterpreterError) -> Self {
        let kind = match error.is_missing() {
            true => FailureKind::Permanent,
            false => FailureKind::NotStarted,
        };
        Self::new(kind, error.to_string()).of_host()
    }
}

impl InterpreterError {
    /// Returns true if there is no such interpreter. A busy host cannot start it now, or hear its answer in time.
    fn is_missing(&self) -> bool {
        match self {
            Self::Start { source, .. } => matches!(
                source.kind(),
                ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::NotADirectory
            ),
            Self::Silent { .. } => false,
            Self::Answer { .. } | Self::Old { .. } => true,
        }
    }
}

/// Searches the interpreter.
pub(super) async fn find() -> Result<Interpreter, InterpreterError> {
    let name = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
    ask(name.unwrap_or_else(|| DEFAULT.to_owned())).await
}

async fn ask(name: String) -> Result<Interpreter, InterpreterError> {
    let mut command = Command::new(&name);
    command
        .args(["-I", "-c", QUESTION])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = match tokio::time::timeout(PATIENCE, process::output(command)).await {
        Ok(Ok(output)) => output,
        Ok(Err(source)) => return Err(InterpreterError::Start { name, source }),
        Err(_) => return Err(InterpreterError::Silent { name }),
    };
    let Some(answer) = output.stdout.strip_suffix(b"\0") else {
        return Err(InterpreterError::Answer { name });
    };
    let mut fields = answer.split(|byte| *byte == 0);
    match (fields.next(), fields.next(), fields.next()) {
        (Some(b"1"), Some(version), Some(executable)) if !executable.is_empty() => {
            let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
            let mut files = vec![path(executable)];
            files.extend(fields.map(path));
            Ok(Interpreter {
                path: path(executable),
                version: String::from_utf8_lossy(version).into_owned(),
                files,
            })
        }
        (Some(b"0"), ..) => Err(InterpreterError::Old { name }),
        _ => Err(InterpreterError::Answer { name }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_no_python_is_named() {
        for (name, part) in [
            ("/nowhere/python3", "`/nowhere/python3` cannot be started"),
            ("true", "`true` does not answer"),
            ("echo", "`echo` does not answer"),
        ] {
            let error = ask(name.to_owned()).await.unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(VARIABLE), "{error}");
        }
    }
}
