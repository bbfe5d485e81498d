//! Tables: aligned columns without borders. In a narrow terminal, columns are omitted, and the last one is cut.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, presets};

use console::{measure_text_width, truncate_str};

use super::text::one_line;

/// Greatest width of a cell, in columns; `--json` prints values in full.
const MAX_CELL: usize = 100;
/// Columns between two cells.
const GAP: u16 = 2;
/// Width to which the last column is cut before others are omitted, in columns: the first words of an error.
const LAST: usize = 22;
/// Name of a column that is not cut, since users copy it.
const WHOLE: &str = "id";

/// Table builder.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    /// Names of columns that a narrow terminal does not need, the least needed first.
    optional: &'static [&'static str],
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
            optional: &[],
        }
    }

    /// Names the columns that are omitted first in a narrow terminal.
    pub(crate) fn optional(mut self, names: &'static [&'static str]) -> Self {
        self.optional = names;
        self
    }

    /// Adds a row, one cell per column.
    pub(crate) fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cell = |cell: T| one_line(cell.as_ref(), MAX_CELL);
        self.rows.push(cells.into_iter().map(cell).collect());
    }

    /// Omits columns until the table fits into this width: the optional ones, then the others from the right. The first
    /// and the last one stay.
    fn narrow(&mut self, width: usize) {
        while self.width() > width && self.columns.len() > 2 {
            let mut optional = self.optional.iter();
            let named = |name: &&str| self.columns.iter().position(|column| column.name == *name);
            let at = optional.find_map(named).unwrap_or(self.columns.len() - 2);
            self.columns.remove(at);
            for row in &mut self.rows {
                row.remove(at);
            }
        }
    }

    /// Returns the least width of the table, with the last column cut.
    fn width(&self) -> usize {
        let last = self.columns.len().saturating_sub(1);
        let column = |(at, column): (usize, &Column)| {
            let cells = self.rows.iter().map(|row| measure_text_width(&row[at]));
            let widest = cells
                .max()
                .unwrap_or(0)
                .max(measure_text_width(&column.name));
            match at == last && column.name != WHOLE {
                true => widest.min(LAST),
                false => widest,
            }
        };
        let widths = self.columns.iter().enumerate().map(column);
        widths.sum::<usize>() + last * usize::from(GAP)
    }

    /// Returns the table as text; with a width, no line is longer.
    pub(crate) fn drawn(mut self, width: Option<u16>) -> String {
        if let Some(width) = width {
            self.narrow(width.into());
        }
        let mut table = comfy_table::Table::new();
        table
            .load_style(presets::NOTHING)
            .set_truncation_indicator("…");
        if let Some(width) = width {
            table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width);
        }
        let names = self.columns.iter();
        let mut header: Row = names
            .map(|column| one_line(&column.name, MAX_CELL))
            .collect::<Vec<_>>()
            .into();
        header.max_height(1);
        table.set_header(header);
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
        let text = table.trim_fmt();
        let Some(width) = width else {
            return text;
        };
        // The first column alone may be too wide.
        let lines = text
            .lines()
            .map(|line| truncate_str(line, width.into(), "…"));
        lines.collect::<Vec<_>>().join("\n")
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

    #[test]
    fn a_narrow_terminal_omits_what_it_can_spare() {
        let table = || {
            let names = ["id", "state", "type", "created", "attempts", "error"];
            let mut table = Table::new(Column::named(names, &["attempts"])).optional(&["created"]);
            let id = "0000aaaa-1111-bbbb-2222-cccc33334444";
            let error = "ValueError: the part 4 of the input cannot be read";
            table.row([
                id,
                "cancelled",
                "python",
                "2026-11-27T13:06:00.010Z",
                "10",
                error,
            ]);
            table
        };
        let drawn = table().drawn(Some(80));
        assert!(
            drawn.lines().all(|line| measure_text_width(line) <= 80),
            "{drawn}"
        );
        let head: Vec<_> = drawn.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(head, ["id", "state", "type", "error"], "{drawn}");
        assert!(
            drawn.contains("cccc33334444") && drawn.contains("ValueError: the part"),
            "{drawn}"
        );
        let drawn = table().drawn(Some(20));
        assert!(
            drawn.lines().all(|line| measure_text_width(line) <= 20),
            "{drawn}"
        );
        assert_eq!(drawn.lines().count(), 2, "{drawn}");
        assert!(table().drawn(None).contains("created"));
    }

    #[test]
    fn an_id_is_not_cut() {
        let names = ["type", "host", "id"];
        let mut table = Table::new(Column::named(names, &[]));
        let id = "worker.6169.ca545d4e98590fd6.and-more";
        table.row(["python", "a-host-with-a-long-name.example", id]);
        let drawn = table.drawn(Some(60));
        assert!(drawn.contains(id) && !drawn.contains("example"), "{drawn}");
    }
}
