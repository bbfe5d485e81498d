//! Reads an append-only file as a stream of transactions, one at a time.
//!
//! It distinguishes three ends: a clean one, a torn one, and bytes that neither this engine nor Redis writes.

use std::io::{self, BufRead, Read as _};

use bytes::Bytes;

use crate::{
    resp::parse_integer,
    store::{DATABASES, Effect},
};

/// Greatest length of a line with a count or a length, with its line break.
const MAX_HEADER: usize = 32;
/// Greatest length of an annotation (a line that begins with `#`).
const MAX_ANNOTATION: u64 = 1024;
/// Greatest number of arguments of a command, as in Redis.
const MAX_ARGS: i64 = 1024 * 1024;
/// Greatest length of an argument in bytes, as in Redis.
const MAX_BULK: i64 = 512 * 1024 * 1024;
/// Greatest initial capacity: lengths in the file are not trusted.
const MAX_RESERVE: usize = 64 * 1024;

/// The annotation that ends the snapshot at the start of a rewritten log. Redis skips such lines.
pub(super) const REWRITTEN: &[u8] = b"#REWRITTEN\r\n";

/// The next item of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A command, or all commands between MULTI and EXEC, that begin at `start`.
    Transaction { effects: Vec<Effect>, start: u64 },
    /// End of the snapshot of a rewrite.
    Rewritten,
}

