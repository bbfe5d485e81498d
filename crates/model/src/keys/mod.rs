//! Every Redis name, each built by a typed function; nowhere else is a key put together.

pub mod bananas;
pub mod context;
pub mod hero;
pub mod nooble;
mod queues;
pub(crate) mod suffix;
