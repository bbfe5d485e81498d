//! `meshwork schedule`.

mod add;
mod change;
mod list;
mod next;
mod run;
mod show;
mod view;

use meshwork::flow::FlowSession;
use meshwork::{Client, Error as MeshworkError, ScheduleHandle};
use meshwork_model::keys::context::ContextId;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;
use crate::scope::ActorArgs;

/// Run jobs and flows repeatedly: by cron expressions, or at an interval
///
/// Any worker, of any type, can fire schedules of jobs; those of flows are fired by workers of their context. Each slot runs
/// once, with any number of workers.
#[derive(Debug, clap::Args)]
pub(crate) struct Schedules {
    #[command(subcommand)]
    command: ScheduleCommand,
    #[command(flatten)]
    scope: FlowScope,
}

#[derive(Debug, clap::Subcommand)]
enum ScheduleCommand {
    Add(Box<add::Add>),
    List(list::List),
    Show(show::Show),
    /// Pause schedules: none of their slots runs until they are resumed
    Pause(change::Names),
    /// Resume paused schedules with the first slot from now on
    Resume(change::Names),
    /// Delete schedules; jobs and flows that they have started remain
    Remove(change::Names),
    Next(next::Next),
    Run(run::Run),
}

impl Schedules {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let scope = &self.scope;
        if context.remote.is_some() && scope.context.is_some() {
            return Err(CommandError::usage(
                "--context does not work with --api here: schedules of flows are changed where the store is",
            ));
        }
        match self.command {
            ScheduleCommand::Add(add) => Box::pin(add.run(scope, context)).await,
            ScheduleCommand::List(list) => list.run(scope, context).await,
            ScheduleCommand::Show(show) => show.run(scope, context).await,
            ScheduleCommand::Pause(names) => {
                let act = async |s: &ScheduleHandle| s.pause().await;
                names.change(scope, context, ("pause", "paused"), act).await
            }
            ScheduleCommand::Resume(names) => {
                let act = async |s: &ScheduleHandle| s.resume().await;
                names
                    .change(scope, context, ("resume", "resumed"), act)
                    .await
            }
            ScheduleCommand::Remove(names) => {
                let act = async |s: &ScheduleHandle| s.remove().await;
                names
                    .change(scope, context, ("remove", "removed"), act)
                    .await
            }
            ScheduleCommand::Next(next) => next.run(scope, context).await,
            ScheduleCommand::Run(run) => run.run(scope, context).await,
        }
    }
}

/// Context of schedules of flows.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Context")]
struct FlowScope {
    /// Context of schedules of flows [default: the only one of the node; schedules of jobs go first]
    #[arg(long, value_name = "ID", global = true)]
    context: Option<ContextId>,
    #[command(flatten)]
    actor: ActorArgs,
}

impl FlowScope {
    fn args(&self) -> ContextArgs {
        ContextArgs {
            context: self.context,
            identity: self.actor.identity(),
        }
    }

    /// Returns the flows of the named context, or of the only one.
    async fn session(&self, context: &App) -> Result<Option<FlowSession>, CommandError> {
        let found = self.args().find(context).await;
        let found = match (self.context, found) {
            (Some(_), found) => found?,
            // Without --context, the node may have several, or none for this user.
            (None, found) => found.ok().flatten(),
        };
        let Some((me, handle)) = found else {
            return Ok(None);
        };
        match (self.context, handle.flows(&me).await) {
            (None, Err(_)) => Ok(None),
            (_, session) => Ok(Some(session?)),
        }
    }

    /// Returns the client that has the schedule of a name: of the named context, of jobs, or of the only context. `change`
    /// is the word of a change in the audit trail.
    async fn client(
        &self,
        name: &str,
        change: Option<&str>,
        context: &App,
    ) -> Result<Client, CommandError> {
        let client = context.client().await?;
        let key = name.parse().map_err(CommandError::usage)?;
        if self.context.is_none() {
            let of_jobs = client.broker().read_schedule(&key).await;
            if of_jobs.map_err(MeshworkError::from)?.is_some() {
                return Ok(client);
            }
        }
        let Some(session) = self.session(context).await? else {
            return Ok(client);
        };
        if self.context.is_none() && session.client().scheduled(&key).await?.is_none() {
            return Ok(client);
        }
        let change = change.map(|word| (word, name));
        Ok(session.schedules(change).await?)
    }
}

/// Parses a schedule's name.
fn name(text: &str) -> Result<String, meshwork_model::name::NameError> {
    let name: meshwork_model::name::ScheduleName = text.parse()?;
    Ok(name.to_string())
}
