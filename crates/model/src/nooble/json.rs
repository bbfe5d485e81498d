//! JSON as Nooble4's models read and write it: `NaN` is read, of a name that comes twice the last value
//! counts, whole numbers keep all their digits; it is written without blanks, in UTF-8.

use std::collections::HashMap;
use std::fmt::Write as _;

/// How deep values may be nested: what Nooble4's reader allows.
const MAX_DEPTH: usize = 200;

/// The most digits of a whole number: theirs reads no more.
const MAX_DIGITS: usize = 4300;

/// Of an object with up to so many fields, names are looked for one by one: a table would cost more.
const FEW_FIELDS: usize = 32;

/// Room for a value that is written: more, and the text grows.
const USUAL_LENGTH: usize = 256;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// A number as it is written again.
    Number(String),
    Text(String),
    List(Vec<Self>),
    /// Each name once, in the order in which they came first.
    Object(Vec<(String, Self)>),
}

impl Json {
    /// Reads a text that is one value and nothing else. None if it is not.
    pub(super) fn read(text: &str) -> Option<Self> {
        Self::read_as(text, false)
    }

    /// The same; with `first`, of a name that comes twice in the outermost object the first value counts.
    pub(super) fn read_as(text: &str, first: bool) -> Option<Self> {
        let mut reader = Reader { text, at: 0, first };
        let value = reader.value(0)?;
        reader.blanks();
        (reader.at == text.len()).then_some(value)
    }

