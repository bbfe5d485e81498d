//! Commands on hashes.

mod incr;
mod read;
mod write;

pub(super) use incr::{hincrby, hincrbyfloat};
pub(super) use read::{hexists, hget, hgetall, hkeys, hlen, hmget, hscan, hstrlen, hvals};
pub(super) use write::{hdel, hmset, hset, hsetnx};
