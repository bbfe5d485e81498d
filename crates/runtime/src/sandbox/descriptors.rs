//! Closes inherited descriptors: the parent of the worker may have left some open, and scripts must not use them.

use std::fs;
use std::io;

use rustix::io::Errno;

/// Highest standard descriptor.
const STDERR: i32 = 2;

/// Closes all descriptors except stdin, stdout and stderr. To be called first, before the program opens files.
pub(super) fn close_all_but_standard() -> io::Result<()> {
    let entries = fs::read_dir("/proc/self/fd")?;
    let open = entries.map(|entry| Ok(entry?.file_name().to_str().and_then(|n| n.parse().ok())));
    let open: Vec<Option<i32>> = open.collect::<io::Result<_>>()?;
    for descriptor in open.into_iter().flatten().filter(|number| *number > STDERR) {
        match nix::unistd::close(descriptor) {
            // The descriptor of the listed folder itself is closed already.
            Ok(()) | Err(nix::errno::Errno::EBADF) => {}
            Err(error) => return Err(Errno::from_raw_os_error(error as i32).into()),
        }
    }
    Ok(())
}
