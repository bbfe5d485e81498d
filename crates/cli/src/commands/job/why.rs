//! `meshwork job why`.

use meshwork::WaitReason;
use meshwork::model::job::Job;
use meshwork::model::name::JobId;
use meshwork::model::state::Status;
use meshwork::view::status_of;
use serde::Serialize;

use super::show::text;
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::job_view;
use crate::out::printable;

/// Show why a job waits, or why it failed
#[derive(Debug, clap::Args)]
pub(crate) struct Why {
    /// The job's id
    #[arg(value_parser = parsers::job_id)]
    pub(super) id: JobId,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    id: &'a str,
    status: &'a str,
    state: &'a str,
    reasons: Vec<String>,
    /// Reasons of a wait, for programs.
    waits: &'a [WaitReason],
}

impl Why {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let job = client.status(&self.id).await?;
        let state = client.states(std::slice::from_ref(&job)).await?;
        let state = state.into_iter().next().flatten();
        let waits = client.why(&job).await?;
        let line = Line {
            id: &job.id,
            status: status_of(&job),
            state: job_view::state_word(&job, state),
            reasons: reasons(&job, &waits, context),
            waits: &waits,
        };
        if context.out.is_json() {
            context.out.json(&line)?;
            return Ok(Exit::DONE);
        }
        for reason in &line.reasons {
            let text = format!("{} {}: {reason}", line.id, line.state);
            context.out.line(printable(&text))?;
        }
        Ok(Exit::DONE)
    }
}

/// Returns the reasons for the state of a job, at least one.
fn reasons(job: &Job, waits: &[WaitReason], context: &App) -> Vec<String> {
    let masked = |text: &str| job.env_vars.secrets().mask(text).into_owned();
    match job.status() {
        Some(Status::Finished) => return vec!["it ended without an error".to_owned()],
        Some(Status::Error) => return vec![masked(job.error.as_deref().unwrap_or_default())],
        Some(Status::Started) => {
            let worker = job.worker.as_deref().unwrap_or("a worker");
            return vec![format!("{worker} runs it")];
        }
        _ => {}
    }
    if waits.is_empty() {
        return vec!["a worker has prefetched it, and runs other jobs".to_owned()];
    }
    waits.iter().map(|reason| text(reason, context)).collect()
}
