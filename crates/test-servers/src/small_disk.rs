//! A disk that is full when a test wants it to be: a file system in memory, of a few MB.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::servers::tools::report_skipped;

/// Written at a time while the disk is filled: its last bytes are to be taken, too.
const PIECE: usize = 4096;

/// The file that takes what is left.
const FILLING: &str = "filling";

/// A mounted file system. It goes with this value.
#[derive(Debug)]
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts one of so many bytes. Only root may: where that is not so, the test is reported as skipped
    /// and there is none.
    ///
    /// # Panics
    /// When no folder can be made for it.
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

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the room that is left.
    ///
    /// # Panics
    /// When that fails otherwise than for want of room.
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

    /// Gives that room back.
    ///
    /// # Panics
    /// When it was not filled.
    pub fn free(&self) {
        fs::remove_file(self.filling()).expect("it was filled");
    }

    fn filling(&self) -> PathBuf {
        self.path().join(FILLING)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Also while a process of a failed test still has files there.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
