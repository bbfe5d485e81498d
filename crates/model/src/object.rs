//! Objects that scripts store: spaces, ids, types, and the index of an object. Scripts of the store keep an object, its
//! index sets and its history equal.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Greatest number of objects in all spaces of a context, and outside of contexts.
pub const MAX_OBJECTS: u64 = 1_000_000;
/// Greatest size of all objects and their histories, in bytes: 1 GiB.
pub const MAX_BYTES: u64 = 1 << 30;
/// Greatest size of one object, in bytes of JSON: 1 MiB, as of a script.
pub const MAX_OBJECT: usize = 1 << 20;
/// Versions of an object that its history keeps.
pub const MAX_VERSIONS: usize = 100;
/// Greatest number of objects that one call returns.
pub const MAX_FOUND: usize = 1_000;
/// Bytes of JSON after which a call returns no further object: the limit of a result.
pub const MAX_ANSWER: usize = 16 << 20;
/// Greatest number of index sets of an object: a script of the store handles at most 1,000 items.
pub const MAX_INDEX: usize = 500;
/// Greatest number of keys of a space.
pub const MAX_KEYS: usize = 32;
/// Greatest length of names: of a key of a space, a type, a field, an id.
const MAX_NAME: usize = 128;
/// Length of a value in the name of an index set. A longer one is replaced by its digest.
const MAX_VALUE: usize = 64;
/// Length of an indexed word, in bytes; shorter and longer ones are not found.
const WORDS: std::ops::RangeInclusive<usize> = 2..=64;

/// Reason why an object or a question is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidObject {
    /// A name has a forbidden character or length.
    #[error("{what} `{name}` is invalid: use 1 to {MAX_NAME} letters, digits, `_`, `-`, `.`")]
    Name {
        /// Sort of the name.
        what: &'static str,
        /// The name, shortened.
        name: String,
    },
    /// A space has no keys, or too many.
    #[error("get_context() takes 1 to {MAX_KEYS} keys, not {0}")]
    Keys(usize),
    /// The object is too large.
    #[error("the object has {0} bytes, the limit is {MAX_OBJECT}: store large data in files")]
    TooLarge(usize),
    /// The object has too many fields and words.
    #[error(
        "the object has {0} fields and words to index, the limit is {MAX_INDEX}: store long texts as blobs or lists"
    )]
    TooManyWords(usize),
    /// A question without a word.
    #[error("search() needs a word of 2 to 64 letters or digits")]
    NoWord,
}

/// Checks a name.
fn name<'a>(what: &'static str, name: &'a str) -> Result<&'a str, InvalidObject> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    match !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_plain) {
        true => Ok(name),
        false => Err(InvalidObject::Name {
            what,
            name: name.chars().take(MAX_NAME).collect(),
        }),
    }
}

/// Space of objects: the keys of its participants, in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space(String);

impl Space {
    /// Returns the space of these keys, in a context.
    ///
    /// # Errors
    /// A key is invalid, or there are too few or too many.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidObject> {
        let keys: Result<BTreeSet<_>, _> =
            keys.into_iter().map(|key| name("the key", key)).collect();
        let keys: Vec<_> = keys?.into_iter().collect();
        match keys.len() {
            1..=MAX_KEYS => Ok(Self(keys.join(","))),
            many => Err(InvalidObject::Keys(many)),
        }
    }

    /// Returns the space of the same keys that only jobs of `caller` use, outside of contexts.
    #[must_use]
    pub fn of_caller(self, caller: &str) -> Self {
        Self(format!("caller.{}/{}", digest(caller.as_bytes()), self.0))
    }

    /// Returns its part of the keys of the store.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Checks the id of an object.
///
/// # Errors
/// It has a forbidden character or length.
pub fn check_id(id: &str) -> Result<(), InvalidObject> {
    name("the id", id).map(drop)
}

/// Returns the first half of a SHA-256, in hexadecimal digits.
fn digest(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)[..16])
}

/// Returns the set of all objects of a type.
///
/// # Errors
/// The type is no name.
pub fn type_set(kind: &str) -> Result<String, InvalidObject> {
    Ok(format!("type:{}", name("the type", kind)?))
}

/// Returns the set of the objects of a type whose field has this value; `None` for a list or map, which is not indexed.
///
/// # Errors
/// The type or the field is no name.
pub fn field_set(kind: &str, field: &str, value: &Value) -> Result<Option<String>, InvalidObject> {
    let (kind, field) = (name("the type", kind)?, name("the field", field)?);
    Ok(value_text(value).map(|text| format!("field:{kind}:{field}={text}")))
}

/// Returns a scalar as part of a set's name. Texts differ from other values.
fn value_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => format!("\"{text}"),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => return None,
    };
    Some(
        match text.len() <= MAX_VALUE && !text.contains(char::is_control) {
            true => text,
            false => format!("#{}", digest(text.as_bytes())),
        },
    )
}

