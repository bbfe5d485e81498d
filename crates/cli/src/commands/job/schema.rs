//! `meshwork job schema`.

use meshwork_model::spec::JobSpec;

use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::Out;

/// Print the JSON Schema of a job, as a line of --jsonl and the API have it
#[derive(Debug, clap::Args)]
pub(crate) struct Schema {}

impl Schema {
    pub(crate) fn run(self, out: &mut Out) -> Result<Exit, CommandError> {
        let schema = JobSpec::schema();
        match out.is_json() {
            true => out.json(&schema)?,
            false => out.line(format_args!("{schema:#}"))?,
        }
        Ok(Exit::DONE)
    }
}
