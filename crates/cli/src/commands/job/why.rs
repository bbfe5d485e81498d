//! `meshwork job why`.

use meshwork::Client;
use meshwork::model::job::Job;
use meshwork::model::name::JobId;
use meshwork::model::state::Status;
use meshwork::view::status_of;
use serde::Serialize;

use super::show::{Blockers, waits_for_batch};
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
}

impl Why {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let job = client.status(&self.id).await?;
        let state = client.states(std::slice::from_ref(&job)).await?;
        let state = state.into_iter().next().flatten();
        let line = Line {
            id: &job.id,
            status: status_of(&job),
            state: job_view::state_word(&job, state),
            reasons: reasons(&client, &job, context).await?,
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
async fn reasons(client: &Client, job: &Job, context: &App) -> Result<Vec<String>, CommandError> {
    let masked = |text: &str| job.env_vars.secrets().mask(text).into_owned();
    match job.status() {
        Some(Status::Finished) => return Ok(vec!["it ended without an error".to_owned()]),
        Some(Status::Error) => return Ok(vec![masked(job.error.as_deref().unwrap_or_default())]),
        Some(Status::Started) => {
            let worker = job.worker.as_deref().unwrap_or("a worker");
            return Ok(vec![format!("{worker} runs it")]);
        }
        _ => {}
    }
    let blockers = Blockers::of(client, job).await?;
    let mut reasons: Vec<_> = blockers
        .waits_for
        .iter()
        .map(|awaited| format!("it waits for {awaited}"))
        .collect();
    reasons.extend(
        waits_for_batch(job)
            .map(|(kind, batch)| format!("it waits for batch {batch}, as its callback on {kind}")),
    );
    reasons.extend(
        blockers
            .next_run_at
            .map(|at| format!("its next run is at {at}")),
    );
    reasons.extend(blockers.held_by);
    let queue = client.broker().queue_of(job);
    if !client.broker().is_listened(&queue).await? {
        let queue = context.queue_name(&queue);
        reasons.push(format!("no worker listens to {queue}: start one"));
    }
    if reasons.is_empty() {
        reasons.push("its queue has not reached it: the workers run other jobs".to_owned());
    }
    Ok(reasons)
}
