//! `meshwork flow cancel`, `approve`, `reject` and `delete`.

use meshwork::flow::FlowView;
use meshwork_model::keys::context::FlowId;
use serde::Serialize;

use super::place::Place;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;

#[derive(Debug, Serialize)]
pub(super) struct Changed<'a> {
    pub(super) id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) job: Option<&'a str>,
    pub(super) outcome: &'a str,
}

pub(super) fn tell(context: &mut App, changed: &Changed<'_>) -> Result<(), CommandError> {
    match context.out.is_json() {
        true => context.out.json(changed)?,
        false => context.out.line(changed.outcome)?,
    }
    Ok(())
}

/// Cancel a flow: pending jobs do not start, running jobs are cancelled, then compensations run
#[derive(Debug, clap::Args)]
pub(crate) struct Cancel {
    /// Number of the flow
    pub(super) id: FlowId,
    /// Run no compensations
    #[arg(long)]
    pub(super) no_compensate: bool,
    #[command(flatten)]
    pub(super) place: ContextArgs,
}

impl Cancel {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let place = Place::open(&self.place, context).await?;
        let stops = place.session.cancel(self.id, !self.no_compensate).await?;
        let outcome = if stops { "stopping" } else { "ended already" };
        let id = self.id.0;
        tell(
            context,
            &Changed {
                id,
                job: None,
                outcome,
            },
        )?;
        Ok(if stops { Exit::DONE } else { Exit::FAILED })
    }
}

/// Approve an approval of a flow, as the actor of the key file
#[derive(Debug, clap::Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    pub(super) answer: Answer,
}

/// Reject an approval of a flow, as the actor of the key file: the job fails
#[derive(Debug, clap::Args)]
pub(crate) struct Reject {
    #[command(flatten)]
    pub(super) answer: Answer,
}

#[derive(Debug, clap::Args)]
pub(super) struct Answer {
    /// Number of the flow
    pub(super) id: FlowId,
    /// Name of the approval [default: the only open one]
    pub(super) job: Option<String>,
    #[command(flatten)]
    pub(super) place: ContextArgs,
}

impl Approve {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        self.answer.run(context, true).await
    }
}

impl Reject {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        self.answer.run(context, false).await
    }
}

impl Answer {
    async fn run(self, context: &mut App, yes: bool) -> Result<Exit, CommandError> {
        let place = Place::open(&self.place, context).await?;
        let job = match self.job {
            Some(job) => job,
            None => only_open(&place.flows.status(self.id).await?)?,
        };
        place.session.answer(self.id, &job, yes).await?;
        let (id, job) = (self.id.0, Some(job.as_str()));
        let outcome = if yes { "approved" } else { "rejected" };
        tell(context, &Changed { id, job, outcome })?;
        Ok(Exit::DONE)
    }
}

/// The only open approval of a flow.
fn only_open(view: &FlowView) -> Result<String, CommandError> {
    let asks = view.jobs.iter().filter(|job| job.question.is_some());
    let open: Vec<&str> = asks.map(|job| job.name.as_str()).collect();
    match open[..] {
        [job] => Ok(job.to_owned()),
        [] => {
            let why = format!("no approval of the flow {} is open", view.id);
            Err(CommandError::new(Exit::FAILED, why))
        }
        [..] => Err(CommandError::usage(format!(
            "these approvals of the flow {} are open: {}; name one of them",
            view.id,
            open.join(", ")
        ))),
    }
}

/// Delete a flow that has ended, with its jobs
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    /// Number of the flow
    pub(super) id: FlowId,
    #[command(flatten)]
    pub(super) place: ContextArgs,
}

impl Delete {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let place = Place::open(&self.place, context).await?;
        place.session.delete(self.id).await?;
        let id = self.id.0;
        let outcome = "deleted";
        tell(
            context,
            &Changed {
                id,
                job: None,
                outcome,
            },
        )?;
        Ok(Exit::DONE)
    }
}
