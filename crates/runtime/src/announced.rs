//! Announcement of claimed jobs to a runtime that groups them.

use tokio::sync::watch;

/// Reservation of a claimed job that has not joined a group yet. It ends when this is dropped.
#[derive(Debug)]
pub struct Announced(watch::Sender<usize>);

impl Announced {
    /// Counts a job that is coming.
    #[must_use]
    pub fn new(coming: &watch::Sender<usize>) -> Self {
        coming.send_modify(|coming| *coming += 1);
        Self(coming.clone())
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.0.send_modify(|coming| *coming -= 1);
    }
}
