//! `meshwork flow dag`.

use std::path::PathBuf;

use meshwork::flow;

use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::Out;

/// Print the graph of a flow's file: jobs, edges and levels. With --json in the format of `flow.dag`
#[derive(Debug, clap::Args)]
pub(crate) struct DagCommand {
    /// The file: YAML, or TOML if its name ends with .toml
    file: PathBuf,
}

impl DagCommand {
    pub(crate) fn run(self, out: &mut Out) -> Result<Exit, CommandError> {
        let plan = flow::load(&self.file)?;
        let dag = super::named(&plan)?;
        if out.is_json() {
            out.json(&dag)?;
            return Ok(Exit::DONE);
        }
        for (level, jobs) in dag.levels.iter().enumerate() {
            out.line(format_args!("{}: {}", level + 1, jobs.join(" ")))?;
        }
        for node in &dag.nodes {
            if let Some(undone) = &node.compensates {
                out.line(format_args!("undo {undone}: {}", node.id))?;
            }
        }
        Ok(Exit::DONE)
    }
}
