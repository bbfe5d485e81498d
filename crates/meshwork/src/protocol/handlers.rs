//! Handlers by job name: functions and scripts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use meshwork_model::job::exec::{Exec, Program};
use meshwork_model::job::{Job, field};
use meshwork_model::name::ScriptType;

use super::AnyRuntime;
use meshwork_runtime as runtime;

/// No runtime runs a file with this name.
#[derive(Debug, thiserror::Error)]
#[error(
    "nothing runs {path}: give a file that ends in .py, .rhai or .sh, or begins with a #! line"
)]
pub struct UnknownScript {
    path: PathBuf,
}

/// Reason why a script cannot be a handler.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandlerError {
    /// No runtime runs such files.
    #[error("the handler of {name}: {source}")]
    Unknown {
        /// Name of the jobs.
        name: String,
        /// Cause.
        source: UnknownScript,
    },
    /// The file cannot be read.
    #[error("the handler of {name} cannot be read from {path}: {source}")]
    Unreadable {
        /// Name of the jobs.
        name: String,
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
}

/// Handler of one job name.
pub(super) struct Entry {
    pub(super) runtime: AnyRuntime,
    /// Script; `None` for a function.
    script: Option<Vec<u8>>,
}

impl Entry {
    /// Reads a script. The ending of its file selects the runtime.
    pub(super) fn script(name: &str, path: &Path) -> Result<Self, HandlerError> {
        let (script_type, text) = read_script(name, path)?;
        let runtime = runtime::builtin(script_type).ok_or_else(|| unknown(name, path))?;
        let script = Some(text.into_bytes());
        Ok(Self { runtime, script })
    }

    /// Returns the job in the form that its runtime takes: the payload is the script of a function, and the input of a
    /// script.
    pub(super) fn job(&self, id: &str, payload: &str) -> Job {
        let payload = payload.as_bytes().to_vec();
        let fields = match &self.script {
            None => vec![(field::SCRIPT.to_owned(), payload)],
            Some(script) => vec![
                (field::SCRIPT.to_owned(), script.clone()),
                (field::INPUT.to_owned(), payload),
            ],
        };
        Job::from_fields(id, fields)
    }

    /// Returns the result of a run as JSON, since a script may return any text.
    pub(super) fn result(&self, output: Vec<u8>) -> Option<String> {
        if self.script.is_none() {
            return String::from_utf8(output).ok();
        }
        runtime::as_json(&output)
    }
}

/// Reads a script, and returns it with its script type.
pub(super) fn read_script(name: &str, path: &Path) -> Result<(&'static str, String), HandlerError> {
    let text = std::fs::read_to_string(path).map_err(|source| HandlerError::Unreadable {
        name: name.to_owned(),
        path: path.to_owned(),
        source,
    });
    let program = |text: String| {
        let exec = Exec {
            program: Program::Script(text),
            args: Vec::new(),
        };
        (ScriptType::EXEC, exec.write())
    };
    match runtime::type_of_file(path) {
        Some(ScriptType::EXEC) => Ok(program(text?)),
        Some(known) => Ok((known, text?)),
        None => match text {
            Ok(text) if text.starts_with("#!") => Ok(program(text)),
            _ => Err(unknown(name, path)),
        },
    }
}

fn unknown(name: &str, path: &Path) -> HandlerError {
    HandlerError::Unknown {
        name: name.to_owned(),
        source: UnknownScript {
            path: path.to_owned(),
        },
    }
}

/// Handlers of a worker, by job name.
#[derive(Default)]
pub(super) struct Handlers(HashMap<String, Entry>);

impl Handlers {
    pub(super) fn add(&mut self, name: &str, runtime: AnyRuntime) {
        let script = None;
        self.0.insert(name.to_owned(), Entry { runtime, script });
    }

    pub(super) fn add_script(&mut self, name: &str, path: &Path) -> Result<(), HandlerError> {
        self.0.insert(name.to_owned(), Entry::script(name, path)?);
        Ok(())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.0.get(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_gives_is_json() {
        let entry = Entry {
            runtime: runtime::builtin("python").unwrap(),
            script: Some(Vec::new()),
        };
        for (output, result) in [
            ("", None),
            ("\n", None),
            ("{\"a\": 1}\n", Some("{\"a\": 1}")),
            ("12345678901234567890", Some("12345678901234567890")),
            ("sent to \"a\"", Some("\"sent to \\\"a\\\"\"")),
        ] {
            let is = entry.result(output.as_bytes().to_vec());
            assert_eq!(is.as_deref(), result);
        }
    }

    #[test]
    fn a_file_that_nothing_runs_is_refused_by_name() {
        let mut handlers = Handlers::default();
        let error = handlers.add_script("a", Path::new("x.js")).unwrap_err();
        assert!(error.to_string().contains("x.js") && error.to_string().contains(".py"));
        let error = handlers.add_script("a", Path::new("none.py")).unwrap_err();
        assert!(error.to_string().contains("none.py"));
    }
}
