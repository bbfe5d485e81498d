//! The data: databases of keys, each a value with an optional deadline. No commands here.

/// All databases.
pub(crate) struct Store {}
