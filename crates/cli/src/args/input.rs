//! Input of jobs: bytes for a script, of a bounded size, from an option, a regular file or stdin.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use meshwork_model::job::limits::MAX_INPUT;
use meshwork_model::time::duration_of;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};

use crate::error::CommandError;
use crate::out::note;

/// Bytes read at once.
const BLOCK: usize = 64 * 1024;
/// Longest wait of `meshwork run` for the first byte of a pipe on stdin without `--input`. Programs often start others
/// with a pipe that they never close. A slower pipeline needs `--input -`.
const FIRST_BYTE: Duration = Duration::from_secs(5);
/// The name of stdin in messages.
const STDIN: &str = "on stdin";

/// Errors of inputs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("stdin cannot be an input file of --each: write the data to a file first")]
    Stdin,
    #[error("stdin cannot be both the script and its input: name a file for one of them")]
    StdinTwice,
    #[error("cannot read the input {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the input {} is not a regular file: give files, not folders, pipes or devices", .0.display())]
    NoFile(PathBuf),
    #[error("the input {} is larger than {MAX_INPUT} bytes (16 MiB): split it, or pass the path of a file", .0.display())]
    TooLarge(PathBuf),
    #[error("the input {} changed while it was read: run the same command again", .0.display())]
    Changed(PathBuf),
}

impl From<InputError> for CommandError {
    fn from(error: InputError) -> Self {
        Self::usage(error)
    }
}

/// An input file and the hash of its content.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    pub(crate) hash: [u8; 32],
}

impl Input {
    /// Reads the whole file and stores its hash.
    pub(crate) fn look_at(path: &Path) -> Result<Self, InputError> {
        let mut file = open(path)?;
        let (mut hash, mut size, mut block) = (Sha256::new(), 0, vec![0; BLOCK]);
        loop {
            let read = file.read(&mut block).map_err(failed(path))?;
            if read == 0 {
                return Ok(Self {
                    path: path.to_owned(),
                    hash: hash.finalize().into(),
                });
            }
            size += read;
            if size > MAX_INPUT {
                return Err(InputError::TooLarge(path.to_owned()));
            }
            hash.update(&block[..read]);
        }
    }

    /// Reads the content again, and checks that it has not changed.
    pub(crate) fn read(&self) -> Result<Vec<u8>, InputError> {
        let bytes = read(&self.path)?;
        if <[u8; 32]>::from(Sha256::digest(&bytes)) != self.hash {
            return Err(InputError::Changed(self.path.clone()));
        }
        Ok(bytes)
    }
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, InputError> {
    bounded(open(path)?, path)
}

/// Reads stdin to its end.
pub(crate) fn read_stdin() -> Result<Vec<u8>, InputError> {
    bounded(Stdin, Path::new(STDIN))
}

/// Input of an option: literal JSON, `@FILE`, or `-` for stdin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InputArg {
    Json(String),
    File(PathBuf),
    Stdin,
}

impl FromStr for InputArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('@') {
            Some("") => return Err("no file is named after the @".to_owned()),
            Some(file) => return Ok(Self::File(file.into())),
            None if text == "-" => return Ok(Self::Stdin),
            None => {}
        }
        match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Ok(Self::Json(text.to_owned())),
            Err(error) => Err(format!(
                "it is no JSON ({error}): write @FILE for the content of a file, - for stdin, and text in double quotes"
            )),
        }
    }
}

impl InputArg {
    /// Returns the bytes, for a job whose script is at `script`.
    pub(crate) fn read(self, script: &Path) -> Result<Vec<u8>, InputError> {
        match self {
            Self::Json(text) => Ok(text.into_bytes()),
            Self::File(path) => read(&path),
            Self::Stdin if script == Path::new("-") => Err(InputError::StdinTwice),
            Self::Stdin => read_stdin(),
        }
    }
}

/// Returns the input on stdin without `--input`: from a pipe, a socket or a file, if a byte arrives within
/// [`FIRST_BYTE`]. None for a terminal or another device, and after the wait.
pub(crate) fn piped() -> Result<Option<Vec<u8>>, InputError> {
    let Ok(about) = fstat(io::stdin()) else {
        return Ok(None);
    };
    let kinds = [FileType::RegularFile, FileType::Fifo, FileType::Socket];
    if !kinds.contains(&FileType::from_raw_mode(about.st_mode)) {
        return Ok(None);
    }
    if !Stdin::is_ready(Some(FIRST_BYTE)).map_err(failed(Path::new(STDIN)))? {
        note(format_args!(
            "no data on stdin within {}: the script runs without input (--input - waits longer, < /dev/null does not wait)",
            duration_of(FIRST_BYTE)
        ));
        return Ok(None);
    }
    let bytes = read_stdin()?;
    Ok((!bytes.is_empty()).then_some(bytes))
}

/// Unbuffered stdin. Waits for data also if the descriptor is non-blocking.
struct Stdin;

impl Stdin {
    /// Waits for data or the end of the file. Returns false after the time.
    fn is_ready(within: Option<Duration>) -> io::Result<bool> {
        let within = within.and_then(|within| Timespec::try_from(within).ok());
        let stdin = io::stdin();
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        loop {
            match poll(&mut ready, within.as_ref()) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for Stdin {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(io::stdin(), &mut *into) {
                Ok(read) => return Ok(read),
                Err(Errno::AGAIN) => drop(Self::is_ready(None)?),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn bounded(from: impl Read, path: &Path) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let read = from.take(MAX_INPUT as u64 + 1).read_to_end(&mut bytes);
    match read.map_err(failed(path))? {
        size if size > MAX_INPUT => Err(InputError::TooLarge(path.to_owned())),
        _ => Ok(bytes),
    }
}

fn open(path: &Path) -> Result<File, InputError> {
    if path == Path::new("-") {
        return Err(InputError::Stdin);
    }
    // Checked before the file is opened: opening a pipe blocks until it has a writer.
    let about = path.metadata().map_err(failed(path))?;
    if !about.is_file() {
        return Err(InputError::NoFile(path.to_owned()));
    }
    if about.len() > MAX_INPUT as u64 {
        return Err(InputError::TooLarge(path.to_owned()));
    }
    File::open(path).map_err(failed(path))
}

fn failed(path: &Path) -> impl Fn(io::Error) -> InputError {
    |source| InputError::Read {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_json_a_file_or_stdin() {
        let read = |text: &str| text.parse::<InputArg>();
        assert_eq!(read("-"), Ok(InputArg::Stdin));
        assert_eq!(read("@-"), Ok(InputArg::File("-".into())));
        assert_eq!(read("@a b"), Ok(InputArg::File("a b".into())));
        for json in ["{}", "7", "\"text\"", " [1] ", "null"] {
            assert_eq!(read(json), Ok(InputArg::Json(json.to_owned())));
        }
        for bad in ["data.txt", "", "{", "@", "--", "[1]x"] {
            let said = read(bad).unwrap_err();
            assert!(said.contains("no JSON") || bad == "@", "{bad}: {said}");
        }
    }
}
