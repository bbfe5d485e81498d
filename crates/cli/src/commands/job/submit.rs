//! `meshwork job submit`.

use std::path::PathBuf;

use meshwork::JobRequest;
use meshwork::model::name::{Instance, JobId};
use meshwork::model::route::Fallback;
use serde::Serialize;

use crate::asked::Asked;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::script::Script;
use crate::{hands, input, value};

/// Submit a job and print its id
#[derive(Debug, clap::Args)]
pub(crate) struct Submit {
    /// The script's file; - is stdin
    script: PathBuf,
    #[command(flatten)]
    asked: Asked,
    /// Only the worker of this name; the job waits for it
    #[arg(long, value_name = "NAME", help_heading = "The job")]
    instance: Option<Instance>,
    /// Where it goes if that worker is not there: to its group, or to any of its type (group or type)
    #[arg(long, value_name = "WHERE", value_parser = value::fallback, requires = "instance",
          help_heading = "The job")]
    fallback: Option<Fallback>,
    /// A file with input for the script: INPUT in Rhai, stdin in Python. At most 16 MiB
    #[arg(long, value_name = "FILE", help_heading = "The job")]
    input: Option<PathBuf>,
    /// Who asks: CALLER_ID of the script
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        help_heading = "The job"
    )]
    caller: String,
    /// In which context: CONTEXT_ID of the script
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        help_heading = "The job"
    )]
    context: String,
    /// A log file on the worker's host, in a folder that the worker allows (its --log-dir); a relative path
    /// is relative to the first of these
    #[arg(long, value_name = "FILE", help_heading = "The job")]
    log_path: Option<String>,
    /// The job's id, a new one otherwise
    #[arg(long, help_heading = "The job")]
    id: Option<JobId>,
}

#[derive(Debug, Serialize)]
struct Submitted<'a> {
    id: &'a str,
}

impl Submit {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        let script = Script::read(&self.script, self.asked.script_type.clone())?;
        let request = self.request(&script).await?;
        let route = request
            .clone()
            .build()
            .map_err(meshwork::Error::from)?
            .route;
        let client = context.client().await?;
        hands::check_known(&client, &route).await?;
        let id = client.submit(request).await?;
        if context.out.is_json() {
            context.out.json(&Submitted { id: id.as_str() })?;
        } else {
            context.out.line(&id)?;
        }
        Ok(Exit::DONE)
    }

    async fn request(self, script: &Script) -> Result<JobRequest, Error> {
        let mut request = self.asked.checked(script).await?;
        request = request.caller(self.caller, self.context);
        if let Some(instance) = self.instance {
            request = request.instance(instance);
        }
        if let Some(path) = self.log_path {
            request = request.log_path(path);
        }
        if let Some(fallback) = self.fallback {
            request = request.fallback(fallback);
        }
        if let Some(id) = self.id {
            request = request.id(id);
        }
        if let Some(path) = self.input {
            request = request.input(input::read(&path)?);
        }
        Ok(request)
    }
}
