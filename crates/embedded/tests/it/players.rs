//! Roles of other processes in a test: this binary again, with a role in its environment.

use crate::support::role;
use crate::{log, owner};

/// Not a test: the main function of the other process.
#[tokio::test]
async fn child() {
    let Some((part, dir)) = role() else { return };
    match part.as_str() {
        "full-disk" => log::fill_disk(&dir).await,
        "rewrites" => log::rewrite_for_ever(&dir).await,
        "hold" => owner::hold(&dir).await,
        "pose" => owner::pose(&dir),
        name => owner::write_for_ever(name, &dir).await,
    }
}
