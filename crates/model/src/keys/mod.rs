//! All keys of the store, each built by a typed function. No other module builds keys.

pub mod bananas;
pub mod context;
pub mod hero;
pub mod nooble;
mod queues;
pub(crate) mod suffix;
pub mod table;
