//! Records and messages of contexts, with a file each for writes, reads and takes. A case has its own key names,
//! since all cases share those of a node.

pub(super) mod commit;
pub(super) mod read;
pub(super) mod take;

use super::{Failure, Outcome, World, cases, check, same};
use crate::cases::harness::world::Got;

/// Returns a key of the case.
fn key(world: &World, name: &str) -> Got<String> {
    Ok(format!("{}:{name}", world.keys().namespace()))
}
