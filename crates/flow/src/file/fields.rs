//! The options of a map: each is taken once and of the right type, and what nobody takes is a fault.

use meshwork_model::flow::{Position, Text};
use meshwork_model::time;

use super::tree::{Data, Key, Tree};
use super::words;

/// Faults of one file, while they are collected.
#[derive(Debug, Default)]
pub(super) struct Faults(pub(super) Vec<(Position, String)>);

impl Faults {
    pub(super) fn add(&mut self, at: Position, message: impl Into<String>) {
        self.0.push((at, message.into()));
    }
}

/// The options of one map.
pub(super) struct Fields<'a> {
    /// The map, as errors call it: `the flow`, `` job `fetch` ``.
    pub(super) of: String,
    pub(super) at: Position,
    entries: Vec<(Key, Tree)>,
    known: &'static [&'static str],
    faults: &'a mut Faults,
}

impl<'a> Fields<'a> {
    /// The options of a map. None, and a fault: the value is no map.
    pub(super) fn new(
        of: impl Into<String>,
        tree: Tree,
        known: &'static [&'static str],
        faults: &'a mut Faults,
    ) -> Option<Self> {
        let of = of.into();
        match tree.data {
            Data::Map(entries) => Some(Self {
                of,
                at: tree.at,
                entries,
                known,
                faults,
            }),
            _ => {
                let message = format!("{of} has to be a map of options, not {}", tree.shown());
                faults.add(tree.at, message);
                None
            }
        }
    }

    pub(super) fn add(&mut self, at: Position, message: impl Into<String>) {
        let message = format!("{}: {}", self.of, message.into());
        self.faults.add(at, message);
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(entry, _)| entry.text == key)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Tree> {
        debug_assert!(
            self.known.contains(&key),
            "{key} is not among the known options"
        );
        let place = self
            .entries
            .iter()
            .position(|(entry, _)| entry.text == key)?;
        Some(self.entries.remove(place).1)
    }

    /// The options of a map within this one.
    pub(super) fn nested(
        &mut self,
        key: &str,
        tree: Tree,
        known: &'static [&'static str],
    ) -> Option<Fields<'_>> {
        let of = format!("{}: `{key}`", self.of);
        Fields::new(of, tree, known, self.faults)
    }

    /// A fault for each option that nobody took.
    pub(super) fn finish(mut self) {
        for (key, _) in std::mem::take(&mut self.entries) {
            let known = self.known.join(", ");
            let meant = words::meant(&key.text, self.known)
                .map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
            let message = format!(
                "there is no option `{}`; there are: {known}{meant}",
                key.text
            );
            self.add(key.at, message);
        }
    }

    fn wrong(&mut self, key: &str, tree: &Tree, wanted: &str) {
        let message = format!("`{key}` has to be {wanted}, not {}", tree.shown());
        self.add(tree.at, message);
    }

    pub(super) fn text(&mut self, key: &str) -> Option<Text> {
        let tree = self.take(key)?;
        match tree.data {
            Data::Text(text) => Some(Text {
                text,
                at: Some(tree.at),
            }),
            _ => {
                self.wrong(key, &tree, "a text (quote it)");
                None
            }
        }
    }

    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        let tree = self.take(key)?;
        match tree.data {
            Data::Bool(truth) => Some(truth),
            _ => {
                self.wrong(key, &tree, "true or false");
                None
            }
        }
    }

    pub(super) fn number(&mut self, key: &str) -> Option<u32> {
        let tree = self.take(key)?;
        let number = match tree.data {
            Data::Int(number) => u32::try_from(number).ok(),
            _ => None,
        };
        if number.is_none() {
            self.wrong(key, &tree, "a whole number from 0");
        }
        number
    }

    /// A span in milliseconds.
    pub(super) fn span(&mut self, key: &str) -> Option<u64> {
        let tree = self.take(key)?;
        let ms = match &tree.data {
            Data::Text(text) => time::parse_span(text),
            Data::Int(seconds) => u64::try_from(*seconds)
                .ok()
                .and_then(|s| s.checked_mul(1000)),
            _ => None,
        };
        if ms.is_none() {
            self.wrong(key, &tree, "a time as 500ms, 90s, 10m, 1h30m or 7d");
        }
        ms
    }

    /// An expression. A bool, a number or a list stands for itself.
    pub(super) fn expression(&mut self, key: &str) -> Option<Text> {
        let tree = self.take(key)?;
        let at = Some(tree.at);
        match &tree.data {
            Data::Text(text) if text.trim_start().starts_with("${{") => {
                let message = format!(
                    "`{key}` is an expression already, and `${{{{ }}}}` is no syntax here: leave out `$` and the braces"
                );
                self.add(tree.at, message);
                None
            }
            Data::Text(text) if text.trim_start().starts_with("{{") => {
                let message = format!("`{key}` is an expression already: leave out the braces");
                self.add(tree.at, message);
                None
            }
            Data::Text(text) => Some(Text {
                text: text.clone(),
                at,
            }),
            Data::Null | Data::Map(_) => {
                self.wrong(key, &tree, "an expression");
                None
            }
            _ => {
                let mut text = String::new();
                literal(&tree, &mut text);
                Some(Text { text, at })
            }
        }
    }

    /// The entries of a map of names.
    pub(super) fn map(&mut self, key: &str) -> Vec<(Key, Tree)> {
        let Some(tree) = self.take(key) else {
            return Vec::new();
        };
        match tree.data {
            Data::Map(entries) => entries,
            _ => {
                self.wrong(key, &tree, "a map of names and values");
                Vec::new()
            }
        }
    }

    /// The items of a list.
    pub(super) fn list(&mut self, key: &str) -> Vec<Tree> {
        let Some(tree) = self.take(key) else {
            return Vec::new();
        };
        match tree.data {
            Data::List(items) => items,
            // One name stands for a list of one, as in GitHub Actions.
            Data::Text(_) => vec![tree],
            _ => {
                self.wrong(key, &tree, "a list");
                Vec::new()
            }
        }
    }

    /// Templates by name. Each value is a text.
    pub(super) fn texts(&mut self, key: &str) -> Vec<(String, Text)> {
        let mut texts = Vec::new();
        for (name, tree) in self.map(key) {
            match &tree.data {
                Data::Text(text) => {
                    let text = Text {
                        text: text.clone(),
                        at: Some(tree.at),
                    };
                    texts.push((name.text, text));
                }
                Data::List(_) | Data::Map(_) | Data::Null => {
                    let name = format!("{key}.{}", name.text);
                    self.wrong(&name, &tree, "a text");
                }
                _ => {
                    let message = format!(
                        "`{key}.{}` is {}, but a value of `{key}` is a text: quote it",
                        name.text,
                        tree.shown()
                    );
                    self.add(tree.at, message);
                }
            }
        }
        texts
    }
}

/// A value as an expression of Rhai.
pub(super) fn literal(tree: &Tree, out: &mut String) {
    match &tree.data {
        Data::Null => out.push_str("()"),
        Data::Bool(truth) => out.push_str(&truth.to_string()),
        Data::Int(number) => out.push_str(&number.to_string()),
        Data::Float(number) => out.push_str(&format!("{number:?}")),
        Data::Text(text) => quoted(text, out),
        Data::List(items) => {
            out.push('[');
            for item in items {
                literal(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Data::Map(entries) => {
            out.push_str("#{");
            for (key, value) in entries {
                quoted(&key.text, out);
                out.push(':');
                literal(value, out);
                out.push(',');
            }
            out.push('}');
        }
    }
}

pub(super) fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ => out.push(c),
        }
    }
    out.push('"');
}
