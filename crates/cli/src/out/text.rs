//! Sanitizer of untrusted text for a terminal.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

/// True with `--raw`.
static RAW: AtomicBool = AtomicBool::new(false);

/// Lets a terminal get the bytes of scripts unchanged.
pub(crate) fn show_raw() {
    RAW.store(true, Ordering::Relaxed);
}

/// Returns the output of a script for a terminal: control characters are replaced, unless `--raw` is given. Carriage
/// returns stay, since progress needs them.
pub(super) fn for_terminal(bytes: &[u8]) -> Cow<'_, [u8]> {
    if RAW.load(Ordering::Relaxed) {
        return bytes.into();
    }
    let commands = |c: char| commands_a_terminal(c) && !matches!(c, '\n' | '\t' | '\r');
    let text = String::from_utf8_lossy(bytes);
    match text.contains(commands) {
        true => text.replace(commands, "\u{fffd}").into_bytes().into(),
        // Bytes that are no text may be commands in the character set of the terminal.
        false if matches!(text, Cow::Owned(_)) => text.into_owned().into_bytes().into(),
        false => bytes.into(),
    }
}

/// Returns the text without control characters, since scripts may print anything.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let commands = |c: char| commands_a_terminal(c) && c != '\n' && c != '\t';
    if text.contains(commands) {
        text.replace(commands, "\u{fffd}").into()
    } else {
        text.into()
    }
}

/// Returns the text without control characters, its further lines indented: no line of it looks like one of the command's.
pub(crate) fn indented(text: &str) -> String {
    printable(text).replace('\n', "\n             ")
}

/// Returns the text with its control characters in a visible form, as `\u{1b}`.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match commands_a_terminal(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// Returns the text as one line of at most `columns`.
pub(crate) fn one_line(text: &str, columns: usize) -> String {
    let spaced: String = text
        .trim()
        .chars()
        // Bounds the work for a long text; some characters have no width.
        .take(columns.saturating_mul(4))
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if commands_a_terminal(c) => '\u{fffd}',
            c => c,
        })
        .collect();
    console::truncate_str(&spaced, columns, "…").into_owned()
}

/// Returns true for control characters, and for those that change the direction of text.
pub(super) fn commands_a_terminal(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

/// Longest word of an error, in characters: that of a concurrency key, the longest valid name.
const MAX_WORD: usize = 256;
/// Printed part of a longer word, in characters.
const SHOWN_WORD: usize = 60;

/// Cuts the long words of an error, as a key or an id that is refused for its length.
pub(crate) fn with_cut_words(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for word in text.split_inclusive([' ', '\n', '"', '\'', '`']) {
        let many = word.chars().count();
        if many <= MAX_WORD {
            shown.push_str(word);
            continue;
        }
        shown.extend(word.chars().take(SHOWN_WORD));
        shown.push('…');
        // The space, the quote and other marks.
        shown.push_str(
            word.rsplit(char::is_alphanumeric)
                .next()
                .unwrap_or_default(),
        );
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_lines_are_indented() {
        let text = indented("boom\nstate        finished");
        assert_eq!(text, "boom\n             state        finished");
    }

    #[test]
    fn no_text_commands_the_terminal() {
        assert_eq!(printable("a\n\tb ä"), "a\n\tb ä");
        assert_eq!(printable("\x1b[2Ja\u{202e}"), "\u{fffd}[2Ja\u{fffd}");
    }

    #[test]
    fn output_of_scripts_commands_no_terminal() {
        for (bytes, shown) in [
            (&b"a\n\tb\r10 %"[..], "a\n\tb\r10 %"),
            (
                b"\x1b]0;title\x07\x9b2J",
                "\u{fffd}]0;title\u{fffd}\u{fffd}2J",
            ),
            ("\u{9b}2J\u{61c}".as_bytes(), "\u{fffd}2J\u{fffd}"),
        ] {
            assert_eq!(for_terminal(bytes), shown.as_bytes());
        }
    }

    #[test]
    fn one_line_is_one_line_of_that_width() {
        assert_eq!(one_line("a\nb\n", 10), "a b");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line("日本語", 5), "日本…");
    }
}
