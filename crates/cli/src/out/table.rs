//! Tables: aligned columns without borders; the last column is cut to the width.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, presets};

use super::text::one_line;

/// Greatest width of a cell, in columns; `--json` prints values in full.
const MAX_CELL: usize = 100;
/// Columns between two cells.
const GAP: u16 = 2;

/// Table builder.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// Name of a column, and `true` for numbers.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    name: String,
    number: bool,
}

impl Column {
    pub(crate) fn text(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            number: false,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn number(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            number: true,
        }
    }

    /// Returns columns of these names; those in `numbers` are numeric.
    pub(crate) fn named<const N: usize>(names: [&str; N], numbers: &[&str]) -> Vec<Self> {
        let column = |name| match numbers.contains(&name) {
            true => Self::number(name),
            false => Self::text(name),
        };
        names.map(column).into()
    }
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, one cell per column.
    pub(crate) fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cell = |cell: T| one_line(cell.as_ref(), MAX_CELL);
        self.rows.push(cells.into_iter().map(cell).collect());
    }

    /// Returns the table as text; with a width, no line is longer.
    pub(crate) fn drawn(self, width: Option<u16>) -> String {
        let mut table = comfy_table::Table::new();
        table
            .load_style(presets::NOTHING)
            .set_truncation_indicator("…");
        if let Some(width) = width {
            table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width);
        }
        table.set_header(
            self.columns
                .iter()
                .map(|column| one_line(&column.name, MAX_CELL)),
        );
        for cells in self.rows {
            let mut row = Row::from(cells);
            row.max_height(1);
            table.add_row(row);
        }
        let last = self.columns.len().saturating_sub(1);
        for (at, column) in self.columns.iter().enumerate() {
            let Some(drawn) = table.column_mut(at) else {
                continue;
            };
            drawn.set_padding((0, if at == last { 0 } else { GAP }));
            if column.number {
                drawn.set_cell_alignment(CellAlignment::Right);
            }
            if at != last {
                drawn.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        table.trim_fmt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new([
            Column::text("FILE"),
            Column::number("N"),
            Column::text("WORD"),
        ]);
        table.row(["a.txt", "7", "x"]);
        table.row(["long.txt", "1000", "two\nlines"]);
        assert_eq!(
            table.drawn(None),
            "FILE         N  WORD\na.txt        7  x\nlong.txt  1000  two lines"
        );
    }

    #[test]
    fn the_last_column_is_cut_to_the_width() {
        let mut table = Table::new([Column::text("FILE"), Column::text("OUTPUT")]);
        table.row(["a.txt", "one two three four five six"]);
        let drawn = table.drawn(Some(20));
        assert!(
            drawn.lines().all(|line| line.chars().count() <= 20),
            "{drawn}"
        );
        assert_eq!(drawn.lines().count(), 2, "{drawn}");
        assert!(drawn.contains('…'), "{drawn}");
    }
}
