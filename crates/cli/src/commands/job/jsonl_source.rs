//! The lines of `--jsonl`: those of a file, or of stdin, which are read twice.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use crate::error::CommandError;
use crate::exit::Exit;

/// Greatest number of bytes of a line: the largest input with every byte escaped, and the rest.
const MAX_LINE: u64 = 128 * 1024 * 1024;
/// Greatest number of bytes of stdin, which are kept in memory since they are read twice.
const MAX_STDIN: u64 = 1024 * 1024 * 1024;

/// Byte order mark of UTF-8.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Errors of lines; nothing was enqueued.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsonlError {
    #[error("cannot read {place}: {source}")]
    Read { place: String, source: io::Error },
    #[error("{place} is larger than {MAX_STDIN} bytes (1 GiB): write it to a file, and name that")]
    TooLarge { place: String },
    #[error("line {line} of {place}: {fault}; nothing was submitted")]
    Line {
        place: String,
        line: usize,
        fault: String,
    },
    #[error(
        "line {line} of {place} has changed since it was checked; the {submitted} before it are submitted"
    )]
    Changed {
        place: String,
        line: usize,
        submitted: usize,
    },
}

impl From<JsonlError> for CommandError {
    fn from(error: JsonlError) -> Self {
        match error {
            JsonlError::Changed { .. } => Self::new(Exit::FAILED, error),
            _ => Self::usage(error),
        }
    }
}

/// A file, or the bytes of stdin.
pub(super) struct Source {
    pub(super) place: String,
    stdin: Option<Vec<u8>>,
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, JsonlError> {
        if path != Path::new("-") {
            let place = path.display().to_string();
            return Ok(Self { place, stdin: None });
        }
        let place = "stdin".to_owned();
        let mut bytes = Vec::new();
        let read = io::stdin()
            .lock()
            .take(MAX_STDIN + 1)
            .read_to_end(&mut bytes);
        match read {
            Ok(size) if size as u64 > MAX_STDIN => Err(JsonlError::TooLarge { place }),
            Ok(_) => Ok(Self {
                place,
                stdin: Some(bytes),
            }),
            Err(source) => Err(JsonlError::Read { place, source }),
        }
    }

    pub(super) fn lines(&self) -> Result<Box<dyn BufRead + Send + '_>, JsonlError> {
        let mut lines: Box<dyn BufRead + Send + '_> = match &self.stdin {
            Some(bytes) => Box::new(Cursor::new(bytes)),
            None => {
                let file = File::open(&self.place).map_err(|source| self.unread(source))?;
                Box::new(BufReader::new(file))
            }
        };
        let begin = lines.fill_buf().map_err(|source| self.unread(source))?;
        // Some editors write a byte order mark.
        if begin.starts_with(MARK) {
            lines.consume(MARK.len());
        }
        Ok(lines)
    }

    fn unread(&self, source: io::Error) -> JsonlError {
        let place = self.place.clone();
        JsonlError::Read { place, source }
    }

    /// Returns the next line, none at the end. A line over the limit is cut, and is invalid JSON then.
    pub(super) fn next(&self, lines: &mut dyn BufRead) -> Result<Option<Vec<u8>>, JsonlError> {
        let mut text = Vec::new();
        let read = lines.take(MAX_LINE).read_until(b'\n', &mut text);
        let size = read.map_err(|source| self.unread(source))?;
        Ok((size > 0).then_some(text))
    }

    /// Calls a function for each line that is not empty, with its number.
    pub(super) fn each(
        &self,
        mut look: impl FnMut(usize, &[u8]) -> Result<(), JsonlError>,
    ) -> Result<(), JsonlError> {
        let mut lines = self.lines()?;
        let mut number = 0;
        while let Some(text) = self.next(&mut *lines)? {
            number += 1;
            if !text.trim_ascii().is_empty() {
                look(number, &text)?;
            }
        }
        Ok(())
    }

    pub(super) fn fault(&self, line: usize, fault: String) -> JsonlError {
        let place = self.place.clone();
        JsonlError::Line { place, line, fault }
    }
}
