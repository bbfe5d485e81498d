//! Data directories of a program without the embedded engine: there is nothing to examine.

use std::path::Path;

use super::Finding;
use crate::conn::ConnectError;

pub(super) const fn check(_: &Path) -> Vec<Finding> {
    Vec::new()
}

/// Returns the error: none is about a data directory.
pub(super) const fn stranger(error: ConnectError) -> Result<Vec<Finding>, ConnectError> {
    Err(error)
}
