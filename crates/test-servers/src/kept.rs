//! A child process that does not outlive its parent.

use std::process::Child;

/// A process that is killed when dropped.
pub struct Kept(pub Child);

impl Drop for Kept {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
