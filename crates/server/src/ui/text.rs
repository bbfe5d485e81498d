//! Texts of others on a page: control characters and marks that turn the direction of a line are shown, long texts are cut.

use std::borrow::Cow;

use maud::{Markup, html};
use meshwork_model::time;

/// Longest text in a cell, in characters.
const CELL: usize = 80;
/// Longest text that a page shows in full, in bytes. The rest is left out, with a note.
pub(super) const LONG: usize = 16 * 1024;

/// Returns true for a character that is not seen, or that changes the order of others.
fn is_hidden(c: char) -> bool {
    let marks =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    c.is_control()
        || marks
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        )
}

/// Replaces hidden characters: by the picture of a control character, else by the number of the character.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, |_| false)
}

/// As [`visible`], with the line breaks and tabs of a text of several lines.
pub(super) fn visible_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| c == '\n' || c == '\t')
}

fn replaced(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let hidden = |c: char| is_hidden(c) && !keep(c);
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !hidden(c) => out.push(c),
            '\0'..'\u{20}' => out.extend(char::from_u32(0x2400 + u32::from(c))),
            '\u{7f}' => out.push('\u{2421}'),
            c => out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c))),
        }
    }
    Cow::Owned(out)
}

/// Returns at most so many characters, the last of which says that some are missing.
pub(super) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some(_) => {
            let end = text.char_indices().nth(most.saturating_sub(1));
            let end = end.map_or(0, |(at, _)| at);
            Cow::Owned(format!("{}…", &text[..end]))
        }
    }
}

/// A text in a cell, apart from the direction of the texts beside it.
pub(super) fn cell(text: &str) -> Markup {
    cell_of(text, CELL)
}

/// As [`cell`], with at most so many characters.
pub(super) fn cell_of(text: &str, most: usize) -> Markup {
    let shown = visible(text);
    let short = cut(&shown, most);
    html! {
        @if short == shown { bdi { (short) } } @else { bdi title=(cut(&shown, 1000)) { (short) } }
    }
}

/// A text of several lines, at most [`LONG`] bytes of it.
pub(super) fn block(text: &str) -> Markup {
    let end = text.floor_char_boundary(LONG);
    let rest = text.len() - end;
    html! {
        pre.text tabindex="0" { bdi { (visible_lines(&text[..end])) } }
        @if rest > 0 {
            p.note { (number(rest as u64)) " more bytes are not shown; the API and " code { "meshwork job show" } " have all of them." }
        }
    }
}

/// A number with a separator after each three digits.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A duration in its greatest unit.
pub(super) fn rough(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A time as a record has it, as the distance to now. A text that is no time is shown as it is.
pub(super) fn when(text: &str, now_ms: u64) -> Markup {
    let Some(at) = time::parse_iso(text) else {
        return cell(text);
    };
    moment(at, now_ms)
}

/// A time in milliseconds since 1970, as the distance to now.
pub(super) fn moment(at: u64, now_ms: u64) -> Markup {
    let said = match now_ms.checked_sub(at) {
        Some(0..1000) => "now".to_owned(),
        Some(past) => format!("{} ago", rough(past)),
        None => format!("in {}", rough(at - now_ms)),
    };
    let iso = time::iso(at);
    html! { time datetime=(iso) title=(iso) { (said) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_seen() {
        assert_eq!(visible("a\0b\n\u{7f}"), "a␀b␊␡");
        assert_eq!(visible("\u{202e}evil\u{85}"), "⟨U+202E⟩evil⟨U+0085⟩");
        assert_eq!(visible_lines("a\tb\nc\r"), "a\tb\nc␍");
        assert!(matches!(visible("plain שלום é"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("äöüß", 3), "äö…");
        let long = "é".repeat(LONG);
        let shown = block(&long).into_string();
        assert!(
            shown.contains("16,384 more bytes") && shown.len() < LONG + 500,
            "{}",
            shown.len()
        );
    }

    #[test]
    fn numbers_have_groups_of_digits() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(number),
            ["0", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn a_text_that_is_no_time_is_shown() {
        let shown = when("<script>", 5).into_string();
        assert_eq!(shown, "<bdi>&lt;script&gt;</bdi>");
        let past = when("1970-01-01T00:00:01Z", 120_000).into_string();
        assert!(past.contains("1 min ago"), "{past}");
    }
}
