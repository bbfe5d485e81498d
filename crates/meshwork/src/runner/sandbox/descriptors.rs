//! Descriptors that a process was started with beyond the standard ones: whoever started the worker may have
//! left some open, and no script is to find them.

use std::fs;
use std::io;

use rustix::io::Errno;

/// The last of the standard descriptors.
const STDERR: i32 = 2;

/// Closes all but stdin, stdout and stderr. Only for the first lines of a program, which has opened nothing
/// yet.
pub(super) fn close_all_but_standard() -> io::Result<()> {
    let entries = fs::read_dir("/proc/self/fd")?;
    let open = entries.map(|entry| Ok(entry?.file_name().to_str().and_then(|n| n.parse().ok())));
    let open: Vec<Option<i32>> = open.collect::<io::Result<_>>()?;
    for descriptor in open.into_iter().flatten().filter(|number| *number > STDERR) {
        match nix::unistd::close(descriptor) {
            // The folder itself stood in the list, and is closed already.
            Ok(()) | Err(nix::errno::Errno::EBADF) => {}
            Err(error) => return Err(Errno::from_raw_os_error(error as i32).into()),
        }
    }
    Ok(())
}
