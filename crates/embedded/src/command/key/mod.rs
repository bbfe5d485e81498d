//! Commands on keys of any type.

mod delete;
mod expire;
mod find;
mod rename;
mod ttl;

pub(super) use delete::{del, flushall, flushdb};
pub(super) use expire::{expire, expireat, persist, pexpire, pexpireat};
pub(super) use find::{dbsize, exists, keys, kind, randomkey, scan};
pub(super) use rename::{copy, rename, renamenx};
pub(super) use ttl::{expiretime, pexpiretime, pttl, ttl};
