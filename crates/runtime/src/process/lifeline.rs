//! Death pipe of programs without a launcher: it is closed when this process ends in any way. Python scripts read it
//! and then kill their group.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::LazyLock;

use rustix::io::{FdFlags, fcntl_setfd};

use super::super::sandbox;

/// A pipe without data. Only this process has the writing end. Children inherit the reading end, and kill their own
/// group when it is closed.
static LIFELINE: LazyLock<io::Result<(PipeReader, PipeWriter)>> = LazyLock::new(|| {
    let (reader, writer) = io::pipe()?;
    fcntl_setfd(&reader, FdFlags::empty())?;
    Ok((reader, writer))
});

/// Descriptor that means: nothing to watch.
const NONE: RawFd = -1;

/// Returns the descriptor to read, the same in children; -1 if a launcher watches the worker.
pub(in super::super) fn descriptor() -> io::Result<RawFd> {
    if sandbox::is_on() {
        return Ok(NONE);
    }
    let (reader, _) = LIFELINE
        .as_ref()
        .map_err(|error| io::Error::new(error.kind(), error))?;
    Ok(reader.as_raw_fd())
}