    /// Writes it.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Number(number) => out.push_str(number),
            Self::Text(text) => write_text(text, out),
            Self::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(fields) => {
                out.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    write_text(name, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// As text.
    pub(super) fn text(&self) -> String {
        let mut out = String::with_capacity(USUAL_LENGTH);
        self.write(&mut out);
        out
    }
}

/// Writes a text between quotes.
pub(super) fn write_text(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = special(rest) {
        let (plain, from) = rest.split_at(at);
        out.push_str(plain);
        rest = &from[1..];
        match from.as_bytes()[0] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            other => {
                // Writing into memory does not fail.
                let _ = write!(out, "\\u{other:04x}");
            }
        }
    }
    out.push_str(rest);
    out.push('"');
}

/// Where the first character stands that is not written as it is; each is one byte.
fn special(text: &str) -> Option<usize> {
    let mut bytes = text.bytes();
    bytes.position(|byte| byte < b' ' || matches!(byte, b'"' | b'\\'))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// Of a name that comes twice in the outermost object the first value counts.
    first: bool,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn take(&mut self, word: &str) -> Option<()> {
        self.rest().starts_with(word).then(|| self.at += word.len())
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.blanks();
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.list(depth),
            b'"' => self.string().map(Json::Text),
            b't' => self.take("true").map(|()| Json::Bool(true)),
            b'f' => self.take("false").map(|()| Json::Bool(false)),
            b'n' => self.take("null").map(|()| Json::Null),
            // Numbers that JSON does not know are written as nothing.
            b'N' => self.take("NaN").map(|()| Json::Null),
            b'I' => self.take("Infinity").map(|()| Json::Null),
            b'-' if self.rest().starts_with("-I") => self.take("-Infinity").map(|()| Json::Null),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Json> {
        let (mut fields, mut places) = (Vec::new(), HashMap::new());
        self.take("{")?;
        self.blanks();
        if self.take("}").is_some() {
            return Some(Json::Object(fields));
        }
        loop {
            self.blanks();
            let name = self.string()?;
            self.blanks();
            self.take(":")?;
            let value = self.value(depth + 1)?;
            match place(&fields, &mut places, &name) {
                Some(_) if self.first && depth == 0 => {}
                Some(at) => fields[at] = (name, value),
                None => fields.push((name, value)),
            }
            self.blanks();
            if self.take(",").is_none() {
                self.take("}")?;
                return Some(Json::Object(fields));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Json> {
        let mut items = Vec::new();
        self.take("[")?;
        self.blanks();
        if self.take("]").is_some() {
            return Some(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blanks();
            if self.take(",").is_none() {
                self.take("]")?;
                return Some(Json::List(items));
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        if self.peek()? != b'"' {
            return None;
        }
        let begin = self.at;
        self.at += 1;
        let mut as_it_stands = true;
        loop {
            self.at += special(self.text.get(self.at..)?)?;
            match self.peek()? {
                b'"' => break,
                b'\\' => (self.at, as_it_stands) = (self.at + 2, false),
                _ => return None,
            }
        }
        let quoted = begin..self.at + 1;
        self.at = quoted.end;
        if as_it_stands {
            return Some(self.text[quoted.start + 1..quoted.end - 1].to_owned());
        }
        // It refuses halves of a pair of surrogates, as theirs does.
        serde_json::from_str(self.text.get(quoted)?).ok()
    }

    fn number(&mut self) -> Option<Json> {
        let is_part = |c: u8| c.is_ascii_digit() || matches!(c, b'-' | b'+' | b'.' | b'e' | b'E');
        let length = self.rest().bytes().take_while(|c| is_part(*c)).count();
        let text = &self.rest()[..length];
        self.at += length;
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_whole = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
        if is_whole {
            let sound = (digits == "0" || !digits.starts_with('0')) && digits.len() <= MAX_DIGITS;
            let number = if digits == "0" { digits } else { text };
            return sound.then(|| Json::Number(number.to_owned()));
        }
        serde_json::from_str::<&serde_json::value::RawValue>(text).ok()?;
        let number: f64 = text.parse().ok()?;
        // What is too large for a float is no number in theirs either.
        Some(float(number).map_or(Json::Null, Json::Number))
    }
}

/// Where a name stands among fields; beyond a few they are kept in `places`, as far as they were looked for.
fn place(
    fields: &[(String, Json)],
    places: &mut HashMap<String, usize>,
    name: &str,
) -> Option<usize> {
    if fields.len() <= FEW_FIELDS {
        return fields.iter().position(|(is, _)| is == name);
    }
    for (at, (name, _)) in fields.iter().enumerate().skip(places.len()) {
        places.insert(name.clone(), at);
    }
    places.get(name).copied()
}

/// A float as it is written; None for what JSON has no number for.
pub(super) fn float(number: f64) -> Option<String> {
    let written = serde_json::Number::from_f64(number)?.to_string();
    // Theirs writes no sign before an exponent that has none.
    Some(written.replace("e+", "e"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(text: &str) -> Option<String> {
        Some(Json::read(text)?.text())
    }

    #[test]
    fn it_is_written_without_blanks() {
        let text = " { \"a\" : [ 1 , -2.50 , true , null ] , \"\" : { } , \"l\" : [ ] } \n";
        let expected = r#"{"a":[1,-2.5,true,null],"":{},"l":[]}"#;
        assert_eq!(again(text).as_deref(), Some(expected));
    }

    #[test]
    fn numbers_stay_what_they_are() {
        for (text, expected) in [
            ("12345678901234567890123", "12345678901234567890123"),
            ("1.0", "1.0"),
            ("-0.0", "-0.0"),
            ("-0", "0"),
            ("1E300", "1e300"),
            ("1e999", "null"),
            ("NaN", "null"),
            ("-Infinity", "null"),
        ] {
            assert_eq!(again(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn texts_are_written_as_theirs() {
        let text = r#""\u00f1 \u0001 \/ \" \\ \u2028 \ud83d\ude00 \u007f \b\f\n\r\t""#;
        let expected = "\"ñ \\u0001 / \\\" \\\\ \u{2028} 😀 \u{7f} \\b\\f\\n\\r\\t\"";
        assert_eq!(again(text).as_deref(), Some(expected));
    }

    #[test]
    fn of_two_the_last_counts_in_the_place_of_the_first() {
        let is = again(r#"{"a":1,"b":2,"\u0061":3}"#);
        assert_eq!(is.as_deref(), Some(r#"{"a":3,"b":2}"#));
        let text = r#"{"a":{"b":1,"b":2},"a":3}"#;
        let first = Json::read_as(text, true).unwrap();
        assert_eq!(first.text(), r#"{"a":{"b":2}}"#);
    }

    #[test]
    fn of_many_the_last_counts_too() {
        let many = 3 * FEW_FIELDS;
        let fields = |value: usize| (0..many).map(move |at| format!("\"{at}\":{value}"));
        let text: Vec<_> = fields(1).chain(fields(2)).collect();
        let expected: Vec<_> = fields(2).collect();
        let is = again(&format!("{{{}}}", text.join(",")));
        assert_eq!(is, Some(format!("{{{}}}", expected.join(","))));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for bad in [
            "",
            "{",
            "[1",
            "[1,]",
            "{\"a\"}",
            "{\"a\":1,}",
            "{a:1}",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "nul",
            "\"",
            "\"\\\"",
            "\"a\nb\"",
            "\"\\ud800\"",
            "\"\\x\"",
            "1 2",
            "\u{feff}1",
            "'a'",
            "Nan",
            "1-2",
            "\"\\",
        ] {
            assert_eq!(again(bad), None, "{bad}");
        }
    }

    #[test]
    fn digits_are_bounded() {
        assert!(again(&"9".repeat(MAX_DIGITS)).is_some());
        assert!(again(&"9".repeat(MAX_DIGITS + 1)).is_none());
    }

    #[test]
    fn depth_is_bounded() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(again(&deep(MAX_DEPTH)).is_some());
        assert!(again(&deep(100_000)).is_none());
    }
}
