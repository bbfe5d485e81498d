//! JSON as Nooble4's models read and write it. `NaN` is read, of duplicate names the last value counts, and whole
//! numbers keep all their digits. It is written without blanks, in UTF-8. This module has the values and the writer;
//! `reader` has the reader.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::plain::special;

/// Initial capacity for a value that is written.
const USUAL_LENGTH: usize = 256;

/// A value. Names, texts and numbers borrow from the text where its form is the one that is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    /// A number in the form that is written.
    Number(Cow<'a, str>),
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Object(Object<'a>),
}

/// A field of an object.
pub(super) type Field<'a> = (Cow<'a, str>, Json<'a>);

/// An object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object<'a> {
    /// Each name once, in the order of its first occurrence.
    pub(super) fields: Vec<Field<'a>>,
    /// The source text, if the object is written exactly so.
    pub(super) written: Option<&'a str>,
}

impl Json<'_> {
    /// Appends the value as JSON.
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
            Self::Object(object) => object.write(out),
        }
    }

    /// Returns the value as JSON.
    pub(super) fn text(&self) -> String {
        if let Self::Object(Object {
            written: Some(text),
            ..
        }) = self
        {
            return (*text).to_owned();
        }
        let mut out = String::with_capacity(USUAL_LENGTH);
        self.write(&mut out);
        out
    }
}

impl Object<'_> {
    fn write(&self, out: &mut String) {
        if let Some(text) = self.written {
            return out.push_str(text);
        }
        out.push('{');
        for (at, (name, value)) in self.fields.iter().enumerate() {
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

/// Appends a text between quotes.
pub(super) fn write_text(text: &str, out: &mut String) {
    out.push('"');
    write_escaped(text, out);
    out.push('"');
}

/// Appends the part of a text between the quotes.
pub(super) fn write_escaped(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = special(rest.as_bytes()) {
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
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{other:04x}");
            }
        }
    }
    out.push_str(rest);
}

/// Returns a float as JSON; `None` if JSON has no such number.
pub(super) fn float(number: f64) -> Option<String> {
    let written = serde_json::Number::from_f64(number)?.to_string();
    // Nooble4 writes no sign before a positive exponent.
    Some(written.replace("e+", "e"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::reader::{FEW_FIELDS, MAX_DEPTH, MAX_DIGITS};
    use super::*;

    /// Removes all kept source texts.
    fn without_texts(value: Json<'_>) -> Json<'_> {
        match value {
            Json::List(items) => Json::List(items.into_iter().map(without_texts).collect()),
            Json::Object(Object { fields, .. }) => {
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| (name, without_texts(value)));
                let (fields, written) = (fields.collect(), None);
                Json::Object(Object { fields, written })
            }
            other => other,
        }
    }

    /// Returns whether the text of an object is kept. If so, the text must equal the written form.
    fn is_kept(text: &str) -> bool {
        let Some(value @ Json::Object(_)) = Json::read(text) else {
            return false;
        };
        let is_kept = matches!(
            &value,
            Json::Object(Object {
                written: Some(_),
                ..
            })
        );
        let written = value.text();
        assert_eq!(written, without_texts(value).text(), "{text}");
        assert!(!is_kept || written == text, "{text}");
        is_kept
    }

    #[test]
    fn what_is_written_already_is_kept() {
        for kept in [
            "{}",
            r#"{"a":[],"":{},"n":[null,true,false,0,-1,1.5,1e300,-0.0]}"#,
            r#"{"ñ":"😀","\n":"\"\\\b\f\n\r\t"}"#,
            "{\"a\":\"\x7f\"}",
            r#"{"a":{"b":1},"b":{"a":1}}"#,
        ] {
            assert!(is_kept(kept), "{kept}");
        }
        for other in [
            "{ }",
            r#"{"a":[ ]}"#,
            "{\"a\"\t:1}",
            "{\"a\":\n1}",
            r#"{"a":1 }"#,
            r#"{"a":1, "b":2}"#,
            r#"{"\u0061":1}"#,
            r#"{"a":"\/"}"#,
            r#"{"a":"\u0001"}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a":{"b":1,"b":1}}"#,
            r#"{"a":-0}"#,
            r#"{"a":1.50}"#,
            r#"{"a":1E5}"#,
            r#"{"a":1e999}"#,
            r#"{"a":NaN}"#,
            r#"{"a":[Infinity]}"#,
            r#"{"a":-Infinity}"#,
        ] {
            assert!(!is_kept(other), "{other}");
        }
    }

    #[test]
    fn one_object_is_kept_beside_another() {
        let value = Json::read(r#"{"a":{"b":1},"c":{"b": 1},"d":{"b":2}}"#).unwrap();
        let Json::Object(object) = &value else {
            panic!("an object is read");
        };
        let kept = object.fields.iter().map(|(_, value)| match value {
            Json::Object(Object { written, .. }) => *written,
            _ => None,
        });
        let kept: Vec<_> = kept.collect();
        assert_eq!(kept, [Some(r#"{"b":1}"#), None, Some(r#"{"b":2}"#)]);
        assert_eq!(value.text(), r#"{"a":{"b":1},"c":{"b":1},"d":{"b":2}}"#);
    }

    /// Objects in written form and in other forms.
    fn objects() -> impl Strategy<Value = String> {
        let alone = prop_oneof![
            "-?(0|[1-9][0-9]{0,3})",
            "-?[0-9]\\.[0-9]{1,2}([eE][-+]?[0-9]{1,3})?",
            "null|true|false|NaN|-?Infinity",
            text(),
        ];
        let within = |value: BoxedStrategy<String>| {
            let blank = || prop_oneof![20 => Just(""), 1 => Just(" "), 1 => Just("\n")];
            let field = (blank(), text(), blank(), value.clone(), blank());
            let field = field.prop_map(|(a, name, b, value, c)| format!("{a}{name}:{b}{value}{c}"));
            let fields = proptest::collection::vec(field, 0..4);
            prop_oneof![
                fields.prop_map(|fields| format!("{{{}}}", fields.join(","))),
                proptest::collection::vec(value, 0..3).prop_map(|it| format!("[{}]", it.join(","))),
            ]
        };
        alone.prop_recursive(4, 40, 4, move |value| within(value.boxed()))
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            8 => "[a-c]{0,2}",
            3 => r#"([ -!#-\[\]-~ñ😀\x7f]|\\["\\bfnrt]){0,40}"#,
            1 => r"(\\/|\\u00[0-9a-fA-F]{2}|a){0,3}",
        ]
        .prop_map(|text| format!("\"{text}\""))
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_is_written(value in objects()) {
            let text = format!("{{\"v\":{value}}}");
            prop_assert!(Json::read(&text).is_some());
            is_kept(&text);
            let written = Json::read(&text).map(|value| without_texts(value).text()).unwrap();
            // Written text is kept, unless it has a control character without a short form.
            prop_assert!(is_kept(&written) || written.contains("\\u00"), "{}", written);
        }
    }

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
