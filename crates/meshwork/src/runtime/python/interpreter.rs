//! Finds the Python interpreter for scripts.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::Mutex;

use super::super::process::{self, NotStarted};

/// Variable that names the interpreter.
pub(super) const VARIABLE: &str = "MESHWORK_PYTHON";

/// Interpreter if that variable is not set.
const DEFAULT: &str = "python3";

/// Longest wait for the interpreter's answer. A wrapper needs tenths of a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// Script that prints the version check and the real path: the command may be a slow wrapper.
const QUESTION: &str = "import sys; print(int(sys.version_info >= (3, 8)), sys.executable)";

/// Reason why no interpreter was found.
#[derive(Debug, thiserror::Error)]
pub(super) enum InterpreterError {
    #[error(
        "no Python: `{name}` cannot be started ({source}); install Python 3.8 or newer, or set {VARIABLE} to its path"
    )]
    Start {
        name: String,
        source: std::io::Error,
    },
    #[error(
        "no Python: `{name}` does not answer as Python does; set {VARIABLE} to the path of Python 3.8 or newer"
    )]
    Answer { name: String },
    #[error(
        "no Python: `{name}` is older than Python 3.8; set {VARIABLE} to the path of a newer one"
    )]
    Old { name: String },
}

/// Path of the interpreter that was found, the same for all workers of the process.
static FOUND: Mutex<Option<PathBuf>> = Mutex::const_new(None);

/// Returns the path of the interpreter. It is searched once, and again when its file is gone.
pub(super) async fn path() -> Result<PathBuf, InterpreterError> {
    let mut found = FOUND.lock().await;
    if let Some(path) = found.as_ref().filter(|path| path.exists()) {
        return Ok(path.clone());
    }
    Ok(found.insert(find().await?).clone())
}

impl From<InterpreterError> for NotStarted {
    fn from(error: InterpreterError) -> Self {
        Self::Worker(error.to_string())
    }
}

/// Returns the path of the interpreter itself, without wrappers.
pub(super) async fn find() -> Result<PathBuf, InterpreterError> {
    let name = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
    ask(name.unwrap_or_else(|| DEFAULT.to_owned())).await
}

async fn ask(name: String) -> Result<PathBuf, InterpreterError> {
    let mut command = Command::new(&name);
    command
        .args(["-I", "-c", QUESTION])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = match tokio::time::timeout(PATIENCE, process::output(command)).await {
        Ok(Ok(output)) => output,
        Ok(Err(source)) => return Err(InterpreterError::Start { name, source }),
        Err(_) => return Err(InterpreterError::Answer { name }),
    };
    let text = String::from_utf8(output.stdout).unwrap_or_default();
    match text.trim_end_matches('\n').split_once(' ') {
        Some(("1", path)) if !path.is_empty() => Ok(path.into()),
        Some(("0", _)) => Err(InterpreterError::Old { name }),
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
