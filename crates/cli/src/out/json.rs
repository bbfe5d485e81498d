//! JSON on stdout. A result of a script is unchanged if it is JSON, else a string. Control characters that JSON permits
//! in strings are escaped, since the output may be shown on a terminal.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::text::commands_a_terminal;

/// Writes a value on one line.
pub(super) fn write(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let written = value.serialize(&mut Serializer::with_formatter(out, Escaped));
    Ok(written?)
}

/// Compact JSON without control characters.
struct Escaped;

impl Formatter for Escaped {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        escape(writer, fragment)
    }

    /// Outside of strings, JSON has only ASCII.
    fn write_raw_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        escape(writer, fragment)
    }
}

fn escape<W: ?Sized + Write>(writer: &mut W, fragment: &str) -> io::Result<()> {
    let mut rest = fragment;
    while let Some(at) = rest.find(commands_a_terminal) {
        let (before, from) = rest.split_at(at);
        let c = from.chars().next().unwrap_or_default();
        write!(writer, "{before}\\u{:04x}", u32::from(c))?;
        rest = &from[c.len_utf8()..];
    }
    writer.write_all(rest.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn no_json_commands_a_terminal() {
        let odd = "a\u{7f}\u{9b}\u{202e}\u{2067}\u{61c}b ä\u{1b}";
        let raw = RawValue::from_string(format!("{{\"\u{9b}\":\"{}\"}}", "\u{202e}")).unwrap();
        let mut out = Vec::new();
        write(&mut out, &(odd, &raw)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains(commands_a_terminal), "{text:?}");
        let (same, value): (String, serde_json::Value) = serde_json::from_str(&text).unwrap();
        assert_eq!(same, odd);
        assert_eq!(value["\u{9b}"], "\u{202e}");
    }
}
