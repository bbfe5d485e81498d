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
/// Width to which that one is cut when nothing else can be spared.
const LEAST: usize = 8;
/// Columns that stay in every terminal: what has become of the thing, and when it goes on.
const KEPT: [&str; 11] = [
    "state", "status", "error", "result", "outcome", "reason", "next", RUNS_IN, "phase", "missing",
    "running",
];
/// Column of the times until jobs run.
const RUNS_IN: &str = "runs in";
/// Width of such a text before other columns are omitted: the longest state.
const STATE: usize = "acknowledged".len();
/// Width to which it is cut when nothing else can be spared.
const WORD: usize = 9;
/// Those that are times.
const TIMES: [&str; 1] = ["next"];
/// Least width of a time, in columns: up to its minute.
const MINUTE: usize = "2026-11-30T09:00".len();
/// Columns whose end is cut first: commands take the unique beginning of an id.
const IDS: [&str; 5] = ["id", "job", "worker", "last job", "public key"];
/// Least width of an id, in columns; more where ids begin alike.
const ID: usize = 9;
/// Columns whose middle is cut next: beginning and end tell names and files apart.
const NAMES: [&str; 7] = ["file", "name", "queue", "route", "list", "host", "schedule"];
/// Least width of a name, in columns.
const NAME: usize = 13;

/// Table builder.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    /// Names of columns that a narrow terminal does not need, the least needed first.
    optional: &'static [&'static str],
    /// Greatest width to which ids are kept apart by their beginnings; longer ones are cut in the middle.
    apart: usize,
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
            apart: usize::MAX,
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

    /// Fits the table into this width: omits optional columns, cuts the last one, ids and names, and omits others at last.
    fn narrow(&mut self, width: usize) {
        self.apart = ID.max(width / 3);
        for name in self.optional {
            let at = self.columns.iter().position(|column| column.name == *name);
            if let Some(at) = at.filter(|_| self.total(Self::with_whole_ids) > width) {
                self.omit(at);
            }
        }
        while self.total(Self::with_whole_states) > width {
            let others = 1..self.columns.len().saturating_sub(1);
            let is_kept = |at: &usize| KEPT.contains(&&*self.columns[*at].name);
            let Some(at) = others.rev().find(|at| !is_kept(at)) else {
                break;
            };
            self.omit(at);
        }
        let last = self.columns.len().saturating_sub(1);
        let mut over = self.total(Self::widest).saturating_sub(width);
        over -= self.cut(last, over, LAST);
        for of in [&IDS[..], &NAMES[..]] {
            for at in 0..self.columns.len() {
                if of.contains(&&*self.columns[at].name.to_lowercase()) {
                    over -= self.cut(at, over, self.with_cut_ids(at));
                }
            }
        }
        over -= self.cut(last, over, LEAST);
        for at in 0..last {
            over -= self.cut(at, over, self.with_cut_ids(at));
        }
    }

    /// Omits the times until jobs run if no row has one: few jobs wait for a time.
    fn omit_unused(&mut self) {
        let at = self.columns.iter().position(|it| it.name == RUNS_IN);
        if let Some(at) = at.filter(|at| self.rows.iter().all(|row| row[*at].is_empty())) {
            self.omit(at);
        }
    }

    fn omit(&mut self, at: usize) {
        self.columns.remove(at);
        for row in &mut self.rows {
            row.remove(at);
        }
    }

    /// Cuts a column by up to this many columns of the terminal, to no less than `least`. Returns by how many.
    fn cut(&mut self, at: usize, over: usize, least: usize) -> usize {
        let widest = self.widest(at);
        let width = widest.saturating_sub(over).max(least).min(widest);
        let name = self.columns[at].name.to_lowercase();
        let by_beginning = match IDS.contains(&&*name) {
            true => self.unique(at) <= width,
            false => at + 1 == self.columns.len() || KEPT.contains(&&*name),
        };
        let sign = if TIMES.contains(&&*name) { "" } else { "…" };
        for row in &mut self.rows {
            row[at] = match by_beginning {
                true => truncate_str(&row[at], width, sign).into_owned(),
                false => cut_middle(&row[at], width),
            };
        }
        widest - width
    }

    /// Returns the width of a column.
    fn widest(&self, at: usize) -> usize {
        let cells = self.rows.iter().map(|row| measure_text_width(&row[at]));
        let name = measure_text_width(&self.columns[at].name);
        cells.max().unwrap_or(0).max(name)
    }

    /// Returns the least width of a column whose ids and names are whole.
    fn with_whole_ids(&self, at: usize) -> usize {
        match at + 1 == self.columns.len() {
            true => self.widest(at).min(LAST),
            false => self.widest(at),
        }
    }

    /// Returns the least width of a column whose states are whole.
    fn with_whole_states(&self, at: usize) -> usize {
        let name = &*self.columns[at].name;
        let is_state = KEPT.contains(&name) && !TIMES.contains(&name);
        match is_state && at + 1 < self.columns.len() {
            true => self.widest(at).min(STATE),
            false => self.with_cut_ids(at),
        }
    }

    /// Returns the least width of a column.
    fn with_cut_ids(&self, at: usize) -> usize {
        let name = self.columns[at].name.to_lowercase();
        let least = match &*name {
            name if IDS.contains(&name) => self.unique(at).clamp(ID, self.apart),
            name if NAMES.contains(&name) => NAME,
            name if TIMES.contains(&name) => MINUTE,
            RUNS_IN => usize::MAX,
            name if KEPT.contains(&name) && at + 1 < self.columns.len() => WORD,
            _ if self.columns[at].number => usize::MAX,
            _ if at == 0 => NAME,
            _ if at + 1 == self.columns.len() => LEAST,
            _ => usize::MAX,
        };
        self.widest(at).min(least)
    }

    /// Returns the width in which the cut cells of a column differ, with the sign of the cut.
    fn unique(&self, at: usize) -> usize {
        let mut cells: Vec<&str> = self.rows.iter().map(|row| row[at].as_str()).collect();
        cells.sort_unstable();
        cells.dedup();
        let alike = |pair: &[&str]| {
            let same = pair[0].chars().zip(pair[1].chars());
            same.take_while(|(a, b)| a == b).count()
        };
        let most = cells.windows(2).map(alike).max().unwrap_or(0);
        most + 2
    }

    /// Returns the width of the table whose columns have these widths.
    fn total(&self, of: fn(&Self, usize) -> usize) -> usize {
        let widths = (0..self.columns.len()).map(|at| of(self, at));
        widths.sum::<usize>() + self.columns.len().saturating_sub(1) * usize::from(GAP)
    }

    /// Returns the table as text; with a width, no line is longer.
    pub(crate) fn drawn(mut self, width: Option<u16>) -> String {
        self.omit_unused();
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

/// Cuts the middle of a text.
fn cut_middle(text: &str, width: usize) -> String {
    if measure_text_width(text) <= width {
        return text.to_owned();
    }
    let start = truncate_str(text, width.saturating_sub(1).div_ceil(2), "").into_owned();
    let mut end: Vec<char> = Vec::new();
    let mut left = width.saturating_sub(1 + measure_text_width(&start));
    for c in text.chars().rev() {
        let of = measure_text_width(c.encode_utf8(&mut [0; 4]));
        if of > left {
            break;
        }
        left -= of;
        end.push(c);
    }
    format!("{start}…{}", end.iter().rev().collect::<String>())
}

#[cfg(test)]
mod tests;
