//! Options that several commands share, and their parsers.

pub(crate) mod endpoint;
pub(crate) mod filter;
pub(crate) mod guard;
pub(crate) mod input;
pub(crate) mod location;
pub(crate) mod moment;
pub(crate) mod parsers;
pub(crate) mod protocol;
pub(crate) mod routing;
pub(crate) mod sandbox;
pub(crate) mod script;
pub(crate) mod trace;
pub(crate) mod yaml;
