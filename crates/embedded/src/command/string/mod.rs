//! Commands on strings.

mod edit;
mod expiry;
mod get;
mod incr;
mod set;

pub(super) use edit::{append, setrange};
pub(super) use get::{get, getdel, getex, getrange, mget, strlen};
pub(super) use incr::{decr, decrby, incr, incrby, incrbyfloat};
pub(super) use set::{getset, mset, msetnx, psetex, set, setex, setnx};
