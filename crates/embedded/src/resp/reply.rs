//! Replies of commands, before they are encoded as RESP2 or RESP3.

use bytes::Bytes;

/// A reply. Types of RESP3 are converted to RESP2 as in Redis (map → flat array, double → bulk, null → `$-1`, boolean
/// → integer).
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Null: `$-1` in RESP2, `_` in RESP3.
    Nil,
    /// Null where RESP2 has the null array `*-1`; `_` in RESP3.
    NilArray,
    /// A simple string such as `OK`.
    Status(String),
    /// An error with its code, such as `WRONGTYPE Operation …`.
    Error(String),
    /// An integer.
    Int(i64),
    /// A binary-safe string.
    Bulk(Bytes),
    /// An array.
    Array(Vec<Self>),
    /// A map; a flat array in RESP2.
    Map(Vec<(Self, Self)>),
    /// A set; an array in RESP2.
    Set(Vec<Self>),
    /// A double; a bulk string in RESP2.
    Double(f64),
    /// A boolean; `:1` or `:0` in RESP2.
    Bool(bool),
    /// An out-of-band message; an array in RESP2.
    Push(Vec<Self>),
    /// Verbatim text (`INFO` and its like); a bulk string in RESP2.
    Verbatim(String),
    /// An integer of any length, as its digits; a bulk string in RESP2.
    BigNumber(String),
    /// No reply: the answer was pushed to the session in order (`SUBSCRIBE` and similar commands confirm each channel
    /// there), or the client has switched replies off.
    Nothing,
}

impl Reply {
    /// The reply `+OK`.
    #[must_use]
    pub fn ok() -> Self {
        Self::Status("OK".to_owned())
    }
}
