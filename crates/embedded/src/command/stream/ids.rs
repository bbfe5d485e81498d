//! Ids of entries in arguments.

use bytes::Bytes;

use crate::{
    command::{
        Stop,
        args::refuse,
        number::{parse_ull, until_nul},
    },
    store::StreamId,
};

/// Greatest length of an id, in characters.
const TEXT_MAX: usize = 127;

/// An id for XADD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewId {
    /// `*`
    Auto,
    /// `ms-*`
    AutoIn(u64),
    Given(StreamId),
}

/// Parses an id, not `-` or `+`. A missing second part is 0.
pub(super) fn id(arg: &[u8]) -> Result<StreamId, Stop> {
    parse(arg, 0).ok_or_else(invalid)
}

/// Parses an id; `None` for other texts.
pub(super) fn try_id(arg: &[u8]) -> Option<StreamId> {
    parse(arg, 0)
}

/// Parses ids, all of them before anything is changed.
pub(super) fn all(args: &[Bytes]) -> Result<Vec<StreamId>, Stop> {
    args.iter().map(|arg| id(arg)).collect()
}

/// Parses an id, `-` or `+`.
pub(super) fn id_or_end(arg: &[u8], missing_seq: u64) -> Result<StreamId, Stop> {
    match until_nul(arg) {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => parse(arg, missing_seq).ok_or_else(invalid),
    }
}

pub(super) fn new_id(arg: &[u8]) -> Result<NewId, Stop> {
    let text = until_nul(arg);
    if text == b"*" {
        return Ok(NewId::Auto);
    }
    if let Some(ms) = text.strip_suffix(b"-*")
        && !ms.contains(&b'-')
        && arg.len() <= TEXT_MAX
    {
        return parse_ull(ms).map(NewId::AutoIn).ok_or_else(invalid);
    }
    id(arg).map(NewId::Given)
}

/// Parses the start of an interval; after `(` it is exclusive.
pub(super) fn start(arg: &[u8]) -> Result<StreamId, Stop> {
    match open(arg) {
        Some(rest) => {
            let next = id(rest)?.next();
            next.ok_or_else(|| refuse("invalid start ID for the interval"))
        }
        None => id_or_end(arg, 0),
    }
}

/// Parses the end of an interval; after `(` it is exclusive.
pub(super) fn end(arg: &[u8]) -> Result<StreamId, Stop> {
    match open(arg) {
        Some(rest) => {
            let end = parse(rest, u64::MAX).ok_or_else(invalid)?;
            let previous = end.previous();
            previous.ok_or_else(|| refuse("invalid end ID for the interval"))
        }
        None => id_or_end(arg, u64::MAX),
    }
}

fn open(arg: &[u8]) -> Option<&[u8]> {
    arg.strip_prefix(b"(").filter(|rest| !rest.is_empty())
}

fn parse(arg: &[u8], missing_seq: u64) -> Option<StreamId> {
    if arg.len() > TEXT_MAX {
        return None;
    }
    let text = until_nul(arg);
    let Some(dash) = text.iter().position(|byte| *byte == b'-') else {
        return Some(StreamId::new(parse_ull(text)?, missing_seq));
    };
    let (ms, seq) = (&text[..dash], &text[dash + 1..]);
    Some(StreamId::new(parse_ull(ms)?, parse_ull(seq)?))
}

fn invalid() -> Stop {
    refuse("Invalid stream ID specified as stream command argument")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        for (text, ms, seq) in [
            ("5", 5, 0),
            ("5-3", 5, 3),
            (" 5-+3", 5, 3),
            ("007", 7, 0),
            (
                "18446744073709551615-18446744073709551615",
                u64::MAX,
                u64::MAX,
            ),
            ("5--03", 5, u64::MAX - 2),
            ("5-1\0x", 5, 1),
        ] {
            assert_eq!(
                try_id(text.as_bytes()),
                Some(StreamId::new(ms, seq)),
                "{text}"
            );
        }
        for text in [
            "",
            "-",
            "+",
            "*",
            "5-",
            "-5",
            "5--3",
            "5-*",
            "5-1x",
            "18446744073709551616",
        ] {
            assert_eq!(try_id(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn intervals_may_leave_out_their_ends() {
        assert_eq!(start(b"(5").unwrap(), StreamId::new(5, 1));
        assert_eq!(end(b"(5").unwrap(), StreamId::new(5, u64::MAX - 1));
        assert_eq!(end(b"(5-0").unwrap(), StreamId::new(4, u64::MAX));
        assert_eq!(start(b"-").unwrap(), StreamId::MIN);
        for text in [
            "(",
            "(-",
            "(+",
            "(18446744073709551615-18446744073709551615",
        ] {
            assert!(start(text.as_bytes()).is_err(), "{text}");
        }
        assert!(end(b"(0-0").is_err());
    }
}
