//! The seam to the append-only log: what the engine asks of it. The log itself is not here.

use std::io;

use crate::store::Effect;

/// Where writes go before anybody is told of them.
///
/// All methods are called under the lock of the engine.
pub(crate) trait Journal: Send {
    /// Writes the effects of one command, script or transaction as one unit.
    ///
    /// All or nothing: after an error the log is as it was before the call. The engine keeps the
    /// effects, refuses with `MISCONF` all that reads or writes data, and hands the same effects in
    /// again at the next call.
    fn append(&mut self, effects: &[Effect]) -> io::Result<()>;

    /// Makes sure, as far as the file system can promise it, that an append of `bytes` will not fail
    /// for want of room. Called before a write is done; after an error it is not done.
    fn make_room(&mut self, bytes: u64) -> io::Result<()>;

    /// Called at the very moment of the engine's `snapshot`: what was appended so far is in
    /// the snapshot, what is appended from here on is not.
    fn snapshot_taken(&mut self);

    /// `BGREWRITEAOF`: begins a rewrite in the background, or says why not.
    fn start_rewrite(&mut self) -> Result<(), String>;

    /// Lines for the section `persistence` of `INFO`, as `name:value`.
    fn info(&self) -> Vec<String>;
}
