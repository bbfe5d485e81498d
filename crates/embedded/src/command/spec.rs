//! What the table of commands knows of each: name, arity, flags, where its keys stand, what runs it.

use super::{DataFn, SessionFn};

/// One command of the table.
pub(crate) struct Spec {
    /// Lower case.
    pub(crate) name: &'static str,
    /// The number of arguments with the name; negative: at least so many.
    pub(crate) arity: i32,
    pub(crate) flags: Flags,
    pub(crate) keys: Keys,
    pub(crate) run: Run,
}

impl Spec {
    /// Whether a call with `args` arguments (the name counts) has the right number of them.
    pub(crate) fn takes(&self, args: usize) -> bool {
        let need = usize::try_from(self.arity.unsigned_abs()).unwrap_or(usize::MAX);
        if self.arity < 0 {
            args >= need
        } else {
            args == need
        }
    }
}

/// Where the keys stand among the arguments, as `COMMAND` says it: `last` < 0 counts from the
/// end; all 0: none, or `Flags::MOVABLE` and a number of keys says which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) first: i32,
    pub(crate) last: i32,
    pub(crate) step: i32,
}

impl Keys {
    pub(crate) const NONE: Self = Self::range(0, 0, 0);
    /// The first argument.
    pub(crate) const ONE: Self = Self::range(1, 1, 1);
    /// The first two arguments.
    pub(crate) const TWO: Self = Self::range(1, 2, 1);
    /// Every argument.
    pub(crate) const ALL: Self = Self::range(1, -1, 1);

    pub(crate) const fn range(first: i32, last: i32, step: i32) -> Self {
        Self { first, last, step }
    }
}

/// The flags of a command, as `COMMAND` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    pub(crate) const WRITE: Self = Self(1);
    pub(crate) const READONLY: Self = Self(1 << 1);
    /// Refused when memory is short.
    pub(crate) const DENYOOM: Self = Self(1 << 2);
    pub(crate) const FAST: Self = Self(1 << 3);
    pub(crate) const BLOCKING: Self = Self(1 << 4);
    pub(crate) const NOSCRIPT: Self = Self(1 << 5);
    pub(crate) const MOVABLE: Self = Self(1 << 6);
    pub(crate) const ADMIN: Self = Self(1 << 7);
    pub(crate) const PUBSUB: Self = Self(1 << 8);
    pub(crate) const LOADING: Self = Self(1 << 9);
    pub(crate) const STALE: Self = Self(1 << 10);
    pub(crate) const NO_MULTI: Self = Self(1 << 11);

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What runs a command.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// It needs no more than the data.
    Data(DataFn),
    /// It needs the session that sent it, or other parts of the engine.
    Session(SessionFn),
}
