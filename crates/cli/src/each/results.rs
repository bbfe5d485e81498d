//! Results of a series: one line of JSON each, as they come, or one table at the end.

use std::path::Path;

use indexmap::IndexMap;
use meshwork::view::JobView;
use meshwork_model::job::Job;
use meshwork_model::state::Status;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::CommandError;
use crate::out::{Column, Out, Table, note, one_line};
use crate::single::tell_failure;

/// Longest part of a result in a cell of the table, in columns.
const MAX_CELL: usize = 200;
/// Greatest number of fields of an object that is shown as a row.
const MAX_FIELDS: usize = 20;
/// Number of failures that are printed in full; the table or the JSON has all of them.
const MAX_LISTED: usize = 10;

/// Writer of results to stdout.
pub(crate) enum Results {
    Lines,
    Rows { rows: Vec<Row>, failed: usize },
}

/// Row of one input.
pub(crate) struct Row {
    file: String,
    /// The result, or the reason of its absence.
    result: Result<Shown, String>,
}

/// Result cut to the width of a cell.
struct Shown {
    whole: String,
    /// Fields of an object of scalars: text by name, and `true` for numbers.
    fields: Option<IndexMap<String, (String, bool)>>,
}

/// One line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    #[serde(flatten)]
    record: JobView<'a>,
}

impl Results {
    pub(super) fn new(json: bool) -> Self {
        if json {
            Self::Lines
        } else {
            Self::Rows {
                rows: Vec::new(),
                failed: 0,
            }
        }
    }

    /// Adds the ended job of the next input.
    pub(super) fn take(
        &mut self,
        path: &Path,
        job: &Job,
        out: &mut Out,
    ) -> Result<(), CommandError> {
        let file = path.to_string_lossy();
        match self {
            Self::Lines => out.json(&Line {
                file: &file,
                record: JobView::new(job, job.state(false), out.context),
            })?,
            Self::Rows { rows, failed } => {
                let result = if job.status() == Some(Status::Finished) {
                    Ok(Shown::new(job.output.as_deref().unwrap_or_default()))
                } else {
                    *failed += 1;
                    if *failed <= MAX_LISTED {
                        tell_failure(&file, &JobView::new(job, job.state(false), out.context));
                    }
                    Err(one_line(job.error.as_deref().unwrap_or("error"), MAX_CELL))
                };
                rows.push(Row {
                    file: file.into_owned(),
                    result,
                });
            }
        }
        Ok(())
    }

    /// Prints the table.
    pub(super) fn conclude(self, out: &mut Out) -> Result<(), CommandError> {
        let Self::Rows { rows, failed } = self else {
            return Ok(());
        };
        if failed > MAX_LISTED {
            note(format_args!("… and {} more", failed - MAX_LISTED));
        }
        let table = match fields_of(&rows) {
            Some(names) => by_fields(&names, &rows, failed > 0),
            None => plain(&rows, failed > 0),
        };
        Ok(out.table(table)?)
    }
}

impl Shown {
    fn new(output: &[u8]) -> Self {
        let fields = serde_json::from_slice::<IndexMap<String, &RawValue>>(output).ok();
        let fields = fields.filter(|fields| (1..=MAX_FIELDS).contains(&fields.len()));
        let scalars = |fields: IndexMap<String, &RawValue>| {
            fields
                .into_iter()
                .map(|(name, value)| Some((name, scalar(value.get())?)))
                .collect()
        };
        Self {
            whole: one_line(&String::from_utf8_lossy(output), MAX_CELL),
            fields: fields.and_then(scalars),
        }
    }
}

/// Returns a JSON scalar as a cell, and `true` for a number.
fn scalar(json: &str) -> Option<(String, bool)> {
    match json.bytes().next()? {
        b'{' | b'[' => None,
        b'"' => Some((
            one_line(&serde_json::from_str::<String>(json).ok()?, MAX_CELL),
            false,
        )),
        first => Some((json.to_owned(), first == b'-' || first.is_ascii_digit())),
    }
}

