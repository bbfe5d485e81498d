//! Common parts of SCAN, HSCAN, SSCAN and ZSCAN.

use bytes::Bytes;

use super::{
    Stop,
    args::{int, is_word, syntax_error},
    glob_match,
};
use crate::{
    Reply,
    store::{ScanStep, scan_step},
};

/// The options of a scan.
pub(super) struct Options<'a> {
    /// Number of slots to scan.
    pub(super) count: usize,
    pattern: Option<&'a Bytes>,
    /// Name of the type of value, for SCAN only.
    pub(super) kind: Option<&'a Bytes>,
}

impl<'a> Options<'a> {
    pub(super) fn parse(args: &'a [Bytes], of_keys: bool) -> Result<Self, Stop> {
        /// Default of COUNT in Redis.
        const DEFAULT_COUNT: usize = 10;
        let mut options = Self {
            count: DEFAULT_COUNT,
            pattern: None,
            kind: None,
        };
        let mut rest = args;
        while let [option, value, tail @ ..] = rest {
            rest = tail;
            if is_word(option, "COUNT") {
                let count = int(value)?;
                let count = usize::try_from(count).ok().filter(|count| *count > 0);
                options.count = count.ok_or_else(syntax_error)?;
            } else if is_word(option, "MATCH") {
                options.pattern = Some(value).filter(|pattern| pattern[..] != *b"*");
            } else if is_word(option, "TYPE") && of_keys {
                options.kind = Some(value);
            } else {
                return Err(syntax_error());
            }
        }
        if rest.is_empty() {
            Ok(options)
        } else {
            Err(syntax_error())
        }
    }

    /// Returns the slots to scan; all of them in a `compact` collection, as in Redis.
    pub(super) fn step(&self, cursor: u64, len: usize, compact: bool) -> ScanStep {
        if compact {
            ScanStep::all(len)
        } else {
            scan_step(cursor, len, self.count)
        }
    }

    /// Returns whether the pattern, if there is one, matches.
    pub(super) fn takes(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob_match(pattern, name))
    }
}

pub(super) fn scan_reply(cursor: u64, items: Vec<Reply>) -> Reply {
    Reply::Array(vec![
        Reply::Bulk(cursor.to_string().into()),
        Reply::Array(items),
    ])
}
