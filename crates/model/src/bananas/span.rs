//! Spans of the fields of a JSON object in its text, and edits that leave the rest of the text unchanged.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::draft::{Draft, Piece};

/// The text of an object, and the spans of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    text: String,
    fields: Vec<(String, Range<usize>)>,
}

/// Names and values in the order of the text, with duplicates.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

impl Object {
    /// Finds the fields of a text.
    pub(super) fn read(text: String) -> Result<Self, serde_json::Error> {
        let Pairs(pairs) = serde_json::from_str(&text)?;
        let begin = text.as_ptr() as usize;
        let place = |value: &RawValue| {
            let at = value.get().as_ptr() as usize - begin;
            at..at + value.get().len()
        };
        let fields = pairs
            .into_iter()
            .map(|(name, value)| (name, place(value)))
            .collect();
        Ok(Self { text, fields })
    }

    /// Returns the unchanged text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns a value unchanged. Of duplicate names the last one counts, as for all readers.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        Some(&self.text[self.place(name)?.1])
    }

    fn place(&self, name: &str) -> Option<(usize, Range<usize>)> {
        let found = self.fields.iter().enumerate();
        let mut found = found.filter(|(_, (is, _))| is == name);
        found.next_back().map(|(at, (_, span))| (at, span.clone()))
    }

    /// Begins an edit.
    pub(super) fn edit(&self) -> Edit<'_> {
        Edit {
            of: self,
            changes: Vec::new(),
        }
    }

    /// Returns the span to which a value is written, and the text to insert before the value. The span is that of the
    /// present value, else behind the first present field of `after`, else at the end.
    pub(super) fn spot(&self, name: &str, after: &[&str]) -> (Range<usize>, String) {
        if let Some((_, span)) = self.place(name) {
            return (span, String::new());
        }
        let neighbour = after.iter().find_map(|name| self.place(name));
        let end = self.fields.last().map(|(_, span)| span.end);
        let at = neighbour.map(|(_, span)| span.end).or(end);
        let blank = if self.is_spaced() { " " } else { "" };
        let comma = if at.is_some() { "," } else { "" };
        let comma_blank = if at.is_some() { blank } else { "" };
        let before = format!("{comma}{comma_blank}\"{name}\":{blank}");
        // An object without fields has only blanks between its braces.
        let at = at.unwrap_or_else(|| self.text.find('{').map_or(0, |at| at + 1));
        (at..at, before)
    }

    /// Returns the span to delete when a field is removed, if the field is present.
    pub(super) fn cut(&self, name: &str) -> Option<Range<usize>> {
        let (at, span) = self.place(name)?;
        if at > 0 {
            return Some(self.fields[at - 1].1.end..span.end);
        }
        let open = self.text.find('{').map_or(0, |at| at + 1);
        let rest = &self.text[span.end..];
        let comma = rest.find(',').filter(|_| self.fields.len() > 1);
        let tail = comma.map_or(0, |comma| {
            let behind = &rest[comma + 1..];
            comma + 1 + (behind.len() - behind.trim_start().len())
        });
        Some(open..span.end + tail)
    }

    /// Returns whether blanks follow the colons and commas, as Python writes them.
    fn is_spaced(&self) -> bool {
        self.fields
            .first()
            .is_some_and(|(_, span)| self.text[..span.start].ends_with(' '))
    }
}

/// Changes of fields.
pub(super) struct Edit<'a> {
    of: &'a Object,
    changes: Vec<(Range<usize>, Vec<Piece>)>,
}

