//! The script that is to run: read whole, checked before anything is sent, its type known.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use meshwork::model::job::limits::MAX_SCRIPT;
use meshwork::model::name::ScriptType;

use crate::error::CommandError;

/// The types of scripts by the extensions of their files.
const EXTENSIONS: [(&str, &str); 3] = [
    ("rhai", ScriptType::OSIS),
    ("py", ScriptType::PYTHON),
    ("v", ScriptType::V),
];

/// A script as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) script_type: ScriptType,
    pub(crate) text: String,
}

/// Why there is no script to run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    #[error("cannot read the script {place}: {source}")]
    Read { place: String, source: io::Error },
    #[error("the script {0} is empty: there is nothing to run")]
    Empty(String),
    #[error(
        "the script {0} is larger than {MAX_SCRIPT} bytes: hand data over as input, not in the script"
    )]
    TooLarge(String),
    #[error("the script {0} is not UTF-8 text")]
    NotText(String),
    #[error("the script {place} does not tell its type by its name ({known}): name it with --type")]
    NoType { place: String, known: String },
}

impl From<ScriptError> for CommandError {
    fn from(error: ScriptError) -> Self {
        Self::usage(error)
    }
}

impl Script {
    /// Reads the script at `path`, `-` being stdin, of the type given or told by its extension.
    pub(crate) fn read(path: &Path, script_type: Option<ScriptType>) -> Result<Self, ScriptError> {
        let stdin = path == Path::new("-");
        let place = if stdin {
            "on stdin".to_owned()
        } else {
            path.display().to_string()
        };
        let Some(script_type) = script_type.or_else(|| by_extension(path)) else {
            return Err(no_type(place));
        };
        let bytes = if stdin {
            bounded(io::stdin().lock())
        } else {
            open(path).and_then(bounded)
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
        if text.trim().is_empty() {
            return Err(ScriptError::Empty(place));
        }
        Ok(Self { script_type, text })
    }
}

fn open(path: &Path) -> io::Result<File> {
    // Opened, a folder could still be mistaken for an empty file.
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    File::open(path)
}

/// One byte over the limit at most.
fn bounded(stream: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(MAX_SCRIPT as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn by_extension(path: &Path) -> Option<ScriptType> {
    let extension = path.extension()?.to_str()?;
    let (_, name) = EXTENSIONS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(extension))?;
    name.parse().ok()
}

fn no_type(place: String) -> ScriptError {
    let known = EXTENSIONS.map(|(extension, name)| format!(".{extension} is {name}"));
    ScriptError::NoType {
        place,
        known: known.join(", "),
    }
}

/// Where a script is, for people and for the digest of a series.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
