//! The parser of requests: arrays of bulk strings, and inline commands as people type them.
//!
//! It accepts bytes as they arrive and keeps partial requests. Limits and error messages are those of Redis.

use bytes::{Buf as _, Bytes, BytesMut};

use super::number::parse_integer;

/// Greatest number of arguments of a command.
const MAX_ARGS: i64 = 1024 * 1024;
/// Greatest length of an argument, in bytes.
const MAX_BULK: i64 = 512 * 1024 * 1024;
/// Greatest length of an inline command, and of a line with a length, in bytes.
const MAX_INLINE: usize = 64 * 1024;
/// Greatest length of a command with all its arguments (`client-query-buffer-limit`), in bytes.
const MAX_REQUEST: usize = 1024 * 1024 * 1024;
/// Greatest initial capacity for arguments: announced numbers are not trusted.
const MAX_RESERVE: usize = 64;

/// A request that breaks the protocol. The connection sends this error and closes.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum ProtocolError {
    #[error("ERR Protocol error: too big mbulk count string")]
    LongCount,
    #[error("ERR Protocol error: too big bulk count string")]
    LongLength,
    #[error("ERR Protocol error: too big inline request")]
    LongInline,
    #[error("ERR Protocol error: too big request")]
    LongRequest,
    #[error("ERR Protocol error: invalid multibulk length")]
    Count,
    #[error("ERR Protocol error: invalid bulk length")]
    Length,
    #[error("ERR Protocol error: expected '$', got '{0}'")]
    NotBulk(char),
    #[error("ERR Protocol error: unbalanced quotes in request")]
    Quotes,
}

/// The state of an incomplete command.
#[derive(Debug, Default)]
pub(crate) struct RequestParser {
    args: Vec<Bytes>,
    /// Number of missing arguments; 0 between commands.
    missing: i64,
    /// Announced length of the current argument.
    bulk: Option<usize>,
    /// Length of the arguments so far, in bytes.
    taken: usize,
}

impl RequestParser {
    /// Removes the next whole command from the front of `input`; `None` if more bytes are needed.
    pub(crate) fn next(
        &mut self,
        input: &mut BytesMut,
    ) -> Result<Option<Vec<Bytes>>, ProtocolError> {
        loop {
            if self.missing == 0 {
                match input.first() {
                    None => return Ok(None),
                    Some(b'*') => match self.start(input)? {
                        Some(()) => continue,
                        None => return Ok(None),
                    },
                    Some(_) => match inline(input)? {
                        None => return Ok(None),
                        // An empty line is not a command.
                        Some(args) if args.is_empty() => continue,
                        Some(args) => return Ok(Some(args)),
                    },
                }
            }
            if self.argument(input)?.is_none() {
                return Ok(None);
            }
            if self.missing == 0 {
                self.taken = 0;
                return Ok(Some(std::mem::take(&mut self.args)));
            }
        }
    }

    fn start(&mut self, input: &mut BytesMut) -> Result<Option<()>, ProtocolError> {
        let Some(count) = length_line(input, ProtocolError::LongCount, ProtocolError::Count)?
        else {
            return Ok(None);
        };
        if count > MAX_ARGS {
            return Err(ProtocolError::Count);
        }
        // A count of 0 or below is not a command, as in Redis.
        self.missing = count.max(0);
        let room = usize::try_from(self.missing).unwrap_or(MAX_RESERVE);
        self.args.reserve(room.min(MAX_RESERVE));
        Ok(Some(()))
    }

    fn argument(&mut self, input: &mut BytesMut) -> Result<Option<()>, ProtocolError> {
        let len = match self.bulk {
            Some(len) => len,
            None => {
                match input.first() {
                    None => return Ok(None),
                    Some(b'$') => {}
                    Some(other) => return Err(ProtocolError::NotBulk(char::from(*other))),
                }
                let (long, wrong) = (ProtocolError::LongLength, ProtocolError::Length);
                let Some(len) = length_line(input, long, wrong)? else {
                    return Ok(None);
                };
                if len > MAX_BULK {
                    return Err(ProtocolError::Length);
                }
                let len = usize::try_from(len).map_err(|_| ProtocolError::Length)?;
                self.taken += len;
                if self.taken > MAX_REQUEST {
                    return Err(ProtocolError::LongRequest);
                }
                *self.bulk.insert(len)
            }
        };
        if input.len() < len + 2 {
            return Ok(None);
        }
        // A copy, because a stored slice of the read buffer would keep the whole buffer alive.
        self.args.push(Bytes::copy_from_slice(&input[..len]));
        input.advance(len + 2);
        self.bulk = None;
        self.missing -= 1;
        Ok(Some(()))
    }
}

/// Removes a line with a length or a count.
fn length_line(
    input: &mut BytesMut,
    too_long: ProtocolError,
    invalid: ProtocolError,
) -> Result<Option<i64>, ProtocolError> {
    let Some(end) = input
        .iter()
        .take(MAX_INLINE + 1)
        .position(|byte| *byte == b'\r')
    else {
        return if input.len() > MAX_INLINE {
            Err(too_long)
        } else {
            Ok(None)
        };
    };
    if input.len() < end + 2 {
        return Ok(None);
    }
    let number = parse_integer(&input[1..end]).ok_or(invalid)?;
    input.advance(end + 2);
    Ok(Some(number))
}

fn inline(input: &mut BytesMut) -> Result<Option<Vec<Bytes>>, ProtocolError> {
    let Some(end) = input
        .iter()
        .take(MAX_INLINE + 1)
        .position(|byte| *byte == b'\n')
    else {
        return if input.len() > MAX_INLINE {
            Err(ProtocolError::LongInline)
        } else {
            Ok(None)
        };
    };
    let line = input.split_to(end + 1);
    let line = &line[..end];
    split_words(line.strip_suffix(b"\r").unwrap_or(line))
        .map(Some)
        .ok_or(ProtocolError::Quotes)
}

/// Splits a typed line into words, with `"…"` (and its escapes) and `'…'`; `None` if a quote is not closed, or closed
/// in the middle of a word.
pub(crate) fn split_words(line: &[u8]) -> Option<Vec<Bytes>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(words);
        }
        let mut word = Vec::new();
        while let [first, tail @ ..] = rest {
            rest = match first {
                byte if byte.is_ascii_whitespace() => break,
                b'"' => double_quoted(tail, &mut word)?,
                b'\'' => single_quoted(tail, &mut word)?,
                byte => {
                    word.push(*byte);
                    tail
                }
            };
            let quoted = matches!(first, b'"' | b'\'');
            if quoted && rest.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                return None;
            }
        }
        words.push(word.into());
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'"', tail @ ..] => return Some(tail),
            [b'\\', b'x', high, low, tail @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex(*high) * 16 + hex(*low));
                rest = tail;
            }
            [b'\\', escaped, tail @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                rest = tail;
            }
            [byte, tail @ ..] => {
                word.push(*byte);
                rest = tail;
            }
            [] => return None,
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'\'', tail @ ..] => return Some(tail),
            [b'\\', b'\'', tail @ ..] => {
                word.push(b'\'');
                rest = tail;
            }
            [byte, tail @ ..] => {
                word.push(*byte);
                rest = tail;
            }
            [] => return None,
        }
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

#[cfg(test)]
mod tests;
