//! `meshwork flow graph`.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use meshwork::flow::{self, graph};
use meshwork::view::FlowDag;
use meshwork_model::flow::Dag;
use serde::Serialize;
use serde_json::json;

use super::live::read;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;

/// Draw the graph of a flow: of its file, or of a submitted flow with the state of its jobs
#[derive(Debug, clap::Args)]
pub(crate) struct Graph {
    /// The file: YAML, or TOML if its name ends with .toml; or the number of a submitted flow
    #[arg(value_name = "FILE|ID")]
    file: PathBuf,
    /// Format of the drawing
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    #[command(flatten)]
    place: ContextArgs,
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
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let (dag, name) = self.dag(context).await?;
        let format = self.format;
        let graph = match format {
            Format::Text => graph::text(&dag, &name, width()),
            Format::Mermaid => graph::mermaid(&dag),
            Format::Svg => graph::svg(&dag, &name),
        };
        let out = &mut context.out;
        match out.is_json() {
            true => out.json(&Drawing { format, graph })?,
            false => out.raw(graph.as_bytes())?,
        }
        Ok(Exit::DONE)
    }

    /// Returns the graph and the name of the flow. A file whose name is a number counts as a file.
    async fn dag(&self, context: &mut App) -> Result<(Dag<String>, String), CommandError> {
        let number = self.file.to_str().and_then(|text| text.parse().ok());
        if let Some(id) = number.filter(|_| !self.file.exists()) {
            let id: u32 = id;
            let params = self.place.params(context, json!({"id": id})).await?;
            let FlowDag(dag) = context.call("flow.dag", &params).await?;
            let view = read(context, &params).await?;
            return Ok((dag, view.name));
        }
        let plan = flow::load(&self.file)?;
        Ok((super::named(&plan)?, plan.name.clone()))
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
