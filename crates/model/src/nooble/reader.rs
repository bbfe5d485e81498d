//! Reads JSON as Nooble4's models do. What stands in a text as it is written again is not copied: a piece of the
//! text stands for it.

use std::borrow::Cow;
use std::collections::HashMap;

use super::json::{Field, Json, Object, float};
use super::plain::{special, special_soon};

/// How deep values may be nested: what Nooble4's reader allows.
pub(super) const MAX_DEPTH: usize = 200;

/// The most digits of a whole number: theirs reads no more.
pub(super) const MAX_DIGITS: usize = 4300;

/// Of an object with up to so many fields, names are looked for one by one: a table would cost more.
pub(super) const FEW_FIELDS: usize = 32;

/// Room for the fields of an envelope: more, and it grows.
const USUAL_FIELDS: usize = 20;

impl<'a> Json<'a> {
    /// Reads a text that is one value and nothing else. None if it is not.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        Self::read_as(text, false)
    }

    /// The same; with `first`, of a name that comes twice in the outermost object the first value counts.
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
    /// Where the last thing ends that is written in another way than it stands.
    changed: usize,
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

    /// A number that JSON does not know, which is written as nothing.
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

    /// An object that was read from where it begins to here.
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

    /// A text, of which `end` finds where it may end.
    fn string(&mut self, end: impl FnOnce(&[u8]) -> Option<usize>) -> Option<Cow<'a, str>> {
        self.byte(b'"')?;
        let begin = self.at;
        self.at += end(&self.text.as_bytes()[begin..])?;
        if self.byte(b'"').is_none() {
            return self.escaped(begin).map(Cow::Owned);
        }
        self.text.get(begin..self.at - 1).map(Cow::Borrowed)
    }

    /// The rest of a text that began there, up to here without anything special.
    fn escaped(&mut self, begin: usize) -> Option<String> {
        let bytes = self.text.as_bytes();
        let mut changed = false;
        while self.byte(b'"').is_none() {
            self.byte(b'\\')?;
            // The others have more than one form, or another than this one.
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
        // It refuses halves of a pair of surrogates, as theirs does.
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
        // What is too large for a float is no number in theirs either.
        Some(number.map_or(Json::Null, Json::Number))
    }
}

/// The names that an object has so far.
#[derive(Default)]
struct Names<'a> {
    /// A bit for each name, which others may share: most names are seen to be new without a look at the others.
    marks: u64,
    /// Where names stand, beyond a few, as far as they were looked for.
    places: Option<HashMap<Cow<'a, str>, usize>>,
}

impl<'a> Names<'a> {
    /// Where a name stands among the fields so far, to which it is added otherwise.
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

/// One of 64 bits, by what is quickly seen of a name and tells those of envelopes apart.
fn mark(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    let (first, last) = ends.map_or((0, 0), |(first, last)| {
        (usize::from(*first), usize::from(*last))
    });
    1 << ((bytes.len() + 4 * first + last) % 64)
}
