//! An entry of the table of commands: name, arity, flags, and positions of keys.

use bytes::Bytes;

use super::DataFn;

/// One command of the table.
pub(crate) struct Spec {
    /// Name in lower case; of a subcommand both words, as in `client|id`.
    pub(crate) name: &'static str,
    /// Number of arguments with the name; negative: the least number.
    pub(crate) arity: i32,
    pub(crate) flags: Flags,
    pub(crate) keys: Keys,
    /// Function of the command; `None` if the command needs its session, or other parts of the engine.
    pub(crate) data: Option<DataFn>,
}

impl Spec {
    /// Returns the keys of a request at fixed positions.
    pub(crate) fn keys_in<'a>(&self, args: &'a [Bytes]) -> impl Iterator<Item = &'a Bytes> {
        let Keys { first, last, step } = self.keys;
        let place = |place: i32| {
            let len = i32::try_from(args.len()).unwrap_or(i32::MAX);
            usize::try_from(if place < 0 { len + place } else { place }).unwrap_or(0)
        };
        let (first, end) = if first == 0 {
            (0, 0)
        } else {
            (place(first), place(last) + 1)
        };
        let step = usize::try_from(step).unwrap_or(1).max(1);
        args.get(first..end.min(args.len()))
            .unwrap_or_default()
            .iter()
            .step_by(step)
    }

    /// Returns whether a call may have `args` arguments, with the name.
    pub(crate) fn takes(&self, args: usize) -> bool {
        let need = usize::try_from(self.arity.unsigned_abs()).unwrap_or(usize::MAX);
        if self.arity < 0 {
            args >= need
        } else {
            args == need
        }
    }

    /// Returns the error of a call with a wrong number of arguments.
    pub(crate) fn check_arity(&self, args: usize) -> Result<(), String> {
        if self.takes(args) {
            return Ok(());
        }
        Err(format!(
            "ERR wrong number of arguments for '{}' command",
            self.name
        ))
    }
}

/// Positions of the keys among the arguments, as in `COMMAND`. A negative `last` counts from the end. All 0: there
/// are no keys, or `Flags::MOVABLE` and an argument gives their number.
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

/// Flags of a command, with their names in `COMMAND`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    pub(crate) const WRITE: Self = Self(1);
    pub(crate) const READONLY: Self = Self(1 << 1);
    /// Refused if memory is short.
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
    /// Its second argument is the name of a subcommand with an entry of its own, such as `client|id`, whose arity
    /// counts both words.
    pub(crate) const CONTAINER: Self = Self(1 << 12);

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the names of the flags.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES
            .iter()
            .filter(move |(flag, _)| self.has(*flag))
            .map(|(_, name)| *name)
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

const NAMES: [(Flags, &str); 12] = [
    (Flags::WRITE, "write"),
    (Flags::READONLY, "readonly"),
    (Flags::DENYOOM, "denyoom"),
    (Flags::ADMIN, "admin"),
    (Flags::PUBSUB, "pubsub"),
    (Flags::NOSCRIPT, "noscript"),
    (Flags::BLOCKING, "blocking"),
    (Flags::LOADING, "loading"),
    (Flags::STALE, "stale"),
    (Flags::FAST, "fast"),
    (Flags::MOVABLE, "movablekeys"),
    (Flags::NO_MULTI, "no_multi"),
];
