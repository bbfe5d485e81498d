//! The types of value.

use std::collections::VecDeque;

use bytes::Bytes;

use super::{Hash, Set, Stream, Zset};

pub(crate) type List = VecDeque<Bytes>;

/// The value of a key. Empty collections are removed from the store, except for streams. Large types are boxed, so that
/// the many small values need little memory.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Str(Bytes),
    List(List),
    Hash(Hash),
    Set(Box<Set>),
    Zset(Box<Zset>),
    Stream(Box<Stream>),
}

impl Value {
    /// Returns the name of the type, as in `TYPE`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Str(_) => "string",
            Self::List(_) => "list",
            Self::Hash(_) => "hash",
            Self::Set(_) => "set",
            Self::Zset(_) => "zset",
            Self::Stream(_) => "stream",
        }
    }

    /// Returns whether clients may wait for it.
    pub(super) fn may_serve(&self) -> bool {
        matches!(self, Self::List(_) | Self::Stream(_))
    }

    /// Returns whether it is an empty collection that is to be removed.
    pub(crate) fn is_empty_collection(&self) -> bool {
        match self {
            Self::Str(_) | Self::Stream(_) => false,
            Self::List(list) => list.is_empty(),
            Self::Hash(hash) => hash.is_empty(),
            Self::Set(set) => set.is_empty(),
            Self::Zset(zset) => zset.is_empty(),
        }
    }
}

/// One type of value, so that a command can request the type that it needs.
pub(crate) trait Kind: Default {
    fn of(value: &Value) -> Option<&Self>;
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    fn into_value(self) -> Value;
}

macro_rules! kind {
    ($type:ty, $variant:ident) => {
        kind!($type, $variant, std::convert::identity);
    };
    ($type:ty, $variant:ident, $wrap:path) => {
        impl Kind for $type {
            fn of(value: &Value) -> Option<&Self> {
                match value {
                    Value::$variant(inner) => Some(inner),
                    _ => None,
                }
            }

            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                match value {
                    Value::$variant(inner) => Some(inner),
                    _ => None,
                }
            }

            fn into_value(self) -> Value {
                Value::$variant($wrap(self))
            }
        }
    };
}

kind!(Bytes, Str);
kind!(List, List);
kind!(Hash, Hash);
kind!(Set, Set, Box::new);
kind!(Zset, Zset, Box::new);
kind!(Stream, Stream, Box::new);
