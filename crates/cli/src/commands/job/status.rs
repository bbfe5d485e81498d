//! `meshwork job status`.

use meshwork::model::name::JobId;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::record::{self, Record};
use crate::value;

/// Show where a job goes and how it goes
#[derive(Debug, clap::Args)]
pub(crate) struct StatusOf {
    /// The job's id
    #[arg(value_parser = value::job_id)]
    id: JobId,
}

impl StatusOf {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        let job = context.client().await?.status(&self.id).await?;
        if context.out.is_json() {
            context.out.json(&Record::from(&job))?;
        } else {
            record::describe(&job, &mut context.out)?;
        }
        Ok(Exit::DONE)
    }
}
