//! `meshwork flow schema`.

use meshwork::flow;
use serde_json::Value;

use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::Out;

/// Print the JSON Schema of a flow's file, for editors
#[derive(Debug, clap::Args)]
pub(crate) struct Schema {}

impl Schema {
    pub(crate) fn run(self, out: &mut Out) -> Result<Exit, CommandError> {
        match serde_json::from_str::<Value>(flow::SCHEMA) {
            Ok(schema) if out.is_json() => out.json(&schema)?,
            _ => out.raw(flow::SCHEMA.as_bytes())?,
        }
        Ok(Exit::DONE)
    }
}
