//! Output of a command that runs in several parts of a queue: lines, rows and JSON name the part, and the rows of all parts
//! are one table.

use meshwork::context::ContextId;
use serde::Serialize;
use serde_json::Value;

use super::{Column, Out, OutError, Row, Table};

/// Parts of the command so far.
#[derive(Default)]
pub(super) struct Parts {
    /// The part that the command runs in.
    now: Option<ContextId>,
    /// Rows of a table; none before the first table.
    table: Option<Table>,
}

impl Parts {
    /// Adds the part to an object of JSON, as its context.
    pub(super) fn named(&self, value: &impl Serialize) -> Option<Value> {
        let part = self.now?;
        let mut value = serde_json::to_value(value).ok()?;
        value
            .as_object_mut()?
            .insert("context".to_owned(), part.get().into());
        Some(value)
    }

    /// Returns the beginning of each line.
    pub(super) fn prefix(&self) -> Option<String> {
        Some(format!("part {}: ", self.now?))
    }
}

impl Out {
    /// Begins the output of a part.
    pub(crate) fn begin_part(&mut self, part: ContextId) {
        self.parts.now = Some(part);
    }

    /// True while a command runs in a part.
    pub(crate) fn is_in_part(&self) -> bool {
        self.parts.now.is_some()
    }

    /// Prints the table of all parts.
    pub(crate) fn end_parts(&mut self) -> Result<(), OutError> {
        self.parts.now = None;
        match self.parts.table.take() {
            Some(table) => self.table(table),
            None => Ok(()),
        }
    }

    /// Adds rows to the table of all parts. Returns them if the command runs in no part.
    pub(super) fn rows_of_part<R: Row>(
        &mut self,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<(), Table> {
        let cells = rows.into_iter().map(|row| row.cells());
        let Some(part) = self.parts.now else {
            let mut table = Table::new(R::columns()).optional(R::optional());
            cells.for_each(|cells| table.row(cells));
            return Err(table);
        };
        let table = self.parts.table.get_or_insert_with(|| {
            let part = [Column::number("part")];
            Table::new(part.into_iter().chain(R::columns())).optional(R::optional())
        });
        cells.for_each(|cells| table.row([part.to_string()].into_iter().chain(cells)));
        Ok(())
    }
}
