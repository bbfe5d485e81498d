//! Rows: one type for each noun, printed as objects of JSON or as a table.

use serde::Serialize;

use super::{Column, ListFormat, Out, OutError};

/// One item of a list. Its fields are the JSON.
pub(crate) trait Row: Serialize {
    /// Returns the columns of the table.
    fn columns() -> Vec<Column>;

    /// Returns the names of columns that a narrow terminal does not need, the least needed first.
    fn optional() -> &'static [&'static str] {
        &[]
    }

    /// Returns a cell for each column.
    fn cells(&self) -> Vec<String>;
}

impl Out {
    /// Prints one line of JSON for each row with `--json`, otherwise the format of the list, which is a table by default.
    pub(crate) fn rows<R: Row>(
        &mut self,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<(), OutError> {
        if self.is_json() || self.list == ListFormat::Json {
            return rows.into_iter().try_for_each(|row| self.json(&row));
        }
        if self.list != ListFormat::Table {
            let lines = self.list.lines(rows).unwrap_or_default();
            return lines.into_iter().try_for_each(|line| self.line(line));
        }
        match self.rows_of_part(rows) {
            Ok(()) => Ok(()),
            Err(table) => self.table(table),
        }
    }
}