/// Returns the columns, with `true` for numeric ones, if all results are objects with the same fields.
fn fields_of(rows: &[Row]) -> Option<Vec<(String, bool)>> {
    let finished = || rows.iter().filter_map(|row| row.result.as_ref().ok());
    let first = finished().next()?.fields.as_ref()?;
    let same = finished().all(|shown| {
        let fields = shown.fields.as_ref();
        fields.is_some_and(|f| {
            f.len() == first.len() && f.keys().all(|name| first.contains_key(name))
        })
    });
    let numbers = |name: &String| {
        finished().all(|shown| shown.fields.as_ref().is_some_and(|fields| fields[name].1))
    };
    same.then(|| {
        first
            .keys()
            .map(|name| (name.clone(), numbers(name)))
            .collect()
    })
}

fn by_fields(names: &[(String, bool)], rows: &[Row], failures: bool) -> Table {
    let column = |(name, number): &(String, bool)| {
        if *number {
            Column::number(name)
        } else {
            Column::text(name)
        }
    };
    let error = failures.then(|| Column::text("error"));
    let mut table = Table::new(
        std::iter::once(Column::text("file"))
            .chain(names.iter().map(column))
            .chain(error),
    );
    for row in rows {
        let mut cells = vec![row.file.as_str()];
        match &row.result {
            Ok(Shown {
                fields: Some(fields),
                ..
            }) => {
                cells.extend(names.iter().map(|(name, _)| fields[name].0.as_str()));
                cells.extend(failures.then_some(""));
            }
            Ok(Shown { whole, .. }) => cells.push(whole),
            Err(error) => {
                cells.extend(names.iter().map(|_| ""));
                cells.push(error);
            }
        }
        table.row(cells);
    }
    table
}

fn plain(rows: &[Row], failures: bool) -> Table {
    let mut columns = vec![Column::text("file"), Column::text("output")];
    if failures {
        columns.insert(1, Column::text("status"));
    }
    let mut table = Table::new(columns);
    for row in rows {
        let (status, text) = match &row.result {
            Ok(shown) => ("finished", shown.whole.as_str()),
            Err(error) => ("error", error.as_str()),
        };
        let mut cells = vec![row.file.as_str(), text];
        if failures {
            cells.insert(1, status);
        }
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(file: &str, result: Result<&str, &str>) -> Row {
        Row {
            file: file.to_owned(),
            result: result
                .map(|output| Shown::new(output.as_bytes()))
                .map_err(str::to_owned),
        }
    }

    fn drawn(rows: &[Row]) -> String {
        let failures = rows.iter().any(|row| row.result.is_err());
        match fields_of(rows) {
            Some(names) => by_fields(&names, rows, failures),
            None => plain(rows, failures),
        }
        .drawn(None)
    }

    #[test]
    fn objects_with_the_same_scalars_are_columns() {
        let rows = [
            row("a", Ok(r#"{"words": 12, "longest": "x"}"#)),
            row("b", Ok(r#"{"longest": "yy", "words": 3}"#)),
        ];
        assert_eq!(
            drawn(&rows),
            "file  words  longest\na        12  x\nb         3  yy"
        );
    }

    #[test]
    fn a_failure_has_a_column_of_its_own() {
        let rows = [row("a", Ok(r#"{"n": 1}"#)), row("b", Err("timeout"))];
        assert_eq!(drawn(&rows), "file  n  error\na     1\nb        timeout");
    }

    #[test]
    fn all_else_is_text() {
        let rows = [row("a", Ok(r#"{"n": [1]}"#)), row("b", Ok("two\nlines"))];
        assert_eq!(
            drawn(&rows),
            "file  output\na     {\"n\": [1]}\nb     two lines"
        );
        let rows = [row("a", Ok("1")), row("b", Err("no"))];
        assert_eq!(
            drawn(&rows),
            "file  status    output\na     finished  1\nb     error     no"
        );
    }
}
