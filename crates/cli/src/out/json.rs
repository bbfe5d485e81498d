//! JSON on stdout. A result of a script is unchanged if it is JSON, else a string. Control characters that JSON permits
//! in strings are escaped, since the output may be shown on a terminal.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::value::RawValue;

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

/// Returns the bytes as a JSON value on one line. Numbers and the order of keys do not change.
pub(crate) fn value_of(bytes: &[u8]) -> Box<RawValue> {
    let json = serde_json::from_slice::<&RawValue>(bytes).ok();
    json.and_then(|json| RawValue::from_string(compact(json.get())).ok())
        .unwrap_or_else(|| string_of(&String::from_utf8_lossy(bytes)))
}

fn string_of(text: &str) -> Box<RawValue> {
    serde_json::value::to_raw_value(text).expect("a string can be written as JSON")
}

/// Returns valid JSON without whitespace between its tokens.
fn compact(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let keep = |c: &char| {
        if in_string {
            in_string = escaped || *c != '"';
            escaped = *c == '\\' && !escaped;
            return true;
        }
        in_string = *c == '"';
        !c.is_ascii_whitespace()
    };
    json.chars().filter(keep).collect()
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn json_stays_and_text_becomes_a_string() {
        for (bytes, value) in [
            (
                &b"{ \"b\": [1, 2 ],\n \"a\": \" \\\" x \\\\\" }"[..],
                r#"{"b":[1,2],"a":" \" x \\"}"#,
            ),
            (
                b"123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            (b" null\n", "null"),
            (b"hello\n", r#""hello\n""#),
            (b"", r#""""#),
            (b"{\"a\":1} x", r#""{\"a\":1} x""#),
            (b"\xff", "\"\u{fffd}\""),
        ] {
            assert_eq!(value_of(bytes).get(), value);
        }
    }
}
