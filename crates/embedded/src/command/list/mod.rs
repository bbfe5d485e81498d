//! Commands on lists.

mod block;
mod edit;
mod pop;
mod push;
mod read;
mod transfer;

use bytes::Bytes;

use crate::{
    command::{
        Stop,
        args::{is_word, syntax_error},
    },
    store::List,
};

pub(super) use block::{blmove, blmpop, blpop, brpop, brpoplpush};
pub(super) use edit::{linsert, lrem, lset, ltrim};
pub(super) use pop::{lmpop, lpop, rpop};
pub(super) use push::{lpush, lpushx, rpush, rpushx};
pub(super) use read::{lindex, llen, lpos, lrange};
pub(super) use transfer::{lmove, rpoplpush};

/// An end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Left,
    Right,
}

impl End {
    fn parse(arg: &[u8]) -> Result<Self, Stop> {
        if is_word(arg, "LEFT") {
            Ok(Self::Left)
        } else if is_word(arg, "RIGHT") {
            Ok(Self::Right)
        } else {
            Err(syntax_error())
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Left => "LEFT",
            Self::Right => "RIGHT",
        }
    }

    /// Returns the command that pops from this end.
    fn pop_name(self) -> &'static str {
        match self {
            Self::Left => "LPOP",
            Self::Right => "RPOP",
        }
    }

    fn push(self, list: &mut List, element: Bytes) {
        match self {
            Self::Left => list.push_front(element),
            Self::Right => list.push_back(element),
        }
    }

    fn pop(self, list: &mut List) -> Option<Bytes> {
        match self {
            Self::Left => list.pop_front(),
            Self::Right => list.pop_back(),
        }
    }

    /// Pops up to `count` elements, the outermost first.
    fn pop_many(self, list: &mut List, count: usize) -> Vec<Bytes> {
        let count = count.min(list.len());
        match self {
            Self::Left => list.drain(..count).collect(),
            Self::Right => list.drain(list.len() - count..).rev().collect(),
        }
    }
}
