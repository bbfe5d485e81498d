//! Errors of a start, on their way to the worker: from the last step before the interpreter to the launcher over a pipe
//! that the interpreter's start closes, and from the launcher over its socket.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;

use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};

/// Greatest length of an error's text.
const MAX_TEXT: usize = 512;
/// Greatest length of an encoded error.
pub(super) const MAX_ERROR: usize = size_of::<i32>() + MAX_TEXT;

/// Encodes an error: its number of the system, 0 for none, then its text.
pub(super) fn encode(error: &io::Error) -> Vec<u8> {
    let text = error.to_string();
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    let number = error.raw_os_error().unwrap_or_default();
    [&number.to_le_bytes()[..], text.as_bytes()].concat()
}

/// Decodes an error; `None` for other bytes.
pub(super) fn decode(bytes: &[u8]) -> Option<io::Error> {
    let (number, text) = bytes.split_first_chunk()?;
    Some(match i32::from_le_bytes(*number) {
        0 => io::Error::other(String::from_utf8_lossy(text).into_owned()),
        number => io::Error::from_raw_os_error(number),
    })
}

/// The launcher's end of the pipe.
#[derive(Debug)]
pub(super) struct Handoff(PipeReader);

impl Handoff {
    /// Creates the pipe. The next process inherits the writing end.
    pub(super) fn pipe() -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        ioctl_fionbio(&reader, true)?;
        fcntl_setfd(&writer, FdFlags::empty())?;
        Ok((Self(reader), writer))
    }

    /// Returns the error for which the interpreter has not started, if there is one.
    pub(super) fn error(&self) -> Option<io::Error> {
        let mut bytes = [0; MAX_ERROR];
        let length = (&self.0).read(&mut bytes).ok()?;
        decode(&bytes[..length])
    }
}

/// Returns the number under which the next process inherits the writing end.
pub(super) fn number(writer: &PipeWriter) -> String {
    writer.as_raw_fd().to_string()
}

/// The writing end in the last step before the interpreter, which does not inherit it.
#[derive(Debug)]
pub(super) struct Entry(File);

impl Entry {
    /// Uses the inherited descriptor of this number.
    pub(super) fn inherited(number: &OsStr) -> io::Result<Self> {
        let number = number.to_str().and_then(|number| number.parse().ok());
        let number: i32 = number.ok_or_else(|| io::Error::other("no descriptor"))?;
        let own = OpenOptions::new()
            .write(true)
            .open(format!("/proc/self/fd/{number}"))?;
        nix::unistd::close(number)?;
        Ok(Self(own))
    }

    /// Reports that the interpreter has not started.
    pub(super) fn failed(&self, error: &io::Error) {
        // Fails if the launcher has ended.
        let _ = (&self.0).write_all(&encode(error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_arrive_as_they_were() {
        let error = io::Error::from_raw_os_error(11);
        assert_eq!(decode(&encode(&error)).unwrap().raw_os_error(), Some(11));
        let error = io::Error::other("ä".repeat(MAX_TEXT));
        let encoded = encode(&error);
        assert!(encoded.len() <= MAX_ERROR);
        assert!(decode(&encoded).unwrap().to_string().starts_with('ä'));
        assert!(decode(b"abc").is_none());
    }

    #[test]
    fn a_pipe_without_an_error_is_empty() {
        let (handoff, writer) = Handoff::pipe().unwrap();
        assert!(handoff.error().is_none());
        drop(writer);
        assert!(handoff.error().is_none());
    }
}
