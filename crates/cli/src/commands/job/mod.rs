//! `meshwork job`.

mod approve;
mod cancel;
mod delete;
mod jsonl;
mod jsonl_source;
mod list;
mod logs;
mod result;
mod retry;
mod run_now;
mod set;
mod show;
mod spread;
mod submit;
#[cfg(test)]
mod tests;
mod wait;
mod why;

use meshwork_model::access::{Object, Operation};
use meshwork_model::name::JobId;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::parts::OverParts;
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
    pub(crate) async fn run(mut self, context: &mut App) -> Result<Exit, CommandError> {
        let (needs, what) = self.command.needs();
        if self.scope.spread && self.command.ids().is_empty() {
            return self.run_in_parts(context, needs, what).await;
        }
        let scope = match self.scope.open(context).await? {
            Some(scope) => Some(scope),
            None => self.scope.open_named(&self.command.ids(), context).await?,
        };
        let Some(scope) = scope else {
            return self.command.run(context).await;
        };
        if let JobCommand::Enqueue(submit) = &mut self.command {
            submit.enter(&scope)?;
        }
        for id in self.command.ids() {
            *id = scope.job_id(id)?;
        }
        let ids: Vec<_> = self.command.ids().iter().map(ToString::to_string).collect();
        context.enter(scope, needs).await?;
        let ended = self.command.run(context).await;
        // Some jobs may have changed before an error.
        if let Some(what) = what {
            context.record_in_audit(what, &ids.join(" ")).await?;
        }
        ended
    }
}

impl Jobs {
    /// Runs the command in all parts of spread queues, or enqueues a job in one.
    async fn run_in_parts(
        self,
        context: &mut App,
        needs: (Object, Operation),
        audit: Option<&'static str>,
    ) -> Result<Exit, CommandError> {
        let actor = &self.scope.actor;
        let over = OverParts {
            actor,
            name: None,
            needs,
            audit,
        };
        match self.command {
            JobCommand::Enqueue(submit) => Box::pin(submit.run_spread(context, actor)).await,
            JobCommand::List(list) => {
                let run = async |app: &mut App| Box::pin(list.clone().run(app)).await;
                Box::pin(over.run(context, run)).await
            }
            JobCommand::Cancel(cancel) => {
                let run = async |app: &mut App| Box::pin(cancel.clone().run(app)).await;
                Box::pin(over.run(context, run)).await
            }
            JobCommand::Retry(retry) => {
                let run = async |app: &mut App| Box::pin(retry.clone().run(app)).await;
                Box::pin(over.run(context, run)).await
            }
            JobCommand::Delete(delete) => {
                let run = async |app: &mut App| Box::pin(delete.clone().run(app)).await;
                Box::pin(over.run(context, run)).await
            }
            _ => Err(CommandError::usage(
                "--spread does not apply here: name a job by its key, as {ctx:7}:job:12:2001, or its context with --context",
            )),
        }
    }
}

#[derive(Debug, clap::Subcommand)]
enum JobCommand {
    #[command(visible_alias = "submit")]
    Enqueue(Box<submit::Submit>),
    Wait(wait::Wait),
    #[command(visible_alias = "status")]
    Show(show::Show),
    Why(why::Why),
    Result(result::ResultOf),
    Logs(logs::Logs),
    List(Box<list::List>),
    #[command(visible_alias = "stop")]
    Cancel(Box<cancel::Cancel>),
    Retry(Box<retry::Retry>),
    RunNow(run_now::RunNow),
    Set(set::Set),
    Delete(Box<delete::Delete>),
    Approve(approve::Approve),
}

impl JobCommand {
    /// Returns the required permission in a context, and the words for the audit trail, unless the command writes its
    /// own entry.
    fn needs(&self) -> ((Object, Operation), Option<&'static str>) {
        match self {
            // Writes its own entry, which needs the number of the new job.
            Self::Enqueue(_) => ((Object::Job, Operation::Create), None),
            Self::Wait(_)
            | Self::Show(_)
            | Self::Why(_)
            | Self::Result(_)
            | Self::Logs(_)
            | Self::List(_) => ((Object::Job, Operation::Read), None),
            Self::Cancel(_) => ((Object::Job, Operation::Cancel), Some("cancel jobs")),
            Self::Retry(_) => ((Object::Job, Operation::Cancel), Some("retry jobs")),
            Self::RunNow(_) => ((Object::Job, Operation::Cancel), Some("run jobs now")),
            Self::Set(_) => ((Object::Job, Operation::Cancel), Some("change jobs")),
            Self::Delete(_) => ((Object::Job, Operation::Delete), Some("delete jobs")),
            Self::Approve(_) => ((Object::Flow, Operation::Update), None),
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
            Self::Cancel(cancel) => cancel.chosen.ids.iter_mut().collect(),
            Self::Retry(retry) => retry.chosen.ids.iter_mut().collect(),
            Self::RunNow(now) => now.ids.iter_mut().collect(),
            Self::Set(set) => set.ids.iter_mut().collect(),
            Self::Delete(delete) => delete.chosen.ids.iter_mut().collect(),
            Self::Enqueue(_) | Self::List(_) | Self::Approve(_) => Vec::new(),
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
            Self::List(list) => list.run(context).await,
            Self::Cancel(cancel) => Box::pin(cancel.run(context)).await,
            Self::Retry(retry) => retry.run(context).await,
            Self::RunNow(now) => now.run(context).await,
            Self::Set(set) => set.run(context).await,
            Self::Delete(delete) => delete.run(context).await,
            Self::Approve(approve) => approve.run(context).await,
        }
    }
}
