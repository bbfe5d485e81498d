//! The lifeline of programs without a launcher: a pipe that ends with this process, however it ends, and takes
//! the scripts with it, as far as their interpreter still runs Python code.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::LazyLock;

use rustix::io::{FdFlags, fcntl_setfd};

/// Nobody writes to it. Only this process holds the writing end; the reading end is inherited by what it
/// starts, and a script that reads the end of it kills its own group.
static LIFELINE: LazyLock<io::Result<(PipeReader, PipeWriter)>> = LazyLock::new(|| {
    let (reader, writer) = io::pipe()?;
    fcntl_setfd(&reader, FdFlags::empty())?;
    Ok((reader, writer))
});

/// The descriptor to read from, the same in the children.
pub(super) fn descriptor() -> Result<RawFd, &'static io::Error> {
    LIFELINE.as_ref().map(|(reader, _)| reader.as_raw_fd())
}
