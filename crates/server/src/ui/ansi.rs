//! Colours of log lines: the sequences of terminals that set a colour become classes, others are left out.

use maud::{Markup, html};

use super::text::visible;

/// Greatest number of parts of a line with colours of their own; the rest keeps the last one.
const MOST_PARTS: usize = 200;

/// A part of a line with its colour, 0 to 7, if it has one.
#[derive(Debug, PartialEq, Eq)]
struct Part<'a> {
    text: &'a str,
    colour: Option<u8>,
    bold: bool,
}

/// A line of a log.
pub(super) fn line(text: &str) -> Markup {
    html! {
        @for Part { text, colour, bold } in parts(text) {
            @match (colour, bold) {
                (None, false) => (visible(text)),
                (Some(colour), false) => span class={"c" (colour)} { (visible(text)) },
                (None, true) => b { (visible(text)) },
                (Some(colour), true) => b class={"c" (colour)} { (visible(text)) },
            }
        }
    }
}

fn parts(mut text: &str) -> Vec<Part<'_>> {
    let (mut colour, mut bold) = (None, false);
    let mut parts = Vec::new();
    while let Some(at) = text.find("\u{1b}[") {
        if parts.len() >= MOST_PARTS {
            break;
        }
        let (before, rest) = (&text[..at], &text[at + 2..]);
        let end = rest.find(|c: char| ('@'..='~').contains(&c));
        let Some(end) = end.filter(|end| rest[..*end].bytes().all(|it| (0x20..0x40).contains(&it)))
        else {
            break;
        };
        if !before.is_empty() {
            parts.push(Part {
                text: before,
                colour,
                bold,
            });
        }
        if rest.as_bytes()[end] == b'm' {
            (colour, bold) = applied(&rest[..end], (colour, bold));
        }
        text = &rest[end + 1..];
    }
    if !text.is_empty() {
        parts.push(Part { text, colour, bold });
    }
    parts
}

/// Applies the numbers of a sequence. Backgrounds and colours beyond the usual ones are left out.
fn applied(numbers: &str, (mut colour, mut bold): (Option<u8>, bool)) -> (Option<u8>, bool) {
    for number in numbers.split(';') {
        match number.parse::<u8>().unwrap_or(0) {
            0 => (colour, bold) = (None, false),
            1 => bold = true,
            22 => bold = false,
            39 => colour = None,
            number @ (30..=37 | 90..=97) => colour = Some(number % 10),
            // The colour of the numbers behind it.
            38 | 48 => break,
            _ => {}
        }
    }
    (colour, bold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_classes() {
        let shown = |text: &str| line(text).into_string();
        assert_eq!(
            shown("a\u{1b}[31mred\u{1b}[0m b"),
            "a<span class=\"c1\">red</span> b"
        );
        assert_eq!(
            shown("\u{1b}[1;92mok\u{1b}[22m!"),
            "<b class=\"c2\">ok</b><span class=\"c2\">!</span>"
        );
        assert_eq!(shown("\u{1b}[2K\u{1b}[1Gdone"), "done");
        assert_eq!(shown("\u{1b}[38;5;31mx\u{1b}[m"), "x");
        // What is no sequence is seen.
        assert_eq!(shown("\u{1b}]0;title\u{7}<b>"), "␛]0;title␇&lt;b&gt;");
        assert_eq!(shown("\u{1b}[31"), "␛[31");
        assert_eq!(shown("\u{1b}[é m"), "␛[é m");
    }

    #[test]
    fn many_sequences_make_few_parts() {
        let text = "\u{1b}[31mx\u{1b}[0my".repeat(10_000);
        assert!(parts(&text).len() <= MOST_PARTS + 1);
    }
}
