//! Sanitizer of untrusted text for a terminal.

use std::borrow::Cow;

/// Returns the text without control characters, since scripts may print anything.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let commands = |c: char| commands_a_terminal(c) && c != '\n' && c != '\t';
    if text.contains(commands) {
        text.replace(commands, "\u{fffd}").into()
    } else {
        text.into()
    }
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
fn commands_a_terminal(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_commands_the_terminal() {
        assert_eq!(printable("a\n\tb ä"), "a\n\tb ä");
        assert_eq!(printable("\x1b[2Ja\u{202e}"), "\u{fffd}[2Ja\u{fffd}");
    }

    #[test]
    fn one_line_is_one_line_of_that_width() {
        assert_eq!(one_line("a\nb\n", 10), "a b");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line("日本語", 5), "日本…");
    }
}
