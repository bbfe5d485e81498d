//! YAML 1.2 with the core schema, without the parts that surprise: tags, merge keys, duplicate keys, many aliases.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span};
use meshwork_model::flow::Position;
use meshwork_model::flow::limits::MAX_ALIASES;
use meshwork_model::number;

use super::tree::{Data, Key, MAX_DEPTH, SyntaxError, Tree, too_deep, too_long};

/// The most values of a file, those of aliases counted each time: 10,000 jobs of 40 values.
const MAX_VALUES: usize = 400_000;

/// Reads one YAML document.
pub(super) fn parse(text: &str) -> Result<Tree, SyntaxError> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let at = position(error.marker().line(), error.marker().col());
            SyntaxError::new(at, format!("this is no YAML: {}", readable(&error.info())))
        })?;
        reader.event(event, span)?;
    }
    reader.root.ok_or_else(|| SyntaxError {
        at: None,
        message: "the file is empty: give `flow` and `jobs`".to_owned(),
    })
}

/// The parser does not say that a tab is the reason where it is one.
fn readable(info: &str) -> String {
    match info.to_ascii_lowercase().contains("tab") {
        true => format!("{info}; indent with spaces"),
        false => info.to_owned(),
    }
}

fn position(line: usize, column: usize) -> Position {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Position {
        line: number(line),
        column: number(column).saturating_add(1),
    }
}

/// A value with the number of values and aliases in it.
#[derive(Debug, Clone)]
struct Counted {
    tree: Tree,
    values: usize,
    aliases: usize,
}

/// A list or map that is not complete yet.
struct Open {
    at: Position,
    anchor: usize,
    values: usize,
    aliases: usize,
    of: Partial,
}

enum Partial {
    List(Vec<Tree>),
    Map {
        entries: Vec<(Key, Tree)>,
        lines: HashMap<String, u32>,
        key: Option<Key>,
    },
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    anchors: HashMap<usize, Counted>,
    values: usize,
    aliases: usize,
    root: Option<Tree>,
    documents: usize,
}

