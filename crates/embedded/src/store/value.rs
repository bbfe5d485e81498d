//! The kinds of value.

use std::collections::VecDeque;

use bytes::Bytes;

use super::{Hash, Set, Stream, Zset};

pub(crate) type List = VecDeque<Bytes>;

/// What a key holds. A collection that has become empty does not stay in the store, but for a
/// stream.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Str(Bytes),
    List(List),
    Hash(Hash),
    Set(Set),
    Zset(Zset),
    Stream(Stream),
}

impl Value {
    /// The name of the kind, as `TYPE` says it.
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

    /// Whether somebody may wait for it.
    pub(super) fn may_serve(&self) -> bool {
        matches!(self, Self::List(_) | Self::Stream(_))
    }

    /// Whether it is a collection with nothing in it that does not stay.
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

/// One kind of value, so that a command can ask for the kind it works on.
pub(crate) trait Kind: Default {
    fn of(value: &Value) -> Option<&Self>;
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    fn into_value(self) -> Value;
}

macro_rules! kind {
    ($type:ty, $variant:ident) => {
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
                Value::$variant(self)
            }
        }
    };
}

kind!(Bytes, Str);
kind!(List, List);
kind!(Hash, Hash);
kind!(Set, Set);
kind!(Zset, Zset);
kind!(Stream, Stream);
