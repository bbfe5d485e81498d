//! Records and messages of contexts: one file for what changes, reads and takes them. A case has names of its own, since
//! those of a node are the same for all.

pub(super) mod commit;
pub(super) mod read;
pub(super) mod take;

use super::world::Got;
use super::{Failure, Outcome, World, cases, check, same};

/// A key of the case.
fn key(world: &World, name: &str) -> Got<String> {
    Ok(format!("{}:{name}", world.keys().namespace()))
}