impl Edit<'_> {
    /// Writes a value: in place of the present one, else after the first present field of `after`, else at the end.
    pub(super) fn set(mut self, name: &str, value: Vec<Piece>, after: &[&str]) -> Self {
        let (span, mut before) = self.of.spot(name, after);
        if self.of.fields.is_empty() && !self.changes.is_empty() {
            // An earlier change has already inserted the first field.
            before.insert(0, ',');
        }
        let before = (!before.is_empty()).then_some(Piece::Text(before));
        let pieces = before.into_iter().chain(value).collect();
        self.changes.push((span, pieces));
        self
    }

    /// Removes a field.
    pub(super) fn remove(mut self, name: &str) -> Self {
        if let Some(cut) = self.of.cut(name) {
            self.changes.push((cut, Vec::new()));
        }
        self
    }

    /// Returns the text with the changes.
    pub(super) fn done(mut self) -> Draft {
        // The sort is stable: changes with one start keep their order.
        self.changes.sort_by_key(|(span, _)| span.start);
        let (mut draft, mut at) = (Draft::default(), 0);
        for (span, pieces) in &self.changes {
            draft.text(&self.of.text[at..span.start]);
            for piece in pieces {
                draft.piece(piece);
            }
            at = span.end;
        }
        draft.text(&self.of.text[at..]);
        draft
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object {
        Object::read(text.to_owned()).unwrap()
    }

    fn word(text: &str) -> Vec<Piece> {
        vec![Piece::Text(text.to_owned())]
    }

    fn set(text: &str, name: &str, after: &[&str]) -> String {
        object(text).edit().set(name, word("7"), after).done().at(0)
    }

    #[test]
    fn a_value_is_changed_where_it_stands() {
        let text = r#" { "a" : [1, {"b":2}] , "b" : 12345678901234567890 } "#;
        let is = set(text, "a", &[]);
        assert_eq!(is, r#" { "a" : 7 , "b" : 12345678901234567890 } "#);
        assert_eq!(object(text).get("b"), Some("12345678901234567890"));
        assert_eq!(object(r#"{"\u0061":1}"#).get("a"), Some("1"));
    }

    #[test]
    fn of_two_the_last_one_counts() {
        let text = r#"{"a":1,"a":2,"b":3}"#;
        assert_eq!(object(text).get("a"), Some("2"));
        assert_eq!(set(text, "a", &[]), r#"{"a":1,"a":7,"b":3}"#);
    }

    #[test]
    fn what_is_new_stands_after_its_neighbour_in_the_style_of_the_rest() {
        assert_eq!(
            set(r#"{"a":1,"b":2}"#, "c", &["x", "a"]),
            r#"{"a":1,"c":7,"b":2}"#
        );
        assert_eq!(
            set(r#"{"a": 1, "b": 2}"#, "c", &["a"]),
            r#"{"a": 1, "c": 7, "b": 2}"#
        );
        assert_eq!(set(r#"{"a":1}"#, "c", &[]), r#"{"a":1,"c":7}"#);
        assert_eq!(set("{ }", "c", &[]), r#"{"c":7 }"#);
    }

    #[test]
    fn a_field_is_taken_out_with_its_comma() {
        let without = |text: &str, name: &str| object(text).edit().remove(name).done().at(0);
        let text = r#"{"a": 1, "b": [2,3], "c": 4}"#;
        assert_eq!(without(text, "a"), r#"{"b": [2,3], "c": 4}"#);
        assert_eq!(without(text, "b"), r#"{"a": 1, "c": 4}"#);
        assert_eq!(without(text, "c"), r#"{"a": 1, "b": [2,3]}"#);
        assert_eq!(without(r#"{"a":1}"#, "a"), "{}");
        assert_eq!(without(text, "d"), text);
    }

    #[test]
    fn changes_stand_in_the_order_of_the_text() {
        let object = object(r#"{"a":1,"b":2}"#);
        let edit = object.edit().set("b", word("3"), &[]);
        let edit = edit.set("a", vec![Piece::Now { plus_ms: 1 }], &[]);
        let edit = edit.set("c", word("5"), &["a"]).set("d", word("6"), &["a"]);
        let expected = r#"{"a":1970-01-01T00:00:00.001000Z,"c":5,"d":6,"b":3}"#;
        assert_eq!(edit.done().at(0), expected);
    }

    #[test]
    fn an_object_without_fields_is_filled() {
        for (text, expected) in [
            ("{}", r#"{"a":1,"b":2,"c":3}"#),
            ("{ }", r#"{"a":1,"b":2,"c":3 }"#),
        ] {
            let object = object(text);
            let edit = object.edit().set("a", word("1"), &["x"]);
            let edit = edit.set("b", word("2"), &["a"]).set("c", word("3"), &[]);
            assert_eq!(edit.done().at(0), expected);
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for bad in ["", "[]", "1", "{", "{\"a\":1}x", "{\"a\":}", "null"] {
            assert!(Object::read(bad.to_owned()).is_err(), "{bad}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Object::read(deep).is_ok());
    }
}
