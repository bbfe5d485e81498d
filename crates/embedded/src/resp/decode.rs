//! Decoder for replies, for clients with raw commands (tests, the differential fuzzer). The engine itself never
//! decodes a reply.

use bytes::Bytes;

use super::{Reply, encode::VERBATIM_FORMAT, number::parse_integer};

/// Greatest nesting of a reply, so that a hostile server cannot exhaust the stack.
const MAX_DEPTH: usize = 512;

/// Greatest initial capacity for the items of an aggregate: announced lengths are not trusted.
const MAX_RESERVE: usize = 1024;

/// Bytes that are not a reply.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DecodeError {
    /// The first byte is not a known type of reply.
    #[error("reply: unknown kind {0:?}")]
    Kind(char),
    /// A length, number or boolean is not valid.
    #[error("reply: {0:?} is not a valid {1}")]
    Value(String, &'static str),
    /// The reply is nested too deeply.
    #[error("reply: nested more than {MAX_DEPTH} deep")]
    Depth,
}

/// Decodes one reply at the start of `input`, and returns its length; `None` if more bytes are needed.
///
/// # Errors
/// The bytes cannot become a reply, whatever follows.
pub fn decode_reply(input: &[u8]) -> Result<Option<(Reply, usize)>, DecodeError> {
    let mut reader = Reader { input, at: 0 };
    Ok(reader.reply(0)?.map(|reply| (reply, reader.at)))
}

struct Reader<'a> {
    input: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn reply(&mut self, depth: usize) -> Result<Option<Reply>, DecodeError> {
        if depth > MAX_DEPTH {
            return Err(DecodeError::Depth);
        }
        let Some((kind, text)) = self.line() else {
            return Ok(None);
        };
        let owned = || String::from_utf8_lossy(text).into_owned();
        let invalid = |what| DecodeError::Value(owned(), what);
        Ok(Some(match kind {
            b'+' => Reply::Status(owned()),
            b'-' => Reply::Error(owned()),
            b':' => Reply::Int(parse_integer(text).ok_or_else(|| invalid("integer"))?),
            b'_' => Reply::Nil,
            b'(' => Reply::BigNumber(owned()),
            b'#' => match text {
                b"t" => Reply::Bool(true),
                b"f" => Reply::Bool(false),
                _ => return Err(invalid("boolean")),
            },
            b',' => Reply::Double(owned().parse().map_err(|_| invalid("double"))?),
            b'$' | b'=' | b'!' => match length(text)? {
                None => Reply::Nil,
                Some(len) => match self.bulk(len) {
                    None => return Ok(None),
                    Some(bytes) => bulk_reply(kind, bytes),
                },
            },
            b'*' | b'~' | b'>' | b'%' => match length(text)? {
                None => Reply::NilArray,
                Some(len) => return self.aggregate(kind, len, depth),
            },
            other => return Err(DecodeError::Kind(char::from(other))),
        }))
    }

    fn aggregate(
        &mut self,
        kind: u8,
        len: usize,
        depth: usize,
    ) -> Result<Option<Reply>, DecodeError> {
        let count = if kind == b'%' { len * 2 } else { len };
        let mut items = Vec::with_capacity(count.min(MAX_RESERVE));
        for _ in 0..count {
            match self.reply(depth + 1)? {
                Some(item) => items.push(item),
                None => return Ok(None),
            }
        }
        Ok(Some(match kind {
            b'~' => Reply::Set(items),
            b'>' => Reply::Push(items),
            b'%' => Reply::Map(pairs(items)),
            _ => Reply::Array(items),
        }))
    }

    /// Returns the next line without its type and its line break.
    fn line(&mut self) -> Option<(u8, &'a [u8])> {
        let rest = &self.input[self.at..];
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        self.at += end + 2;
        let (kind, text) = rest[..end].split_first().unwrap_or((&b'\r', &[]));
        Some((*kind, text))
    }

    fn bulk(&mut self, len: usize) -> Option<&'a [u8]> {
        let bytes = self.input.get(self.at..self.at + len)?;
        self.input.get(self.at + len..self.at + len + 2)?;
        self.at += len + 2;
        Some(bytes)
    }
}

fn pairs(items: Vec<Reply>) -> Vec<(Reply, Reply)> {
    let mut items = items.into_iter();
    let mut pairs = Vec::with_capacity(items.len() / 2);
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        pairs.push((key, value));
    }
    pairs
}

fn bulk_reply(kind: u8, bytes: &[u8]) -> Reply {
    match kind {
        b'$' => Reply::Bulk(Bytes::copy_from_slice(bytes)),
        b'!' => Reply::Error(String::from_utf8_lossy(bytes).into_owned()),
        _ => {
            let text = bytes.get(VERBATIM_FORMAT.len()..).unwrap_or_default();
            Reply::Verbatim(String::from_utf8_lossy(text).into_owned())
        }
    }
}

/// Parses a length; -1 is null.
fn length(text: &[u8]) -> Result<Option<usize>, DecodeError> {
    let invalid = || DecodeError::Value(String::from_utf8_lossy(text).into_owned(), "length");
    match parse_integer(text) {
        Some(-1) => Ok(None),
        Some(len) => u32::try_from(len)
            .map(|len| Some(len as usize))
            .map_err(|_| invalid()),
        None => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::resp::{Protocol, encode_reply};

    fn replies() -> impl Strategy<Value = Reply> {
        let leaf = prop_oneof![
            Just(Reply::Nil),
            "[^\r\n]*".prop_map(Reply::Status),
            "[^\r\n]*".prop_map(Reply::Error),
            any::<i64>().prop_map(Reply::Int),
            any::<Vec<u8>>().prop_map(|bytes| Reply::Bulk(bytes.into())),
            any::<bool>().prop_map(Reply::Bool),
            prop_oneof![Just(f64::INFINITY), proptest::num::f64::NORMAL].prop_map(Reply::Double),
            ".*".prop_map(Reply::Verbatim),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            let items = || proptest::collection::vec(inner.clone(), 0..8);
            prop_oneof![
                items().prop_map(Reply::Array),
                items().prop_map(Reply::Set),
                items().prop_map(Reply::Push),
                proptest::collection::vec((inner.clone(), inner.clone()), 0..4)
                    .prop_map(Reply::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn resp3_keeps_every_reply(reply in replies()) {
            let mut out = Vec::new();
            encode_reply(&reply, Protocol::Resp3, &mut out);
            prop_assert_eq!(decode_reply(&out), Ok(Some((reply, out.len()))));
            for cut in 0..out.len() {
                prop_assert_eq!(decode_reply(&out[..cut]), Ok(None));
            }
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = decode_reply(&bytes);
        }
    }

    #[test]
    fn nulls_of_resp2_are_told_apart() {
        assert_eq!(decode_reply(b"$-1\r\n"), Ok(Some((Reply::Nil, 5))));
        assert_eq!(decode_reply(b"*-1\r\n"), Ok(Some((Reply::NilArray, 5))));
    }

    #[test]
    fn nesting_is_bounded() {
        assert_eq!(
            decode_reply("*1\r\n".repeat(100_000).as_bytes()),
            Err(DecodeError::Depth)
        );
    }
}
