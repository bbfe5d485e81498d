//! `meshwork job logs`.

use meshwork::model::name::JobId;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::logs::{self, Which};
use crate::value;

/// Print what a job wrote to stdout and stderr in its last run: the last 64 KiB of each
#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    /// The job's id
    #[arg(value_parser = value::job_id)]
    id: JobId,
    /// Only what it wrote to stdout
    #[arg(long, conflicts_with = "stderr")]
    stdout: bool,
    /// Only what it wrote to stderr
    #[arg(long)]
    stderr: bool,
}

impl Logs {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        let which = match (self.stdout, self.stderr) {
            (true, _) => Which::Stdout,
            (_, true) => Which::Stderr,
            _ => Which::All,
        };
        let job = context.client().await?.status(&self.id).await?;
        logs::print(&job, which, &mut context.out)?;
        Ok(Exit::DONE)
    }
}
