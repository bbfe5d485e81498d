//! Reads JSON as Nooble4's models do. A piece of text that is in written form is borrowed, not copied.

use std::borrow::Cow;
use std::collections::HashMap;

use super::json::{Field, Json, Object, float};
use super::plain::{special, special_soon};

/// Greatest depth of nested values, as in Nooble4's reader.
pub(super) const MAX_DEPTH: usize = 200;

/// Greatest number of digits in a whole number, as in Nooble4's reader.
pub(super) const MAX_DIGITS: usize = 4300;

/// Objects with up to this many fields are searched name by name, which is faster than a table.
pub(super) const FEW_FIELDS: usize = 32;

/// Initial capacity for the fields of an envelope.
const USUAL_FIELDS: usize = 20;

impl<'a> Json<'a> {
    /// Reads a text of exactly one value; `None` otherwise.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        Self::read_as(text, false)
    }

    /// Does the same. With `first`, the first value of duplicate names in the outermost object counts.
    pub(super) fn read_as(text: &'a str, first: bool) -> Option<Self> {
        let mut reader = Reader {
            text,
            at: 0,
            changed: 0,
            first,
        };
        let value = reader.value(0)?;
        reader.blanks();
        (reader.at == text.len()).then_some(value)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// End of the last part of the text that is not in written form.
    changed: usize,
    /// True if the first value of duplicate names in the outermost object counts.
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
            self.changed = self.at;
        }
    }

    fn byte(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Option<Json<'a>> {
        self.rest().starts_with(word).then(|| {
            self.at += word.len();
            value
        })
    }

    /// Reads a number that JSON does not have, which is written as null.
    fn no_number(&mut self, word: &str) -> Option<Json<'a>> {
        let null = self.word(word, Json::Null);
        self.changed = self.at;
        null
    }

    fn value(&mut self, depth: usize) -> Option<Json<'a>> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.blanks();
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.list(depth),
            b'"' => self.string(special).map(Json::Text),
            b't' => self.word("true", Json::Bool(true)),
            b'f' => self.word("false", Json::Bool(false)),
            b'n' => self.word("null", Json::Null),
            b'N' => self.no_number("NaN"),
            b'I' => self.no_number("Infinity"),
            b'-' if self.rest().starts_with("-I") => self.no_number("-Infinity"),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Json<'a>> {
        let begin = self.at;
        let (mut fields, mut names) = (Vec::new(), Names::default());
        self.byte(b'{')?;
        self.blanks();
        if self.byte(b'}').is_some() {
            return Some(self.object_of(fields, begin));
        }
        if depth == 0 {
            fields.reserve(USUAL_FIELDS);
        }
        loop {
            self.blanks();
            let name = self.string(special_soon)?;
            self.blanks();
            self.byte(b':')?;
            let value = self.value(depth + 1)?;
            match names.place(&name, &fields) {
                Some(at) => {
                    self.changed = self.at;
                    if !self.first || depth > 0 {
                        fields[at] = (name, value);
                    }
                }
                None => fields.push((name, value)),
            }
            self.blanks();
            if self.byte(b',').is_none() {
                self.byte(b'}')?;
                return Some(self.object_of(fields, begin));
            }
        }
    }

    /// Returns an object whose text begins at `begin` and ends here.
    fn object_of(&self, fields: Vec<Field<'a>>, begin: usize) -> Json<'a> {
        let as_it_stands = self.changed <= begin;
        let written = as_it_stands.then(|| &self.text[begin..self.at]);
        Json::Object(Object { fields, written })
    }

    fn list(&mut self, depth: usize) -> Option<Json<'a>> {
        let mut items = Vec::new();
        self.byte(b'[')?;
        self.blanks();
        if self.byte(b']').is_some() {
            return Some(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blanks();
            if self.byte(b',').is_none() {
                self.byte(b']')?;
                return Some(Json::List(items));
            }
        }
    }

    /// Reads a text. `end` finds its possible end.
    fn string(&mut self, end: impl FnOnce(&[u8]) -> Option<usize>) -> Option<Cow<'a, str>> {
        self.byte(b'"')?;
        let begin = self.at;
        self.at += end(&self.text.as_bytes()[begin..])?;
        if self.byte(b'"').is_none() {
            return self.escaped(begin).map(Cow::Owned);
        }
        self.text.get(begin..self.at - 1).map(Cow::Borrowed)
    }

    /// Reads the rest of a text that began at `begin` and has no special byte so far.
    fn escaped(&mut self, begin: usize) -> Option<String> {
        let bytes = self.text.as_bytes();
        let mut changed = false;
        while self.byte(b'"').is_none() {
            self.byte(b'\\')?;
            // The other escapes have several forms, or another written form.
            changed |= !matches!(
                self.peek()?,
                b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't'
            );
            self.at += 1;
            self.at += special(&bytes[self.at..])?;
        }
        if changed {
            self.changed = self.at;
        }
        // serde_json refuses unpaired surrogates, like Nooble4.
        serde_json::from_str(self.text.get(begin - 1..self.at)?).ok()
    }

    fn number(&mut self) -> Option<Json<'a>> {
        let is_part = |c: u8| c.is_ascii_digit() || matches!(c, b'-' | b'+' | b'.' | b'e' | b'E');
        let length = self.rest().bytes().take_while(|c| is_part(*c)).count();
        let text = &self.rest()[..length];
        self.at += length;
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_whole = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
        let number = if is_whole {
            let sound = (digits == "0" || !digits.starts_with('0')) && digits.len() <= MAX_DIGITS;
            let number = if digits == "0" { digits } else { text };
            sound.then_some(Some(Cow::Borrowed(number)))?
        } else {
            serde_json::from_str::<&serde_json::value::RawValue>(text).ok()?;
            float(text.parse().ok()?).map(Cow::Owned)
        };
        if number.as_deref() != Some(text) {
            self.changed = self.at;
        }
        // A number beyond the range of a float is null in Nooble4, too.
        Some(number.map_or(Json::Null, Json::Number))
    }
}

/// Names of an object's fields so far.
#[derive(Default)]
struct Names<'a> {
    /// A bit for each name, possibly shared. Most names are known to be new without a comparison.
    marks: u64,
    /// Positions of the names that were looked up, in objects with many fields.
    places: Option<HashMap<Cow<'a, str>, usize>>,
}

impl<'a> Names<'a> {
    /// Returns the position of a name among the fields so far, or registers the name as new.
    fn place(&mut self, name: &str, fields: &[Field<'a>]) -> Option<usize> {
        let mark = mark(name);
        if self.marks & mark == 0 {
            self.marks |= mark;
            return None;
        }
        if fields.len() <= FEW_FIELDS {
            return fields.iter().position(|(is, _)| is == name);
        }
        let places = self.places.get_or_insert_default();
        for (at, (name, _)) in fields.iter().enumerate().skip(places.len()) {
            places.insert(name.clone(), at);
        }
        places.get(name).copied()
    }
}

/// Returns one of 64 bits for a name, by features that are cheap and differ among names in envelopes.
fn mark(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    let (first, last) = ends.map_or((0, 0), |(first, last)| {
        (usize::from(*first), usize::from(*last))
    });
    1 << ((bytes.len() + 4 * first + last) % 64)
}
