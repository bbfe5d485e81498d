//! What is asked for besides the script: the options that `run` and `job submit` share.

use std::time::Duration;

use meshwork::JobRequest;
use meshwork::model::job::limits::MAX_RETRIES;
use meshwork::model::name::{Group, ScriptType};

use crate::error::Error;
use crate::script::Script;
use crate::value;

/// Options of a job.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "The job")]
pub(crate) struct Asked {
    /// What runs the script; told by its extension otherwise (.rhai is osis, .py is python, .v is v)
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) script_type: Option<ScriptType>,
    /// Only workers of this group
    #[arg(long)]
    pub(crate) group: Option<Group>,
    /// An environment variable of the script; may be given several times. Not for data: at most 64 KiB
    #[arg(long, value_name = "NAME=VALUE", value_parser = value::env)]
    pub(crate) env: Vec<(String, String)>,
    /// How long one run may take, in whole seconds, up to 7 days [default: 1800]
    #[arg(long, value_name = "S", value_parser = value::job_timeout, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
    /// Runs after the first, should it fail
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_RETRIES)))]
    pub(crate) retries: u32,
    /// Check the script's syntax first; one in Python needs an interpreter here
    #[arg(long)]
    pub(crate) check: bool,
}

impl Asked {
    /// The job, with the script.
    fn request(&self, script: &Script) -> JobRequest {
        let request = JobRequest::new(script.script_type.clone(), script.text.as_str())
            .retries(self.retries)
            .env(self.env.iter().cloned().collect());
        let request = match self.timeout {
            Some(timeout) => request.timeout(timeout),
            None => request,
        };
        match &self.group {
            Some(group) => request.group(group.clone()),
            None => request,
        }
    }

    /// The job, after a look at the script if that is asked for.
    pub(crate) async fn checked(&self, script: &Script) -> Result<JobRequest, Error> {
        let request = self.request(script);
        if self.check {
            request.check_syntax().await?;
        }
        Ok(request)
    }
}
