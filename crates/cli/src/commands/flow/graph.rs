//! `meshwork flow graph`.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use meshwork::flow::{self, graph};
use serde::Serialize;

use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::Out;

/// Draw the graph of a flow's file
#[derive(Debug, clap::Args)]
pub(crate) struct Graph {
    /// The file: YAML, or TOML if its name ends with .toml
    file: PathBuf,
    /// Format of the drawing
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// Formats of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// A tree for a terminal; large flows are folded
    Text,
    /// Mermaid's language
    Mermaid,
    /// SVG image
    Svg,
}

#[derive(Debug, Serialize)]
struct Drawing {
    format: Format,
    graph: String,
}

impl Graph {
    pub(crate) fn run(self, out: &mut Out) -> Result<Exit, CommandError> {
        let plan = flow::load(&self.file)?;
        let dag = super::named(&plan)?;
        let format = self.format;
        let graph = match format {
            Format::Text => graph::text(&dag, &plan.name, width()),
            Format::Mermaid => graph::mermaid(&dag),
            Format::Svg => graph::svg(&dag, &plan.name),
        };
        match out.is_json() {
            true => out.json(&Drawing { format, graph })?,
            false => out.raw(graph.as_bytes())?,
        }
        Ok(Exit::DONE)
    }
}

/// Returns the columns of the terminal, if there is one.
fn width() -> usize {
    let terminal = io::stdout().is_terminal();
    let size = terminal
        .then(console::Term::stdout)
        .and_then(|term| term.size_checked());
    size.map_or(graph::WIDTH, |(_, columns)| usize::from(columns).max(20))
}
