//! Results of scripts as JSON values.

use serde_json::value::RawValue;

/// Returns the bytes as a JSON value on one line, or as a string if they are none. Numbers and the order of keys do not
/// change.
#[must_use]
pub fn value_of(bytes: &[u8]) -> Box<RawValue> {
    let json = serde_json::from_slice::<&RawValue>(bytes).ok();
    json.and_then(|json| RawValue::from_string(compact(json.get())).ok())
        .unwrap_or_else(|| string_of(&String::from_utf8_lossy(bytes)))
}

fn string_of(text: &str) -> Box<RawValue> {
    // A string can always be written as JSON.
    serde_json::value::to_raw_value(text).unwrap_or_default()
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
