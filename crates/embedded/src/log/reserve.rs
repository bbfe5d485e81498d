//! Disk space that is set aside behind the end of the log, so that a full disk is met before a write
//! is done and not after. The file is not longer by it: whoever reads the log sees nothing of it.
//! File systems that cannot do so are taken as having room, until an append fails.

use std::{fs::File, io};

/// The most that is set aside: some thousands of jobs, and little on any disk.
const MOST: u64 = 4 * 1024 * 1024;
/// The least that is asked for at a time, where the log is shorter.
const LEAST: u64 = 256 * 1024;
/// What a write leaves for what nobody could announce: expired keys that readers find, and pops for
/// clients that waited. Some thousand of either.
const KEPT: u64 = 128 * 1024;

/// What is set aside.
#[derive(Debug, Default)]
pub(super) struct Reserve {
    /// Up to this byte of the file.
    until: u64,
    /// The file system cannot set anything aside.
    impossible: bool,
}

impl Reserve {
    /// Makes sure that the `bytes` after `len`, and some more, have their place on the disk.
    ///
    /// # Errors
    /// When the disk is full.
    pub(super) fn make(&mut self, file: &File, len: u64, bytes: u64) -> io::Result<()> {
        let need = bytes.saturating_add(KEPT);
        if self.impossible || len.saturating_add(need) <= self.until {
            return Ok(());
        }
        let wish = len.clamp(LEAST, MOST).max(need);
        for size in [wish, need] {
            match allocate(file, len, size) {
                Ok(()) => {
                    self.until = len.saturating_add(size);
                    return Ok(());
                }
                Err(error) if is_full(&error) => {}
                Err(error) => {
                    tracing::debug!(%error, "no disk space can be set aside for the log");
                    self.impossible = true;
                    return Ok(());
                }
            }
        }
        Err(io::ErrorKind::StorageFull.into())
    }

    /// Notes that the file was cut to its length, which gives back what was set aside.
    pub(super) fn forget(&mut self) {
        self.until = 0;
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(target_os = "linux")]
fn allocate(file: &File, from: u64, size: u64) -> io::Result<()> {
    use rustix::{
        fs::{FallocateFlags, fallocate},
        io::retry_on_intr,
    };

    retry_on_intr(|| fallocate(file, FallocateFlags::KEEP_SIZE, from, size))?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn allocate(_: &File, _: u64, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
