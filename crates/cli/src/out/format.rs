//! `--format` of lists: a table, or values with commas or tabs between them.

use clap::builder::EnumValueParser;
use clap::{Arg, ArgMatches, Command, ValueEnum};

use super::Row;

/// Name of the option.
const OPTION: &str = "format";

/// Format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Table,
    Json,
    Csv,
    Tsv,
}

impl ListFormat {
    /// Returns a line for each row, after a line with the names of the columns. None for a table or JSON.
    pub(super) fn lines<R: Row>(self, rows: impl IntoIterator<Item = R>) -> Option<Vec<String>> {
        let line: fn(Vec<String>) -> String = match self {
            Self::Table | Self::Json => return None,
            Self::Csv => |cells| {
                cells
                    .iter()
                    .map(|cell| csv(cell))
                    .collect::<Vec<_>>()
                    .join(",")
            },
            Self::Tsv => |cells| {
                cells
                    .iter()
                    .map(|cell| tsv(cell))
                    .collect::<Vec<_>>()
                    .join("\t")
            },
        };
        let names = R::columns().into_iter().map(|column| match column.name() {
            "" => "settings".to_owned(),
            name => name.to_owned(),
        });
        let rows = rows.into_iter().map(|row| line(row.cells()));
        Some(std::iter::once(line(names.collect())).chain(rows).collect())
    }
}

/// Returns a cell of CSV (RFC 4180).
fn csv(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

/// Returns a cell of TSV, which cannot contain tabs and line ends: they are written `\t`, `\n` and `\r`.
fn tsv(cell: &str) -> String {
    let cell = cell.replace('\\', "\\\\").replace('\t', "\\t");
    cell.replace('\n', "\\n").replace('\r', "\\r")
}

/// Adds the option to all commands named `list`.
pub(crate) fn with_format(command: Command) -> Command {
    let command = command.mut_subcommands(with_format);
    if command.get_name() != "list" || command.has_subcommands() {
        return command;
    }
    let option = Arg::new(OPTION)
        .long(OPTION)
        .value_name("FORMAT")
        .value_parser(EnumValueParser::<ListFormat>::new())
        .conflicts_with("json")
        .help("Format of the list [default: table]");
    command.arg(option)
}

/// Returns the value of the option.
pub(crate) fn format_of(matches: &ArgMatches) -> Option<ListFormat> {
    if let Some((_, below)) = matches.subcommand() {
        return format_of(below);
    }
    let value = matches.try_get_one::<ListFormat>(OPTION).ok().flatten();
    value.copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_separators_are_quoted() {
        assert_eq!(csv("a b"), "a b");
        assert_eq!(csv("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
        assert_eq!(tsv("a\tb\\\n"), "a\\tb\\\\\\n");
    }
}
