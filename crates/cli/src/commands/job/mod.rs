//! `meshwork job`.

mod approve;
mod by_api;
mod cancel;
mod jsonl;
mod jsonl_source;
mod list;
mod logs;
mod many;
mod result;
mod schema;
mod show;
mod spread;
mod submit;
#[cfg(test)]
mod tests;
mod wait;
mod why;

use meshwork_model::access::{Object, Operation};
use meshwork_model::name::JobId;
use meshwork_ops::job::READ;
use meshwork_ops::{Needs, Store};

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::scope::ScopeArgs;

/// Enqueue jobs, look at them and change them
///
/// With --context ID, commands use the jobs of a context: 12:2001 is job 2001 of caller 12, and 2001 is one of yours. A key as
/// {ctx:7}:job:12:2001 names its context itself. With --spread, enqueue chooses a part of a spread queue, and list, cancel,
/// retry and delete use all parts.
#[derive(Debug, clap::Args)]
pub(crate) struct Jobs {
    #[command(subcommand)]
    command: JobCommand,
    #[command(flatten)]
    scope: ScopeArgs,
}

impl Jobs {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let Self { command, scope } = self;
        if context.remote.is_some() {
            let params = scope.params();
            return match command {
                JobCommand::One(one) => Box::pin(one.by_api(context, params)).await,
                JobCommand::Many(many) => Box::pin(many.by_api(context, params)).await,
                JobCommand::Schema(schema) => schema.run(&mut context.out),
            };
        }
        let mut command = match command {
            JobCommand::One(OneCommand::Enqueue(submit)) if scope.spread => {
                return Box::pin(submit.run_spread(context, &scope.actor)).await;
            }
            JobCommand::One(one) => one,
            JobCommand::Schema(schema) => return schema.run(&mut context.out),
            JobCommand::Many(mut many) => {
                let needs = many.needs();
                let placed = scope.place(context, many.ids(), needs).await?;
                let run = async |app: &mut App, store: &Store| many.run(app, store).await;
                return context.in_place(placed, run).await;
            }
        };
        if scope.spread && command.ids().is_empty() {
            return Err(CommandError::usage(
                "--spread does not apply here: name a job by its key, as {ctx:7}:job:12:2001, or its context with --context",
            ));
        }
        let entered = match scope.open(context).await? {
            Some(scope) => Some(scope),
            None => scope.open_named(&command.ids(), context).await?,
        };
        if let Some(scope) = entered {
            if let OneCommand::Enqueue(submit) = &mut command {
                submit.enter(&scope)?;
            }
            for id in command.ids() {
                *id = scope.job_id(id)?;
            }
            let needs = command.needs();
            context.enter(scope, needs).await?;
        }
        command.run(context).await
    }
}

#[derive(Debug, clap::Subcommand)]
enum JobCommand {
    #[command(flatten)]
    One(OneCommand),
    #[command(flatten)]
    Many(many::ManyCommand),
    Schema(schema::Schema),
}

/// Commands for a new job, one job or a gate.
#[derive(Debug, clap::Subcommand)]
enum OneCommand {
    #[command(visible_alias = "submit")]
    Enqueue(Box<submit::Submit>),
    Wait(wait::Wait),
    #[command(visible_alias = "status")]
    Show(show::Show),
    Why(why::Why),
    Result(result::ResultOf),
    Logs(logs::Logs),
    Approve(approve::Approve),
}

impl OneCommand {
    /// Returns the required permission in a context.
    const fn needs(&self) -> Needs {
        match self {
            Self::Enqueue(_) => (Object::Job, Operation::Create),
            Self::Wait(_) | Self::Show(_) | Self::Why(_) | Self::Result(_) | Self::Logs(_) => READ,
            Self::Approve(_) => (Object::Flow, Operation::Update),
        }
    }

    /// Returns the ids of jobs among the arguments.
    fn ids(&mut self) -> Vec<&mut JobId> {
        match self {
            Self::Wait(wait) => vec![&mut wait.id],
            Self::Show(show) => vec![&mut show.id],
            Self::Why(why) => vec![&mut why.id],
            Self::Result(result) => vec![&mut result.id],
            Self::Logs(logs) => vec![&mut logs.id],
            Self::Enqueue(_) | Self::Approve(_) => Vec::new(),
        }
    }

    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Enqueue(submit) => Box::pin(submit.run(context)).await,
            Self::Wait(wait) => Box::pin(wait.run(context)).await,
            Self::Show(show) => show.run(context).await,
            Self::Why(why) => Box::pin(why.run(context)).await,
            Self::Result(result) => result.run(context).await,
            Self::Logs(logs) => logs.run(context).await,
            Self::Approve(approve) => approve.run(context).await,
        }
    }
}
