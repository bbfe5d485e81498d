//! The interface between the engine and the append-only log, which is in another module.

use std::io;

use crate::store::Effect;

/// Receives writes before clients get their replies.
///
/// All methods are called under the lock of the engine.
pub(crate) trait Journal: Send {
    /// Appends the effects of one command, script or transaction as one unit.
    ///
    /// All or nothing: after an error the log is unchanged. The engine keeps the effects, refuses all reads and
    /// writes of data with `MISCONF`, and passes the same effects again at the next call.
    fn append(&mut self, effects: &[Effect]) -> io::Result<()>;

    /// Ensures, as far as the file system permits, that an append of `bytes` will not fail for lack of space. Called
    /// before a write; after an error the write is not done.
    fn make_room(&mut self, bytes: u64) -> io::Result<()>;

    /// Called at the moment of the engine's `snapshot`: earlier appends are in the snapshot, later ones are not.
    fn snapshot_taken(&mut self);

    /// `BGREWRITEAOF`: begins a rewrite in the background, or returns the reason why not.
    fn start_rewrite(&mut self) -> Result<(), String>;

    /// Returns lines for the section `persistence` of `INFO`, as `name:value`.
    fn info(&self) -> Vec<String>;
}
