//! JSON of a result as a tree whose parts can be cut. Numbers stay as they are written.

use std::fmt::{self, Write};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Deepest level that is read as a tree. What is below is a text: results of jobs have any depth.
const DEEPEST: usize = 64;
/// Longest name of a member. An object with a longer one is a text, since names of cut fields have it.
const NAME: usize = 200;
/// Members with values of jobs and of their users, which keep their nulls.
const OF_USERS: [&str; 7] = [
    "output", "outputs", "result", "results", "input", "inputs", "payload",
];

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tree {
    Text(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
    /// A number, a boolean, null, or a text that is no Unicode, as it is written.
    Plain(String),
}

/// Members of an object in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(All).map(Self)
    }
}

impl Tree {
    /// Reads the result of a method, without the members that are null.
    pub(super) fn read(json: &str) -> Self {
        Self::read_at(json, 0, true)
    }

    fn read_at(json: &str, depth: usize, drops_nulls: bool) -> Self {
        let plain = || Self::Plain(json.to_owned());
        match json.as_bytes().first() {
            Some(b'{' | b'[') if depth >= DEEPEST => Self::Text(json.to_owned()),
            Some(b'{') => {
                let Ok(Members(members)) = serde_json::from_str(json) else {
                    return plain();
                };
                if members.iter().any(|(name, _)| name.len() > NAME) {
                    return Self::Text(json.to_owned());
                }
                let members = members
                    .into_iter()
                    .filter(|(_, value)| !drops_nulls || value.get() != "null");
                let read = |(name, value): (String, &RawValue)| {
                    let drops_nulls = drops_nulls && !OF_USERS.contains(&name.as_str());
                    let value = Self::read_at(value.get(), depth + 1, drops_nulls);
                    (name, value)
                };
                Self::Object(members.map(read).collect())
            }
            Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(json) {
                Ok(items) => {
                    let read = |item: &RawValue| Self::read_at(item.get(), depth + 1, drops_nulls);
                    Self::List(items.into_iter().map(read).collect())
                }
                Err(_) => plain(),
            },
            Some(b'"') => serde_json::from_str(json).map_or_else(|_| plain(), Self::Text),
            _ => plain(),
        }
    }

    /// Bytes of a text, items of a list, or members of an object: what a position counts.
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Text(text) | Self::Plain(text) => text.len(),
            Self::List(items) => items.len(),
            Self::Object(members) => members.len(),
        }
    }

    /// Returns the value that a JSON pointer names.
    pub(super) fn at(&self, pointer: &str) -> Option<&Self> {
        let mut names = pointer.split('/');
        if names.next() != Some("") {
            return None;
        }
        names.try_fold(self, |tree, name| match tree {
            Self::List(items) => items.get(name.parse::<usize>().ok()?),
            Self::Object(members) => {
                let name = name.replace("~1", "/").replace("~0", "~");
                members.iter().find(|(it, _)| *it == name).map(|it| &it.1)
            }
            Self::Text(_) | Self::Plain(_) => None,
        })
    }

    /// Returns the value after a position; `None` if it has ended before. A position within a character is that of its
    /// beginning.
    pub(super) fn after(&self, position: usize) -> Option<Self> {
        if position > self.length() {
            return None;
        }
        Some(match self {
            Self::Text(text) => Self::Text(text[text.floor_char_boundary(position)..].to_owned()),
            Self::Plain(text) => Self::Plain(text.clone()),
            Self::List(items) => Self::List(items[position..].to_vec()),
            Self::Object(members) => Self::Object(members[position..].to_vec()),
        })
    }

    /// Length as JSON in bytes.
    pub(super) fn size(&self) -> usize {
        let parts = |sizes: usize, count: usize| 2 + sizes + count.saturating_sub(1);
        match self {
            Self::Plain(text) => text.len(),
            Self::Text(text) => size_of_text(text),
            Self::List(items) => parts(items.iter().map(Self::size).sum(), items.len()),
            Self::Object(members) => {
                let member = |(name, value): &(String, Self)| size_of_text(name) + 1 + value.size();
                parts(members.iter().map(member).sum(), members.len())
            }
        }
    }
}

/// Length of a text as JSON in bytes.
fn size_of_text(text: &str) -> usize {
    2 + text.chars().map(size_of_char).sum::<usize>()
}

/// Length of a character in a text of JSON.
pub(super) fn size_of_char(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => char.len_utf8(),
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(text) => f.write_str(text),
            Self::Text(text) => write_text(f, text),
            Self::List(items) => {
                f.write_char('[')?;
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        f.write_char(',')?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_char(']')
            }
            Self::Object(members) => {
                f.write_char('{')?;
                for (i, (name, value)) in members.iter().enumerate() {
                    if i > 0 {
                        f.write_char(',')?;
                    }
                    write_text(f, name)?;
                    write!(f, ":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?)
}
