//! A disk that a test can fill: a file system in memory, of a few MB.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::servers::tools::report_skipped;

/// Bytes in one write while the disk is filled, so that its last bytes are used, too.
const PIECE: usize = 4096;

/// Name of the file that uses the free space.
const FILLING: &str = "filling";

/// A mounted file system, unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts one of this size in bytes. Only root may: otherwise the test is reported as skipped, and `None` is
    /// returned.
    ///
    /// # Panics
    /// No folder can be created for it.
    #[must_use]
    pub fn mount(test: &str, bytes: u64) -> Option<Self> {
        let dir = tempfile::Builder::new().prefix("mw-").tempdir();
        let dir = dir.expect("a folder can be made");
        let size = format!("size={bytes},mode=0700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "none"])
            .arg(dir.path())
            .output();
        if mounted.is_ok_and(|done| done.status.success()) {
            return Some(Self(dir));
        }
        report_skipped(&format!("skipped: {test}: no right to mount a tmpfs\n"));
        None
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Uses all free space.
    ///
    /// # Panics
    /// A write fails for another reason than a full disk.
    pub fn fill(&self) {
        let mut file = File::options()
            .append(true)
            .create(true)
            .open(self.filling());
        let file = file.as_mut().expect("a file takes no room");
        let full = loop {
            if let Err(error) = file.write_all(&[b'x'; PIECE]) {
                break error;
            }
        };
        assert_eq!(full.kind(), ErrorKind::StorageFull, "{full}");
    }

    /// Frees that space.
    ///
    /// # Panics
    /// It was not filled.
    pub fn free(&self) {
        fs::remove_file(self.filling()).expect("it was filled");
    }

    fn filling(&self) -> PathBuf {
        self.path().join(FILLING)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Works also while a process of a failed test still has files there.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
