//! `meshwork job status`.

use meshwork::Client;
use meshwork::model::job::Job;
use meshwork::model::name::JobId;
use meshwork::model::state::Status;
use meshwork::model::time;
use serde::Serialize;

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

/// A job, and what only its status tells.
#[derive(Debug, Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    job: Record<'a>,
    depends_on: &'a [String],
    on_failure: Option<&'a str>,
    waits_for: &'a [Awaited],
    dependents: &'a [String],
    next_run_at: Option<String>,
    stop: Option<&'a str>,
    lock: Option<&'a str>,
}

/// A job that another one waits for.
#[derive(Debug, Serialize)]
struct Awaited {
    id: String,
    /// None if it is gone.
    status: Option<&'static str>,
}

impl StatusOf {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        let client = context.client().await?;
        let job = client.status(&self.id).await?;
        let waits_for = waits_for(&client, &job).await?;
        let next_run_at = match job.status() {
            Some(Status::Dispatched) => client.next_run(&self.id).await?.map(time::iso),
            _ => None,
        };
        let out = &mut context.out;
        if out.is_json() {
            out.json(&Line {
                job: Record::from(&job),
                depends_on: &job.depends_on,
                on_failure: job.on_failure.as_deref(),
                waits_for: &waits_for,
                dependents: &job.dependents,
                next_run_at,
                stop: job.stop.as_deref(),
                lock: job.lock.as_deref(),
            })?;
            return Ok(Exit::DONE);
        }
        record::describe(&job, out)?;
        for Awaited { id, status } in &waits_for {
            let status = status.unwrap_or("gone");
            record::line("waits for", &format!("{id} ({status})"), out)?;
        }
        if let Some(at) = next_run_at {
            record::line("next run", &at, out)?;
        }
        Ok(Exit::DONE)
    }
}

/// What a waiting job waits for: those of its prerequisites that have not ended.
async fn waits_for(client: &Client, job: &Job) -> Result<Vec<Awaited>, Error> {
    if job.status() != Some(Status::WaitingForPrerequisites) {
        return Ok(Vec::new());
    }
    let all = client.prerequisites(job).await?.into_iter();
    let open = all.filter(|(_, status)| !status.is_some_and(Status::is_final));
    let awaited = |(id, status): (JobId, Option<Status>)| Awaited {
        id: id.as_str().to_owned(),
        status: status.map(Status::as_str),
    };
    Ok(open.map(awaited).collect())
}
