//! Script to run: read whole and checked before anything is sent, with its type.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use meshwork::runtime;
use meshwork_model::job::exec::{Exec, InvalidExec, Program};
use meshwork_model::job::limits::MAX_SCRIPT;
use meshwork_model::name::ScriptType;

use crate::error::CommandError;

/// File extensions of flows.
const FLOWS: [&str; 3] = ["yaml", "yml", "toml"];

/// Script as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) script_type: ScriptType,
    pub(crate) text: String,
}

/// Errors of scripts.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    #[error("cannot read the script {place}: {source}")]
    Read { place: String, source: io::Error },
    #[error("{0} is a folder: name a script in it")]
    Folder(String),
    #[error("the script {0} contains a NUL byte: it is no text")]
    Nul(String),
    #[error("the script {0} is empty: there is nothing to run")]
    Empty(String),
    #[error(
        "the script {0} is larger than {MAX_SCRIPT} bytes: pass data as input, not in the script"
    )]
    TooLarge(String),
    #[error("the script {0} is not UTF-8 text")]
    NotText(String),
    #[error(
        "the script {place} has no known extension ({known}), and is no program: name its type with --type"
    )]
    NoType { place: String, known: String },
    #[error("{0} is a flow: run it with `meshwork flow run {0}`, or `meshwork flow submit {0}`")]
    Flow(String),
    #[error(
        "{0} is not a program: it has no #! line and is not executable; add #!/bin/sh, or chmod +x"
    )]
    NoProgram(String),
    #[error(
        "arguments after -- are for programs (--type exec): give data to a script of type {0} with --input"
    )]
    NoArguments(ScriptType),
    #[error(transparent)]
    Exec(#[from] InvalidExec),
}

impl From<ScriptError> for CommandError {
    fn from(error: ScriptError) -> Self {
        Self::usage(error)
    }
}

impl Script {
    /// Reads the script at `path` (`-`: stdin), of the given type, or else by its extension.
    pub(crate) fn read(path: &Path, script_type: Option<ScriptType>) -> Result<Self, ScriptError> {
        Self::with_args(path, script_type, &[])
    }

    /// Same as [`Self::read`], with arguments for programs. A file without a known extension is a program if it starts
    /// with `#!` or is executable. A program of the type `exec` may exist on the worker's host alone.
    pub(crate) fn with_args(
        path: &Path,
        script_type: Option<ScriptType>,
        args: &[String],
    ) -> Result<Self, ScriptError> {
        // An open folder could be mistaken for an empty file.
        if path.is_dir() {
            return Err(ScriptError::Folder(place(path)));
        }
        let script_type = script_type.or_else(|| by_extension(path));
        let is_exec = script_type
            .as_ref()
            .is_none_or(|script_type| script_type.as_str() == ScriptType::EXEC);
        if is_exec && let Some(program) = program(path, script_type.is_some())? {
            return Self::exec(program, args);
        }
        let Some(script_type) = script_type else {
            return Err(match is_flow(path) {
                true => ScriptError::Flow(place(path)),
                false => no_type(place(path)),
            });
        };
        let text = text(path)?;
        match script_type.as_str() {
            ScriptType::EXEC => Self::exec(Program::Script(text), args),
            _ if args.is_empty() => Ok(Self { script_type, text }),
            _ => Err(ScriptError::NoArguments(script_type)),
        }
    }

    fn exec(program: Program, args: &[String]) -> Result<Self, ScriptError> {
        let args = args.to_vec();
        let text = Exec { program, args }.write();
        // Refuses arguments that no program can get.
        Exec::read(text.as_bytes())?;
        let script_type = ScriptType::foreign(ScriptType::EXEC.to_owned());
        Ok(Self { script_type, text })
    }
}

/// Returns the program of a job of the type `exec` or of no known type. None if the text of the file is the script, or
/// if the file is no program.
fn program(path: &Path, is_exec: bool) -> Result<Option<Program>, ScriptError> {
    if path == Path::new("-") {
        return Ok(None);
    }
    let Ok(about) = path.metadata() else {
        // A program of the worker's host.
        let name = path.to_str().filter(|name| is_exec && has_no_folder(name));
        return Ok(name.map(|name| Program::Named(name.to_owned())));
    };
    let by_name = by_extension(path).is_some();
    if about.is_file() && !by_name && !begins_with_shebang(path) {
        if about.permissions().mode() & 0o111 != 0 {
            let path = absolute(path);
            let name = path.to_str().map(|name| Program::Named(name.to_owned()));
            return name
                .map(Some)
                .ok_or_else(|| ScriptError::NotText(place(&path)));
        }
        return match is_exec {
            true => Err(ScriptError::NoProgram(place(path))),
            false => Ok(None),
        };
    }
    match is_exec || !about.is_file() || by_name {
        true => Ok(None),
        false => Ok(Some(Program::Script(text(path)?))),
    }
}

/// Returns true for an absolute path, or a name that is looked up in `PATH`.
fn has_no_folder(name: &str) -> bool {
    name.starts_with('/') || !name.contains('/')
}

fn begins_with_shebang(path: &Path) -> bool {
    const MARK: &str = "\u{feff}";
    let mut first = Vec::new();
    let most = MARK.len() as u64 + 2;
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut first));
    // Some editors write a byte order mark before it.
    let line = first.strip_prefix(MARK.as_bytes()).unwrap_or(&first);
    read.is_ok() && line.starts_with(b"#!")
}

fn place(path: &Path) -> String {
    match path == Path::new("-") {
        true => "on stdin".to_owned(),
        false => path.display().to_string(),
    }
}

/// Reads the whole text of a script.
fn text(path: &Path) -> Result<String, ScriptError> {
    let place = place(path);
    let bytes = match path == Path::new("-") {
        true => bounded(io::stdin().lock()),
        false => File::open(path).and_then(bounded),
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(source) => return Err(ScriptError::Read { place, source }),
    };
    if bytes.len() > MAX_SCRIPT {
        return Err(ScriptError::TooLarge(place));
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(ScriptError::NotText(place));
    };
    match text.trim().is_empty() {
        true => Err(ScriptError::Empty(place)),
        false if text.contains('\0') => Err(ScriptError::Nul(place)),
        false => Ok(text),
    }
}

/// Reads at most one byte over the limit.
fn bounded(stream: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(MAX_SCRIPT as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn by_extension(path: &Path) -> Option<ScriptType> {
    runtime::type_of_file(path)?.parse().ok()
}

/// Returns true for a name that ends as the names of flows do.
pub(crate) fn is_flow(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| FLOWS.contains(&extension))
}

fn no_type(place: String) -> ScriptError {
    let known = runtime::endings().map(|(ending, name)| format!(".{ending} is {name}"));
    ScriptError::NoType {
        place,
        known: known.collect::<Vec<_>>().join(", "),
    }
}

/// Returns the absolute path of a script, for people and for the digest of a series.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
