//! Groups of failures: jobs of one type that failed for one reason with the same error, apart from numbers, ids and
//! quoted texts.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::Job;

/// Longest part of an error that is compared, in bytes: the rest seldom tells two faults apart.
const COMPARED: usize = 1000;
/// Longest error of a group, in characters.
const SHOWN: usize = 200;
/// Length from which a word of letters and digits is an id.
const ID: usize = 16;
/// Length from which a word of hexadecimal digits is an id.
const HEX_ID: usize = 6;
/// Replaces a number or an id.
const NUMBER: &str = "#";
/// Replaces a quoted text.
const QUOTED: char = '…';

/// A group of failures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailureGroup {
    /// Type of the jobs; empty if a record has none.
    pub script_type: String,
    /// Reason for which they are dead letters.
    pub reason: String,
    /// First line of the error: `#` for numbers and ids, `…` for quoted texts.
    pub error: String,
}

impl FailureGroup {
    /// Returns the group of a failure.
    #[must_use]
    pub fn new(script_type: Option<&str>, reason: Option<&str>, error: Option<&str>) -> Self {
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        Self {
            script_type: text(script_type),
            reason: text(reason),
            error: general(error.unwrap_or_default()),
        }
    }

    /// Returns the group of a dead letter.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        Self::new(
            job.script_type.as_deref(),
            job.dead.as_deref(),
            job.error.as_deref(),
        )
    }

    /// Short name of the group: 16 hexadecimal digits.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut digest = Sha256::new();
        for text in [&self.script_type, &self.reason, &self.error] {
            // The length keeps neighbours apart.
            digest.update(text.len().to_be_bytes());
            digest.update(text);
        }
        HEXLOWER.encode(&digest.finalize()[..8])
    }
}

/// First line of an error without what differs from job to job.
fn general(error: &str) -> String {
    let error = &error[..error.floor_char_boundary(COMPARED)];
    let line = error.lines().map(str::trim).find(|line| !line.is_empty());
    let mut rest = line.unwrap_or_default();
    let (mut out, mut before) = (String::new(), ' ');
    while let Some(c) = rest.chars().next() {
        if let Some(end) = quoted(rest, before) {
            out.extend([c, QUOTED, c]);
            rest = &rest[end..];
            before = c;
            continue;
        }
        let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        let end = end.max(c.len_utf8());
        let (word, after) = rest.split_at(end);
        push_word(&mut out, word);
        before = word.chars().next_back().unwrap_or(' ');
        rest = after;
    }
    out.chars().take(SHOWN).collect()
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Returns the end of a quoted text that begins here. An apostrophe in a word is no quote.
fn quoted(text: &str, before: char) -> Option<usize> {
    let quote = text
        .chars()
        .next()
        .filter(|c| matches!(c, '"' | '\'' | '`'))?;
    if before.is_alphanumeric() {
        return None;
    }
    let inner = &text[1..];
    let ends = |at: usize| !inner[at + 1..].starts_with(char::is_alphanumeric);
    let mut ends = inner.match_indices(quote).filter(|(at, _)| ends(*at));
    ends.next().map(|(at, _)| at + 2)
}

fn push_word(out: &mut String, word: &str) {
    let has_digit = word.contains(char::is_numeric);
    let is_hex = |word: &str| word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let is_prefixed = word.strip_prefix("0x").is_some_and(is_hex);
    let length = word.chars().count();
    if has_digit && (length >= ID || is_prefixed || length >= HEX_ID && is_hex(word)) {
        return out.push_str(NUMBER);
    }
    let mut was_digit = false;
    for c in word.chars() {
        let is_digit = c.is_numeric();
        match (is_digit, was_digit) {
            (false, _) => out.push(c),
            (true, false) => out.push_str(NUMBER),
            (true, true) => {}
        }
        was_digit = is_digit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_job_to_job_is_left_out() {
        let table = [
            ("", ""),
            ("boom", "boom"),
            ("\n  first line \nsecond 2", "first line"),
            ("took 31 ms of 30", "took # ms of #"),
            ("line 12:7: no", "line #:#: no"),
            (
                "job 0190d1e5-7c1e-7bb3-b1b6-8f1f0f4c2a11 lost",
                "job # lost",
            ),
            ("at 0x7ffe12, commit 3f9ab2c", "at #, commit #"),
            ("order ord_01HZX5K8YJ2M7Q", "order #"),
            ("worker-17 of utf8", "worker-# of utf#"),
            ("facade and decade", "facade and decade"),
            (
                "no key \"alice\" in 'b' or `c d`",
                "no key \"…\" in '…' or `…`",
            ),
            ("can't open, won't \"say", "can't open, won't \"say"),
            ("key 'it's' is taken", "key '…' is taken"),
            ("größe 5 ☃ ٣", "größe # ☃ #"),
        ];
        for (error, general) in table {
            let group = FailureGroup::new(Some("osis"), Some("failed"), Some(error));
            assert_eq!(group.error, general, "{error:?}");
        }
        let long = "é1 ".repeat(5000);
        let group = FailureGroup::new(None, None, Some(&long));
        assert_eq!(group.error.chars().count(), SHOWN);
    }

    #[test]
    fn groups_differ_by_each_part() {
        let of = |script_type, reason, error| {
            FailureGroup::new(Some(script_type), Some(reason), Some(error)).fingerprint()
        };
        let first = of("osis", "failed", "no 1");
        assert_eq!(first, of("osis", "failed", "no 22\nmore"));
        assert_eq!(first.len(), 16);
        for other in [
            of("sal", "failed", "no 1"),
            of("osis", "timeout", "no 1"),
            of("osis", "failed", "yes 1"),
            of("osisf", "ailed", "no 1"),
        ] {
            assert_ne!(first, other);
        }
        let none = FailureGroup::new(None, None, None);
        assert_ne!(none.fingerprint(), first);
    }
}
