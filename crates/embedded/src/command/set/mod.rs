//! Commands on sets.

mod algebra;
mod random;
mod read;
mod write;

pub(super) use algebra::{sdiff, sinter, sunion};
pub(super) use random::{spop, srandmember};
pub(super) use read::{scard, sismember, smembers, smismember, sscan};
pub(super) use write::{sadd, smove, srem};
