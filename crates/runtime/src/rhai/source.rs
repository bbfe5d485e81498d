//! Text of a script as the parser gets it.

/// Mark that some editors write before a text in UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the script without a byte order mark and without the content of a `#!` line. Its lines keep their numbers.
pub(super) fn readable(source: &str) -> &str {
    let text = source.strip_prefix(BYTE_ORDER_MARK).unwrap_or(source);
    match text.strip_prefix("#!") {
        Some(rest) => &rest[rest.find('\n').unwrap_or(rest.len())..],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn a_first_line_for_the_system_is_no_part_of_the_script() {
        for (source, text) in [
            ("#!/usr/bin/env herodo\n1 + 1", "\n1 + 1"),
            ("\u{feff}#!/usr/bin/env herodo\r\n1", "\n1"),
            ("\u{feff}1", "1"),
            ("#!herodo", ""),
            ("#{a: 1}", "#{a: 1}"),
            ("1\n#!x", "1\n#!x"),
            ("", ""),
        ] {
            assert_eq!(readable(source), text, "{source:?}");
        }
    }
}
