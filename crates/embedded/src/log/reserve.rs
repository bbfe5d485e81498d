//! Reserved disk space behind the end of the log, so that a full disk is detected before a write and not after it.
//! Readers of the log do not see it, because the file's length stays. File systems without this feature count as
//! having space, until an append fails.

use std::{fs::File, io};

/// Greatest reservation: some thousands of jobs, and little on any disk.
const MOST: u64 = 4 * 1024 * 1024;
/// Least reservation in one step, for a short log.
const LEAST: u64 = 256 * 1024;
/// Space that a write must leave for unannounced writes: removed expired keys, and pops for blocked clients. Enough
/// for some thousands of them.
const KEPT: u64 = 128 * 1024;

/// The reservation.
#[derive(Debug, Default)]
pub(super) struct Reserve {
    /// Reserved up to this byte of the file.
    until: u64,
    /// True if the file system cannot reserve space.
    impossible: bool,
}

impl Reserve {
    /// Reserves space for the `bytes` after `len`, and some more.
    ///
    /// # Errors
    /// The disk is full.
    pub(super) fn make(&mut self, file: &File, len: u64, bytes: u64) -> io::Result<()> {
        let need = bytes.saturating_add(KEPT);
        if self.impossible || len.saturating_add(need) <= self.until {
            return Ok(());
        }
        let preferred = len.clamp(LEAST, MOST).max(need);
        for size in [preferred, need] {
            match allocate(file, len, size) {
                Ok(()) => {
                    self.until = len.saturating_add(size);
                    return Ok(());
                }
                Err(error) if is_full(&error) => {}
                Err(error) => {
                    tracing::debug!(%error, "disk space for the log cannot be reserved");
                    self.impossible = true;
                    return Ok(());
                }
            }
        }
        Err(io::ErrorKind::StorageFull.into())
    }

    /// Records that the file was cut to its length, which frees the reservation.
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
