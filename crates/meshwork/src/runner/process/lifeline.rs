//! The lifeline of programs without a launcher: a pipe that ends with this process, however it ends, and takes
//! the scripts with it, as far as their interpreter still runs Python code.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::LazyLock;

use rustix::io::{FdFlags, fcntl_setfd};

use super::super::sandbox;

/// Nobody writes to it. Only this process holds the writing end; the reading end is inherited by what it
/// starts, and a script that reads the end of it kills its own group.
static LIFELINE: LazyLock<io::Result<(PipeReader, PipeWriter)>> = LazyLock::new(|| {
    let (reader, writer) = io::pipe()?;
    fcntl_setfd(&reader, FdFlags::empty())?;
    Ok((reader, writer))
});

/// The descriptor of a lifeline that there is no need to watch.
const NONE: RawFd = -1;

/// The descriptor to read from, the same in the children; -1 where a launcher watches the worker.
pub(in super::super) fn descriptor() -> io::Result<RawFd> {
    if sandbox::is_on() {
        return Ok(NONE);
    }
    let (reader, _) = LIFELINE
        .as_ref()
        .map_err(|error| io::Error::new(error.kind(), error))?;
    Ok(reader.as_raw_fd())
}
