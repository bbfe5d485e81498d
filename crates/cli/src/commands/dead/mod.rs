//! `meshwork dead`.

mod list;
mod show;

use meshwork_model::name::JobId;
use meshwork_ops::change::Action;
use meshwork_ops::{Needs, Store, job};

use crate::app::App;
use crate::bulk::{Chosen, Verb};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::scope::{Params, ScopeArgs};

/// Look at dead letters, the jobs that failed for good; retry or delete them
///
/// With --context ID, commands use the dead letters of a context; with --spread, those in all parts of spread queues.
#[derive(Debug, clap::Args)]
pub(crate) struct Dead {
    #[command(subcommand)]
    command: DeadCommand,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Debug, clap::Subcommand)]
enum DeadCommand {
    List(Box<list::List>),
    Show(show::Show),
    /// Queue dead letters again, with all their attempts
    #[command(visible_alias = "replay")]
    Retry(Box<Chosen>),
    /// Delete dead letters, with all stored data of the jobs
    Delete(Box<Chosen>),
}

const RETRY: Verb = Verb {
    action: Action::RetryLetter,
    verb: "retry",
    done: "queued",
    fits: |_, _| true,
};
const DELETE: Verb = Verb {
    action: Action::DeleteLetter,
    verb: "delete",
    done: "deleted",
    fits: |_, _| true,
};

impl Dead {
    pub(crate) async fn run(self, app: &mut App) -> Result<Exit, CommandError> {
        let Self { mut command, scope } = self;
        if app.remote.is_some() {
            return command.by_api(app, scope.params()).await;
        }
        let needs = command.needs();
        let placed = scope.place(app, command.ids(), needs).await?;
        let run = async |app: &mut App, store: &Store| command.run(app, store).await;
        app.in_place(placed, run).await
    }
}

impl DeadCommand {
    /// Returns the required permission in a context.
    const fn needs(&self) -> Needs {
        match self {
            Self::List(_) | Self::Show(_) => job::READ,
            Self::Retry(_) => RETRY.action.needs(),
            Self::Delete(_) => DELETE.action.needs(),
        }
    }

    /// Returns the ids of jobs among the arguments.
    fn ids(&mut self) -> Vec<&mut JobId> {
        match self {
            Self::List(_) => Vec::new(),
            Self::Show(show) => vec![&mut show.id],
            Self::Retry(chosen) | Self::Delete(chosen) => chosen.ids.iter_mut().collect(),
        }
    }

    /// Runs the command by the API.
    async fn by_api(&self, app: &mut App, params: Params) -> Result<Exit, CommandError> {
        match self {
            Self::List(list) => list.by_api(app, params).await,
            Self::Show(show) => show.by_api(app, params).await,
            Self::Retry(chosen) => chosen.by_api(app, params, RETRY).await,
            Self::Delete(chosen) => chosen.by_api(app, params, DELETE).await,
        }
    }

    async fn run(&self, app: &mut App, store: &Store) -> Result<Exit, CommandError> {
        match self {
            Self::List(list) => list.run(app, store).await,
            Self::Show(show) => show.run(app, store).await,
            Self::Retry(chosen) => chosen.run(app, store, RETRY).await,
            Self::Delete(chosen) => chosen.run(app, store, DELETE).await,
        }
    }
}
