//! Input files: bytes for a script, regular files of a bounded size.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use meshwork::model::job::limits::MAX_INPUT;
use sha2::{Digest, Sha256};

/// Read at once while a file is looked at.
const BLOCK: usize = 64 * 1024;

/// What is wrong with an input.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("stdin cannot be an input: write it to a file first")]
    Stdin,
    #[error("cannot read the input {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the input {} is no regular file: give files, no folders, pipes or devices", .0.display())]
    NoFile(PathBuf),
    #[error("the input {} is larger than {MAX_INPUT} bytes (16 MiB): split it, or hand over its path", .0.display())]
    TooLarge(PathBuf),
    #[error("the input {} changed while it was read: say the same command again", .0.display())]
    Changed(PathBuf),
}

/// An input file and the hash of what is in it.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    pub(crate) hash: [u8; 32],
}

impl Input {
    /// Looks at a file, all of it, and keeps the hash.
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

    /// What is in the file, the same as when it was looked at.
    pub(crate) fn read(&self) -> Result<Vec<u8>, InputError> {
        let bytes = read(&self.path)?;
        if <[u8; 32]>::from(Sha256::digest(&bytes)) != self.hash {
            return Err(InputError::Changed(self.path.clone()));
        }
        Ok(bytes)
    }
}

/// What is in a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, InputError> {
    bounded(open(path)?, path)
}

/// What comes on stdin, to its end.
pub(crate) fn read_stdin() -> Result<Vec<u8>, InputError> {
    bounded(io::stdin().lock(), Path::new("-"))
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
    // Before it is opened: that would wait for a pipe's other end.
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