/// Returns the words of a text, in small letters.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| WORDS.contains(&word.len()));
    words
        .map(str::to_lowercase)
        .filter(|word| word.len() <= MAX_NAME)
}

/// Returns the sets of the objects of a type that contain all words of a text.
///
/// # Errors
/// The type is no name, or the text has no word.
pub fn word_sets(kind: &str, text: &str) -> Result<Vec<String>, InvalidObject> {
    let kind = name("the type", kind)?;
    let sets: BTreeSet<_> = words(text)
        .map(|word| format!("word:{kind}:{word}"))
        .collect();
    match sets.len() {
        0 => Err(InvalidObject::NoWord),
        1..=MAX_INDEX => Ok(sets.into_iter().collect()),
        many => Err(InvalidObject::TooManyWords(many)),
    }
}

/// An object to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewObject {
    /// Type.
    pub kind: String,
    /// JSON of its map.
    pub json: String,
    /// Names of its index sets.
    pub index: Vec<String>,
}

impl NewObject {
    /// Returns an object with its index: its type, each scalar field, and the words of each text.
    ///
    /// # Errors
    /// The type or a field is no name, or a limit is exceeded.
    pub fn new(kind: &str, map: &Map<String, Value>) -> Result<Self, InvalidObject> {
        let mut index = BTreeSet::from([type_set(kind)?]);
        for (field, value) in map {
            index.extend(field_set(kind, field, value)?);
            if let Value::String(text) = value {
                index.extend(words(text).map(|word| format!("word:{kind}:{word}")));
            }
        }
        if index.len() > MAX_INDEX {
            return Err(InvalidObject::TooManyWords(index.len()));
        }
        let json = Value::Object(map.clone()).to_string();
        if json.len() > MAX_OBJECT {
            return Err(InvalidObject::TooLarge(json.len()));
        }
        Ok(Self {
            kind: kind.to_owned(),
            json,
            index: index.into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(map: Value) -> Result<NewObject, InvalidObject> {
        NewObject::new("note", map.as_object().unwrap())
    }

    #[test]
    fn scalars_and_words_are_indexed() {
        let made =
            object(json!({"title": "Red car, RED", "n": 3, "tags": ["x"], "done": true})).unwrap();
        let expected = [
            "field:note:done=true",
            "field:note:n=3",
            "field:note:title=\"Red car, RED",
            "type:note",
            "word:note:car",
            "word:note:red",
        ];
        assert_eq!(made.index, expected);
        // The text `3` is no number.
        assert_ne!(
            field_set("note", "n", &json!("3")),
            field_set("note", "n", &json!(3))
        );
        assert_eq!(field_set("note", "tags", &json!(["x"])), Ok(None));
    }

    #[test]
    fn a_long_value_has_a_digest() {
        let long = json!("x".repeat(1000));
        let set = field_set("note", "title", &long).unwrap().unwrap();
        assert_eq!(set.len(), "field:note:title=#".len() + 32);
        let lines = field_set("note", "title", &json!("a\nb")).unwrap().unwrap();
        assert!(!lines.contains('\n'));
    }

    #[test]
    fn spaces_ignore_the_order_of_their_keys() {
        let space = Space::new(["b", "a", "b"]).unwrap();
        assert_eq!(space.as_str(), "a,b");
        let own = space.clone().of_caller("ann");
        assert_ne!(own, space.of_caller("bob"));
        assert!(own.as_str().ends_with("/a,b"));
        assert_eq!(Space::new([]), Err(InvalidObject::Keys(0)));
        for key in ["", "a,b", "a:b", "a/b", "a\n"] {
            assert!(Space::new([key]).is_err(), "{key:?}");
        }
        let many: Vec<_> = (0..=MAX_KEYS).map(|at| at.to_string()).collect();
        assert!(Space::new(many.iter().map(String::as_str)).is_err());
    }

    #[test]
    fn what_exceeds_a_limit_is_refused_with_the_limit() {
        let words: Vec<_> = (0..MAX_INDEX).map(|at| format!("w{at}")).collect();
        let error = object(json!({"text": words.join(" ")}))
            .unwrap_err()
            .to_string();
        assert!(error.contains("the limit is 500"), "{error}");
        let error = object(json!({"list": vec!["x".repeat(1 << 16); 17]}))
            .unwrap_err()
            .to_string();
        assert!(error.contains("the limit is 1048576"), "{error}");
        assert_eq!(word_sets("note", "- a -"), Err(InvalidObject::NoWord));
        assert!(
            object(json!({"a b": 1}))
                .unwrap_err()
                .to_string()
                .contains("the field `a b`")
        );
        assert!(check_id("a:b").is_err());
    }
}