/// The reason why there is no next item.
#[derive(Debug)]
pub(super) enum ReadError {
    Io(io::Error),
    /// The file ends within a command or transaction.
    Torn,
    /// The command at `start` is wrong at the byte `at`.
    Garbage {
        start: u64,
        at: u64,
        what: String,
    },
    /// The command at `start` selects a database that does not exist.
    Database {
        start: u64,
        index: String,
    },
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub(super) struct LogReader<R> {
    input: R,
    db: usize,
    /// Bytes read so far.
    at: u64,
    /// Position of the current command.
    start: u64,
    /// Position after the last whole item or SELECT.
    whole: u64,
}

impl<R: BufRead> LogReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            db: 0,
            at: 0,
            start: 0,
            whole: 0,
        }
    }

    /// Returns the position after the last whole transaction, to which a torn log is cut back.
    pub(super) fn whole(&self) -> u64 {
        self.whole
    }

    /// Returns the next item, or `None` at a clean end. After an error there is no next item.
    pub(super) fn next(&mut self) -> Result<Option<Item>, ReadError> {
        loop {
            self.start = self.at;
            let start = self.start;
            match self.line_kind()? {
                None => return Ok(None),
                Some(b'#') => {
                    let rewritten = self.annotation()?;
                    self.whole = self.at;
                    if rewritten {
                        return Ok(Some(Item::Rewritten));
                    }
                }
                Some(_) => {
                    let args = self.command()?;
                    let effects = if is(&args, b"SELECT") {
                        self.select(&args)?;
                        self.whole = self.at;
                        continue;
                    } else if is(&args, b"MULTI") {
                        self.group()?
                    } else if is(&args, b"EXEC") {
                        return Err(self.garbage(start, "EXEC without MULTI"));
                    } else {
                        vec![Effect { db: self.db, args }]
                    };
                    self.whole = self.at;
                    return Ok(Some(Item::Transaction { effects, start }));
                }
            }
        }
    }

    /// Reads the commands up to EXEC.
    fn group(&mut self) -> Result<Vec<Effect>, ReadError> {
        let mut effects = Vec::new();
        loop {
            self.start = self.at;
            if self.line_kind()?.ok_or(ReadError::Torn)? == b'#' {
                self.annotation()?;
                continue;
            }
            let args = self.command()?;
            if is(&args, b"EXEC") {
                return Ok(effects);
            } else if is(&args, b"MULTI") {
                return Err(self.garbage(self.start, "MULTI within MULTI"));
            } else if is(&args, b"SELECT") {
                self.select(&args)?;
            } else {
                effects.push(Effect { db: self.db, args });
            }
        }
    }

    fn select(&mut self, args: &[Bytes]) -> Result<(), ReadError> {
        let [_, index] = args else {
            return Err(self.garbage(self.start, "SELECT without one database"));
        };
        let known = parse_integer(index).and_then(|index| usize::try_from(index).ok());
        match known.filter(|index| *index < DATABASES) {
            Some(index) => self.db = index,
            None => {
                let index = String::from_utf8_lossy(index).into_owned();
                return Err(ReadError::Database {
                    start: self.start,
                    index,
                });
            }
        }
        Ok(())
    }

    fn line_kind(&mut self) -> io::Result<Option<u8>> {
        Ok(self.input.fill_buf()?.first().copied())
    }

    fn annotation(&mut self) -> Result<bool, ReadError> {
        let mut line = Vec::new();
        (&mut self.input)
            .take(MAX_ANNOTATION)
            .read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            let end = self.input.fill_buf()?.is_empty();
            let endless = || self.garbage(self.at, "an annotation without an end");
            return Err(if end { ReadError::Torn } else { endless() });
        }
        self.at += line.len() as u64;
        Ok(line == REWRITTEN)
    }

    fn command(&mut self) -> Result<Vec<Bytes>, ReadError> {
        let count = self.header(b'*', 1..=MAX_ARGS)?;
        let mut args = Vec::with_capacity(count.min(MAX_RESERVE));
        for _ in 0..count {
            let len = self.header(b'$', 0..=MAX_BULK)?;
            args.push(self.bulk(len)?);
        }
        Ok(args)
    }

    /// Reads a line with a number. Bytes that cannot become one are garbage also at the end of the file.
    fn header(
        &mut self,
        kind: u8,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<usize, ReadError> {
        let mut line = [0; MAX_HEADER];
        let len = self.short_line(&mut line)?;
        let line = &line[..len];
        let Some((first, rest)) = line.split_first() else {
            return Err(ReadError::Torn);
        };
        if *first != kind {
            let what = format!(
                "expected '{}', found {:?}",
                char::from(kind),
                char::from(*first)
            );
            return Err(self.garbage(self.at, what));
        }
        let digits = rest
            .iter()
            .position(|byte| !byte.is_ascii_digit())
            .unwrap_or(rest.len());
        let (digits, end) = rest.split_at(digits);
        let torn = line.len() < MAX_HEADER && matches!(end, b"" | b"\r");
        if torn {
            return Err(ReadError::Torn);
        }
        let at = self.at + 1 + digits.len() as u64;
        if end != b"\r\n" {
            return Err(self.garbage(at, "a number without a line break"));
        }
        let number = parse_integer(digits).filter(|number| range.contains(number));
        let Some(number) = number.and_then(|number| usize::try_from(number).ok()) else {
            return Err(self.garbage(self.at, "a count or length out of range"));
        };
        self.at += line.len() as u64;
        Ok(number)
    }

    /// Reads up to a line break, the end of the file or the end of `line`, and returns the length.
    fn short_line(&mut self, line: &mut [u8]) -> io::Result<usize> {
        let mut len = 0;
        loop {
            let ready = self.input.fill_buf()?;
            let ready = &ready[..ready.len().min(line.len() - len)];
            let line_break = ready.iter().position(|byte| *byte == b'\n');
            let taken = line_break.map_or(ready.len(), |at| at + 1);
            line[len..len + taken].copy_from_slice(&ready[..taken]);
            self.input.consume(taken);
            len += taken;
            if taken == 0 || line_break.is_some() {
                return Ok(len);
            }
        }
    }

    fn bulk(&mut self, len: usize) -> Result<Bytes, ReadError> {
        // Nearly all arguments are whole in the buffer.
        if let Some((bytes, rest)) = self.input.fill_buf()?.split_at_checked(len)
            && rest.starts_with(b"\r\n")
        {
            let bytes = Bytes::copy_from_slice(bytes);
            self.input.consume(len + 2);
            self.at += len as u64 + 2;
            return Ok(bytes);
        }
        // The exact capacity avoids growing, so that a stored value uses no more memory than needed.
        let mut bytes = Vec::with_capacity(len.min(MAX_RESERVE));
        (&mut self.input).take(len as u64).read_to_end(&mut bytes)?;
        let mut end = [0; 2];
        let ended = self.short_line(&mut end)?;
        if bytes.len() < len || (ended < 2 && b"\r\n".starts_with(&end[..ended])) {
            return Err(ReadError::Torn);
        }
        if &end != b"\r\n" {
            return Err(self.garbage(self.at + len as u64, "an argument longer than announced"));
        }
        self.at += len as u64 + 2;
        bytes.shrink_to_fit();
        Ok(bytes.into())
    }

    fn garbage(&self, at: u64, what: impl Into<String>) -> ReadError {
        ReadError::Garbage {
            start: self.start,
            at,
            what: what.into(),
        }
    }
}

fn is(args: &[Bytes], name: &[u8]) -> bool {
    args.first()
        .is_some_and(|first| first.eq_ignore_ascii_case(name))
}
