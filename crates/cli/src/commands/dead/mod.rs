//! `meshwork dead`.

mod delete;
mod groups;
mod list;
mod retry;
mod show;

use meshwork_model::access::{Object, Operation};
use meshwork_model::name::JobId;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::parts::OverParts;
use crate::scope::ScopeArgs;

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

#[derive(Debug, Clone, clap::Subcommand)]
enum DeadCommand {
    List(list::List),
    Show(show::Show),
    #[command(visible_alias = "replay")]
    Retry(retry::Retry),
    Delete(delete::Delete),
}

impl Dead {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let Self { mut command, scope } = self;
        let (needs, audit) = command.needs();
        if scope.spread && command.ids().is_empty() {
            let over = OverParts {
                actor: &scope.actor,
                name: None,
                needs,
                audit,
            };
            let command = async |app: &mut App| Box::pin(command.clone().run(app)).await;
            return Box::pin(over.run(context, command)).await;
        }
        let opened = match scope.open(context).await? {
            Some(scope) => Some(scope),
            None => scope.open_named(&command.ids(), context).await?,
        };
        if let Some(scope) = opened {
            for id in command.ids() {
                *id = scope.job_id(id)?;
            }
            context.enter(scope, needs).await?;
        }
        let ended = command.run(context).await;
        if let Some(what) = audit {
            context.record_in_audit(what, "").await?;
        }
        ended
    }
}

impl DeadCommand {
    /// Returns the required permission in a context, and the words for the audit trail of a change.
    const fn needs(&self) -> ((Object, Operation), Option<&'static str>) {
        match self {
            Self::List(_) | Self::Show(_) => ((Object::Job, Operation::Read), None),
            Self::Retry(_) => ((Object::Job, Operation::Cancel), Some("retry jobs")),
            Self::Delete(_) => ((Object::Job, Operation::Delete), Some("delete jobs")),
        }
    }

    /// Returns the ids of jobs among the arguments.
    fn ids(&mut self) -> Vec<&mut JobId> {
        match self {
            Self::List(_) => Vec::new(),
            Self::Show(show) => vec![&mut show.id],
            Self::Retry(retry) => retry.chosen.ids.iter_mut().collect(),
            Self::Delete(delete) => delete.chosen.ids.iter_mut().collect(),
        }
    }

    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::List(list) => list.run(context).await,
            Self::Show(show) => show.run(context).await,
            Self::Retry(retry) => Box::pin(retry.run(context)).await,
            Self::Delete(delete) => Box::pin(delete.run(context)).await,
        }
    }
}
