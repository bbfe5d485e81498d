//! Arguments of commands, and Redis' error messages for invalid ones.

use bytes::Bytes;

use super::{
    Stop,
    number::{Extended, parse_bound, parse_cursor, parse_score, until_nul},
};
use crate::resp::parse_integer;

/// Bytes of the longest string (`proto-max-bulk-len`).
pub(crate) const MAX_STRING: usize = 512 * 1024 * 1024;

/// An error reply with the code `ERR`.
pub(crate) fn refuse(text: impl std::fmt::Display) -> Stop {
    Stop::Error(format!("ERR {text}"))
}

pub(crate) fn syntax_error() -> Stop {
    refuse("syntax error")
}

pub(crate) fn wrong_type() -> Stop {
    Stop::Error("WRONGTYPE Operation against a key holding the wrong kind of value".to_owned())
}

pub(crate) fn no_such_key() -> Stop {
    refuse("no such key")
}

pub(crate) fn string_too_long() -> Stop {
    refuse("string exceeds maximum allowed size (proto-max-bulk-len)")
}

pub(crate) fn would_overflow() -> Stop {
    refuse("increment or decrement would overflow")
}

/// Returns the command's name as error messages show it.
pub(crate) fn command_name(args: &[Bytes]) -> String {
    args.first()
        .map(|name| String::from_utf8_lossy(name).to_lowercase())
        .unwrap_or_default()
}

pub(crate) fn wrong_arity(args: &[Bytes]) -> Stop {
    refuse(format_args!(
        "wrong number of arguments for '{}' command",
        command_name(args)
    ))
}

/// Returns the error for a subcommand with wrong arguments.
pub(crate) fn wrong_subcommand(args: &[Bytes]) -> Stop {
    const QUOTED_MAX: usize = 128;
    let name = command_name(args).to_uppercase();
    let sub = until_nul(&args[1]);
    let sub = String::from_utf8_lossy(&sub[..sub.len().min(QUOTED_MAX)]);
    let text = format!("unknown subcommand or wrong number of arguments for '{sub}'");
    refuse(format_args!("{text}. Try {name} HELP."))
}

pub(crate) fn bad_expire_time(args: &[Bytes]) -> Stop {
    refuse(format_args!(
        "invalid expire time in '{}' command",
        command_name(args)
    ))
}

/// Returns whether an argument is this word, in any case.
pub(crate) fn is_word(arg: &[u8], word: &str) -> bool {
    until_nul(arg).eq_ignore_ascii_case(word.as_bytes())
}

pub(crate) fn int(arg: &[u8]) -> Result<i64, Stop> {
    parse_integer(arg).ok_or_else(|| refuse("value is not an integer or out of range"))
}

/// An integer of at least `min`; anything else is refused with `text`.
pub(crate) fn at_least(arg: &[u8], min: i64, text: &str) -> Result<i64, Stop> {
    parse_integer(arg)
        .filter(|value| *value >= min)
        .ok_or_else(|| refuse(text))
}

/// Parses the index of a database, which may not exist.
pub(crate) fn parse_index(arg: &[u8]) -> Result<i32, Stop> {
    i32::try_from(int(arg)?).map_err(|_| {
        let (min, max) = (i32::MIN, i32::MAX);
        refuse(format_args!(
            "value is out of range, value must between {min} and {max}"
        ))
    })
}

/// A count of 0 or more.
pub(crate) fn count(arg: &[u8]) -> Result<usize, Stop> {
    let value = at_least(arg, 0, "value is out of range, must be positive")?;
    Ok(usize::try_from(value).unwrap_or(usize::MAX))
}

pub(crate) fn score(arg: &[u8]) -> Result<f64, Stop> {
    parse_score(arg).ok_or_else(not_a_float)
}

pub(crate) fn extended(arg: &[u8]) -> Result<Extended, Stop> {
    Extended::parse(arg).ok_or_else(not_a_float)
}

fn not_a_float() -> Stop {
    refuse("value is not a valid float")
}

/// Parses a bound of a range of scores, and whether it is exclusive: `5`, `(5`, `-inf`.
pub(crate) fn score_bound(arg: &[u8]) -> Result<(f64, bool), Stop> {
    let (text, open) = match arg {
        [b'(', rest @ ..] => (rest, true),
        text => (text, false),
    };
    let value = parse_bound(text).ok_or_else(|| refuse("min or max is not a float"))?;
    Ok((value, open))
}

pub(crate) fn cursor(arg: &[u8]) -> Result<u64, Stop> {
    parse_cursor(arg).ok_or_else(|| refuse("invalid cursor"))
}

/// Parses a timeout in seconds, as milliseconds; 0 means no limit.
pub(crate) fn timeout_ms(arg: &[u8], now_ms: u64) -> Result<u64, Stop> {
    let seconds =
        Extended::parse(arg).ok_or_else(|| refuse("timeout is not a float or out of range"))?;
    // Redis treats values beyond the integers as negative.
    let ms = seconds.thousandfold().and_then(|ms| u64::try_from(ms).ok());
    let ms = ms.ok_or_else(|| refuse("timeout is negative"))?;
    // For Redis, a deadline beyond the integers is in the past: the wait ends at once.
    let reachable = i64::try_from(now_ms.saturating_add(ms)).is_ok();
    Ok(if ms == 0 || reachable { ms } else { 1 })
}

/// Returns the range of indexes `start` to `stop`, both counted from the end if negative; `None` if it is empty.
pub(crate) fn places(start: i64, stop: i64, len: usize) -> Option<std::ops::Range<usize>> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |place: i64| if place < 0 { len + place } else { place };
    let start = from_end(start).max(0);
    let stop = from_end(stop).min(len - 1);
    if start > stop || start >= len {
        return None;
    }
    Some(usize::try_from(start).ok()?..usize::try_from(stop + 1).ok()?)
}

/// Returns the position of an index that counts from the end if negative.
pub(crate) fn place(index: i64, len: usize) -> Option<usize> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let place = if index < 0 {
        len.checked_add(index)?
    } else {
        index
    };
    usize::try_from(place).ok().filter(|_| place < len)
}
