//! TOML, as the same values.

use meshwork_model::flow::Position;
use meshwork_model::number;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::tree::{Data, Key, MAX_DEPTH, SyntaxError, Tree, too_deep, too_long};

/// Reads a TOML document.
pub(super) fn parse(text: &str) -> Result<Tree, SyntaxError> {
    let lines = Lines::new(text);
    let table = DeTable::parse(text).map_err(|error| SyntaxError {
        at: error.span().map(|span| lines.position(span.start)),
        message: format!("this is no TOML: {}", error.message().replace('\n', "; ")),
    })?;
    let at = Position { line: 1, column: 1 };
    map(table.get_ref(), at, 0, &lines)
}

/// The places of all lines.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, c)| *c == b'\n');
        let starts = std::iter::once(0)
            .chain(ends.map(|(end, _)| end + 1))
            .collect();
        Self { text, starts }
    }

    fn position(&self, byte: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= byte);
        let start = self.starts[line - 1];
        let column = self
            .text
            .get(start..byte)
            .map_or(0, |text| text.chars().count());
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Position {
            line: number(line),
            column: number(column + 1),
        }
    }
}

fn map(
    table: &DeTable<'_>,
    at: Position,
    depth: usize,
    lines: &Lines<'_>,
) -> Result<Tree, SyntaxError> {
    if depth >= MAX_DEPTH {
        return Err(too_deep(at));
    }
    // The reader sorts the keys; the order of a file is that of their places.
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries.into_iter().map(|(key, value)| {
        let at = lines.position(key.span().start);
        let text = key.get_ref().to_string();
        Ok((Key { at, text }, tree(value, depth + 1, lines)?))
    });
    let data = Data::Map(entries.collect::<Result<_, _>>()?);
    Ok(Tree { at, data })
}

fn tree(
    value: &Spanned<DeValue<'_>>,
    depth: usize,
    lines: &Lines<'_>,
) -> Result<Tree, SyntaxError> {
    let at = lines.position(value.span().start);
    let too_large = |number: &dyn std::fmt::Display| {
        let message = format!("the number {number} is too large: quote it to make it a text");
        SyntaxError::new(at, message)
    };
    let data = match value.get_ref() {
        DeValue::String(text) => Data::Text(text.to_string()),
        DeValue::Integer(number) => {
            let read = i64::from_str_radix(number.as_str(), number.radix());
            Data::Int(read.map_err(|_| too_large(number))?)
        }
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(read) if read.is_finite() && number::is_exact(number.as_str()) => Data::Float(read),
            Ok(read) if read.is_finite() => return Err(too_long(at, number.as_str())),
            _ => return Err(too_large(number)),
        },
        DeValue::Boolean(truth) => Data::Bool(*truth),
        DeValue::Datetime(time) => Data::Text(time.to_string()),
        DeValue::Array(items) => {
            if depth >= MAX_DEPTH {
                return Err(too_deep(at));
            }
            let items = items.iter().map(|item| tree(item, depth + 1, lines));
            Data::List(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => return map(table, at, depth, lines),
    };
    Ok(Tree { at, data })
}
