//! Commands of `meshwork job` for several jobs: by ids, or all that a filter finds.

use std::time::Duration;

use meshwork::JobChange;
use meshwork_model::name::JobId;
use meshwork_model::route::Priority;
use meshwork_model::state::Status;
use meshwork_ops::change::Action;
use meshwork_ops::job::READ;
use meshwork_ops::{Needs, Store};

use super::by_api::complete;
use super::cancel::Cancel;
use super::list::List;
use crate::app::App;
use crate::args::parsers;
use crate::bulk::{Chosen, Fits, Verb};
use crate::change::{by_api, by_ids};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::scope::Params;

#[derive(Debug, clap::Subcommand)]
pub(super) enum ManyCommand {
    List(Box<List>),
    #[command(visible_alias = "stop")]
    Cancel(Box<Cancel>),
    /// Run ended jobs again, failed or done
    ///
    /// With --all or filter options, retries failed and cancelled jobs only; for finished ones add --state finished.
    Retry(Box<Chosen>),
    RunNow(RunNow),
    Set(Set),
    /// Delete jobs that do not run, with their results; waiting jobs will not run
    Delete(Box<Chosen>),
}

/// Run jobs at once that are delayed, or wait for a retry
#[derive(Debug, clap::Args)]
pub(super) struct RunNow {
    /// Ids of the jobs
    #[arg(required = true, value_name = "ID", value_parser = parsers::job_id)]
    ids: Vec<JobId>,
}

/// Change the priority, the delay or the timeout of jobs that wait
///
/// A job whose priority or delay changes goes to the end of its queue. A job that runs keeps its values.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("values").required(true).multiple(true)
    .args(["priority", "delay", "timeout"]))]
pub(super) struct Set {
    /// Ids of the jobs
    #[arg(required = true, value_name = "ID", value_parser = parsers::job_id)]
    ids: Vec<JobId>,
    /// Priority: high, normal or low, or 0, 1 or 2
    #[arg(long, value_name = "LEVEL")]
    priority: Option<Priority>,
    /// Run after this time from now, also in place of a retry's time; 0: at once
    #[arg(long, value_name = "DURATION", value_parser = parsers::delay, allow_hyphen_values = true)]
    delay: Option<Duration>,
    /// Longest time of one attempt, in whole seconds, up to 7 days
    #[arg(long, value_name = "DURATION", value_parser = parsers::job_timeout, allow_hyphen_values = true)]
    timeout: Option<Duration>,
}

const DELETE: Verb = Verb {
    action: Action::Delete,
    verb: "delete",
    done: "deleted",
    fits: |status, _| status != Some(Status::Started),
};

/// Returns the words for a retry of jobs that a filter finds.
fn retry(chosen: &Chosen) -> Verb {
    let failed: Fits = |status, _| status == Some(Status::Error);
    let ended: Fits = |status, _| status.is_some_and(Status::is_final);
    Verb {
        action: Action::Retry,
        verb: "retry",
        done: "queued",
        fits: match chosen.select.has_status() {
            true => ended,
            false => failed,
        },
    }
}

impl Set {
    fn action(&self) -> Action {
        Action::Set(JobChange {
            priority: self.priority,
            delay: self.delay,
            timeout: self.timeout,
        })
    }
}

impl ManyCommand {
    /// Returns the required permission in a context.
    pub(super) fn needs(&self) -> Needs {
        match self {
            Self::List(_) => READ,
            Self::Cancel(cancel) => cancel.action().needs(),
            Self::Retry(_) => Action::Retry.needs(),
            Self::RunNow(_) => Action::RunNow.needs(),
            Self::Set(set) => set.action().needs(),
            Self::Delete(_) => Action::Delete.needs(),
        }
    }

    /// Returns the ids of jobs among the arguments.
    pub(super) fn ids(&mut self) -> Vec<&mut JobId> {
        match self {
            Self::List(_) => Vec::new(),
            Self::Cancel(cancel) => cancel.chosen.ids.iter_mut().collect(),
            Self::Retry(chosen) | Self::Delete(chosen) => chosen.ids.iter_mut().collect(),
            Self::RunNow(now) => now.ids.iter_mut().collect(),
            Self::Set(set) => set.ids.iter_mut().collect(),
        }
    }

    pub(super) async fn run(&self, app: &mut App, store: &Store) -> Result<Exit, CommandError> {
        match self {
            Self::List(list) => list.run(app, store).await,
            Self::Cancel(cancel) => cancel.run(app, store).await,
            Self::Retry(chosen) => chosen.run(app, store, retry(chosen)).await,
            Self::RunNow(now) => by_ids(app, store, &now.ids, Action::RunNow).await,
            Self::Set(set) => by_ids(app, store, &set.ids, set.action()).await,
            Self::Delete(chosen) => chosen.run(app, store, DELETE).await,
        }
    }

    /// Runs the command by the API.
    pub(super) async fn by_api(
        mut self,
        app: &mut App,
        params: Params,
    ) -> Result<Exit, CommandError> {
        complete(app, params, self.ids()).await?;
        match self {
            Self::List(list) => list.by_api(app, params).await,
            Self::Cancel(cancel) => Box::pin(cancel.by_api(app, params)).await,
            Self::Retry(chosen) => chosen.by_api(app, params, retry(&chosen)).await,
            Self::RunNow(now) => by_api(app, params, &now.ids, Action::RunNow).await,
            Self::Delete(chosen) => chosen.by_api(app, params, DELETE).await,
            Self::Set(set) => by_api(app, params, &set.ids, set.action()).await,
        }
    }
}
