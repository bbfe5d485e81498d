//! `meshwork job cancel`.

use std::time::Duration;

use meshwork::{Cancelled, Client, Error as MeshworkError};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::state::State;
use meshwork_ops::change::{Action, Change, Outcome};
use meshwork_ops::{OpError, Store};
use tokio::time::Instant;

use super::by_api;
use crate::app::App;
use crate::args::parsers;
use crate::bulk::{Chosen, Fits, Verb};
use crate::change::{changed, tell_outcome};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::Out;
use crate::scope::Params;

/// Cancel jobs that wait or run; they end in error
///
/// The worker of a running job lets the script clean up, kills it after --cancel-grace, and ends the job. A dead worker
/// is detected when its lease expires. With --all or filter options, cancels all matching jobs that exist now, without
/// waiting for the running ones.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Cancel {
    #[command(flatten)]
    pub(super) chosen: Chosen,
    /// End the jobs at once, without their workers; a script runs on until its worker notices
    #[arg(long)]
    force: bool,
    /// Cancel their children too: the jobs that they added with add_child(), on all levels
    #[arg(long, requires = "ids")]
    children: bool,
    /// Do not wait until the jobs have ended
    #[arg(long)]
    no_wait: bool,
    /// Longest wait until all jobs have ended
    #[arg(long, value_name = "DURATION", default_value = "60", value_parser = parsers::wait,
          allow_hyphen_values = true, conflicts_with = "no_wait")]
    timeout: Duration,
}

/// Open jobs without a request to stop.
const FITS: Fits = |status, is_stopping| status.is_some_and(|it| !it.is_final()) && !is_stopping;

/// Prints a result before the wait for the next one.
fn tell_now(
    context: &mut App,
    id: &str,
    action: Action,
    stopped: Result<Outcome, OpError>,
) -> Result<Exit, CommandError> {
    let exit = tell_outcome(&mut context.out, id, action, stopped)?;
    context.out.flush()?;
    Ok(exit)
}

impl Cancel {
    fn verb(&self) -> Verb {
        Verb {
            action: self.action(),
            verb: "cancel",
            done: "cancelled",
            fits: FITS,
        }
    }

    /// Runs the command by the API.
    pub(super) async fn by_api(
        &self,
        context: &mut App,
        params: Params,
    ) -> Result<Exit, CommandError> {
        if self.chosen.ids.is_empty() {
            return self.chosen.by_api(context, params, self.verb()).await;
        }
        if self.children {
            return Err(CommandError::usage(
                "--children does not work with --api: `job list --parent ID` lists them",
            ));
        }
        let (action, mut requests) = (self.action(), Vec::new());
        for id in &self.chosen.ids {
            requests.push(changed(context, params, id, action).await?);
        }
        let (until, mut exit) = (Instant::now() + self.timeout, Exit::DONE);
        for (id, mut stopped) in self.chosen.ids.iter().zip(requests) {
            if matches!(stopped, Ok(Outcome::Cancelling)) && !self.no_wait {
                let left = until.saturating_duration_since(Instant::now());
                let wait = self.wait_by_api(context, params, (id, left));
                stopped = Box::pin(wait).await?;
            }
            exit = exit.or(tell_now(context, id.as_str(), action, stopped)?);
        }
        Ok(exit)
    }

    async fn wait_by_api(
        &self,
        context: &App,
        params: Params,
        (id, left): (&JobId, Duration),
    ) -> Result<Result<Outcome, OpError>, CommandError> {
        match by_api::ended(context, by_api::of(id, params.of_job()), left).await {
            Ok(job) if job.state == State::Cancelled.as_str() => Ok(Ok(Outcome::Cancelled)),
            Ok(_) => Ok(Ok(Outcome::Ended)),
            Err(error) if error.exit == Exit::NOT_ENDED => {
                let late = MeshworkError::CancelTimeout {
                    id: id.clone(),
                    waited: self.timeout,
                    worker: None,
                };
                Ok(Err(late.into()))
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn action(&self) -> Action {
        let force = self.force;
        Action::Cancel { force }
    }

    pub(super) async fn run(&self, context: &mut App, store: &Store) -> Result<Exit, CommandError> {
        if self.chosen.ids.is_empty() {
            // Jobs created after the start are not included.
            return self.chosen.many(context, store, self.verb()).await;
        }
        let (client, action) = (&store.client, self.action());
        // Requests to all jobs first, so that their workers cancel them at the same time.
        let change = Change::begin(store, action, &self.chosen.ids).await?;
        let mut requests = Vec::with_capacity(self.chosen.ids.len());
        for id in &self.chosen.ids {
            requests.push(change.by_id(id).await);
        }
        let (mut running, mut exit) = (Vec::new(), Exit::DONE);
        if self.children {
            // A cancelled job submits no more children.
            for (id, _) in self
                .chosen
                .ids
                .iter()
                .zip(&requests)
                .filter(|(_, request)| request.is_ok())
            {
                running.extend(self.children(client, id, &mut context.out).await?);
            }
        }
        let until = Instant::now() + self.timeout;
        let running = running.into_iter().map(|id| (id, Ok(Outcome::Cancelling)));
        for (id, mut stopped) in self.chosen.ids.iter().cloned().zip(requests).chain(running) {
            if matches!(stopped, Ok(Outcome::Cancelling)) && !self.no_wait {
                let left = until.saturating_duration_since(Instant::now());
                stopped = match client.wait_cancelled(&id, left).await {
                    Ok(Cancelled::Missing) => Err(MeshworkError::JobNotFound { id: id.clone() }),
                    Ok(ended) => Ok(ended.into()),
                    Err(error) => Err(self.late(error)),
                }
                .map_err(OpError::from);
            }
            exit = exit.or(tell_now(context, id.as_str(), action, stopped)?);
        }
        Ok(exit)
    }

    /// Cancels the descendants of a job and prints the result for each. Returns the running ones, at most as many as
    /// the workers have slots.
    async fn children(
        &self,
        client: &Client,
        id: &JobId,
        out: &mut Out,
    ) -> Result<Vec<JobId>, CommandError> {
        let (mut running, mut failed) = (Vec::new(), None);
        let report = |job: &Job, became| match became {
            Cancelled::Stopping if !self.no_wait => running.push(job.job_id()),
            // Deleted meanwhile.
            Cancelled::Missing => {}
            became => {
                let said = tell_outcome(out, &job.id, self.action(), Ok(became.into()));
                failed = failed.take().or(said.err());
            }
        };
        match client.cancel_children(id, self.force, report).await {
            // A deleted job has no known children.
            Ok(_) | Err(MeshworkError::JobNotFound { .. }) => failed.map_or(Ok(running), Err),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces the remaining time of this job by the whole wait.
    fn late(&self, mut error: MeshworkError) -> MeshworkError {
        if let MeshworkError::CancelTimeout { waited, .. } = &mut error {
            *waited = self.timeout;
        }
        error
    }
}