impl Reader {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), SyntaxError> {
        let at = position(span.start.line(), span.start.col());
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let message = "a second document begins here: a file holds one flow";
                    return Err(SyntaxError::new(at, message));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                no_tag(at, tag.is_some())?;
                let plain = style == ScalarStyle::Plain;
                let data = match plain && !self.wants_key() {
                    true => core(&text, at)?,
                    false => Data::Text(text.into_owned()),
                };
                self.value(one(Tree { at, data }), anchor, plain)
            }
            Event::SequenceStart(_, anchor, tag) => {
                no_tag(at, tag.is_some())?;
                self.begin(at, anchor, Partial::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                no_tag(at, tag.is_some())?;
                let (entries, lines, key) = (Vec::new(), HashMap::new(), None);
                let map = Partial::Map {
                    entries,
                    lines,
                    key,
                };
                self.begin(at, anchor, map)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(at, anchor),
            _ => Ok(()),
        }
    }

    /// True if the next value is the key of a map.
    fn wants_key(&self) -> bool {
        let last = self.open.last();
        last.is_some_and(|open| matches!(open.of, Partial::Map { key: None, .. }))
    }

    fn begin(&mut self, at: Position, anchor: usize, of: Partial) -> Result<(), SyntaxError> {
        if self.wants_key() {
            return Err(SyntaxError::new(at, "a key is a text, no list or map"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(at));
        }
        self.count(at, 1, 0)?;
        let (values, aliases) = (1, 0);
        self.open.push(Open {
            at,
            anchor,
            values,
            aliases,
            of,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), SyntaxError> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let data = match open.of {
            Partial::List(items) => Data::List(items),
            Partial::Map { entries, .. } => Data::Map(entries),
        };
        let tree = Tree { at: open.at, data };
        let (values, aliases) = (open.values, open.aliases);
        self.put(
            Counted {
                tree,
                values,
                aliases,
            },
            open.anchor,
            false,
        )
    }

    fn alias(&mut self, at: Position, anchor: usize) -> Result<(), SyntaxError> {
        let Some(found) = self.anchors.get(&anchor) else {
            let message = "this alias is within the value that it names: write the value out";
            return Err(SyntaxError::new(at, message));
        };
        if found.aliases + self.aliases + 1 > MAX_ALIASES {
            let message = format!(
                "more than {MAX_ALIASES} aliases, those within anchors counted each time: write the values out"
            );
            return Err(SyntaxError::new(at, message));
        }
        let (values, aliases) = (found.values, found.aliases + 1);
        let is_text = matches!(found.tree.data, Data::Text(_));
        if self.wants_key() && !is_text {
            return Err(SyntaxError::new(at, "a key is a text: write it out"));
        }
        self.count(at, values, aliases)?;
        let tree = self.anchors[&anchor].tree.clone();
        self.put(
            Counted {
                tree,
                values,
                aliases,
            },
            0,
            false,
        )
    }

    fn value(&mut self, value: Counted, anchor: usize, plain: bool) -> Result<(), SyntaxError> {
        self.count(value.tree.at, 1, 0)?;
        self.put(value, anchor, plain)
    }

    fn count(&mut self, at: Position, values: usize, aliases: usize) -> Result<(), SyntaxError> {
        self.values += values;
        self.aliases += aliases;
        if self.values > MAX_VALUES {
            let message =
                format!("more than {MAX_VALUES} values, those of aliases counted each time");
            return Err(SyntaxError::new(at, message));
        }
        Ok(())
    }

    /// Puts a complete value where it belongs: as a key, into a list or map, or as the whole document.
    fn put(&mut self, value: Counted, anchor: usize, plain: bool) -> Result<(), SyntaxError> {
        if anchor != 0 {
            self.anchors.insert(anchor, value.clone());
        }
        let Counted {
            tree,
            values,
            aliases,
        } = value;
        let Some(open) = self.open.last_mut() else {
            self.root = Some(tree);
            return Ok(());
        };
        open.values += values;
        open.aliases += aliases;
        match &mut open.of {
            Partial::List(items) => items.push(tree),
            Partial::Map {
                entries,
                key,
                lines,
            } => match key.take() {
                Some(key) => entries.push((key, tree)),
                None => *key = Some(new_key(tree, plain, lines)?),
            },
        }
        Ok(())
    }
}

/// The key of a map, which occurs once in it.
fn new_key(tree: Tree, plain: bool, lines: &mut HashMap<String, u32>) -> Result<Key, SyntaxError> {
    let at = tree.at;
    let Data::Text(text) = tree.data else {
        return Err(SyntaxError::new(at, "a key is a text, no list or map"));
    };
    if plain && text == "<<" {
        let message = "merge keys (`<<`) are no part of YAML 1.2: write the options out";
        return Err(SyntaxError::new(at, message));
    }
    if let Some(line) = lines.insert(text.clone(), at.line) {
        let message = format!("the key `{text}` is in line {line} already: remove one of them");
        return Err(SyntaxError::new(at, message));
    }
    Ok(Key { at, text })
}

const fn one(tree: Tree) -> Counted {
    Counted {
        tree,
        values: 1,
        aliases: 0,
    }
}

fn no_tag(at: Position, tagged: bool) -> Result<(), SyntaxError> {
    match tagged {
        true => Err(SyntaxError::new(
            at,
            "tags (`!…`) are not allowed: leave it out, or quote the text",
        )),
        false => Ok(()),
    }
}

/// A plain scalar by the core schema of YAML 1.2: `no`, `on` and dates are text; `0o17`, `0x1F` and `1e3` are numbers.
fn core(text: &str, at: Position) -> Result<Data, SyntaxError> {
    let too_large = |_| {
        SyntaxError::new(
            at,
            format!("the number {text} is too large: quote it to make it a text"),
        )
    };
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "true" | "True" | "TRUE" => Data::Bool(true),
        "false" | "False" | "FALSE" => Data::Bool(false),
        // An integer has no sign of zero.
        "-0" => Data::Float(-0.0),
        _ if is_int(text) => Data::Int(text.parse().map_err(too_large)?),
        _ => match radix(text) {
            Some((digits, radix)) => {
                Data::Int(i64::from_str_radix(digits, radix).map_err(too_large)?)
            }
            None if is_float(text) => {
                let number: f64 = text.parse().unwrap_or(f64::INFINITY);
                match number.is_finite() {
                    true if number::is_exact(text) => Data::Float(number),
                    true => return Err(too_long(at, text)),
                    false => return Err(not_finite(at, text)),
                }
            }
            None if is_special(text) => return Err(not_finite(at, text)),
            None => Data::Text(text.to_owned()),
        },
    })
}

fn not_finite(at: Position, text: &str) -> SyntaxError {
    let message = format!("{text} is no number that JSON could hold: quote it to make it a text");
    SyntaxError::new(at, message)
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

fn is_int(text: &str) -> bool {
    digits(unsigned(text))
}

fn radix(text: &str) -> Option<(&str, u32)> {
    let (rest, radix) = match (text.strip_prefix("0o"), text.strip_prefix("0x")) {
        (Some(rest), _) => (rest, 8),
        (_, Some(rest)) => (rest, 16),
        _ => return None,
    };
    let all = !rest.is_empty() && rest.chars().all(|c| c.is_digit(radix));
    all.then_some((rest, radix))
}

/// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_float(text: &str) -> bool {
    let (number, exponent) = match unsigned(text).split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (unsigned(text), None),
    };
    let mantissa = match number.split_once('.') {
        Some(("", after)) => digits(after),
        Some((before, after)) => digits(before) && (after.is_empty() || digits(after)),
        None => digits(number),
    };
    mantissa && exponent.is_none_or(is_int)
}

fn is_special(text: &str) -> bool {
    matches!(unsigned(text), ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}
