//! Export and restore of the data of a namespace.

pub(crate) mod export;
pub(crate) mod restore;
