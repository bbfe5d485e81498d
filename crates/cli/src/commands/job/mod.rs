//! `meshwork job`.

mod cancel;
mod delete;
mod jsonl;
mod list;
mod logs;
mod result;
mod retry;
mod run_now;
mod show;
mod submit;
mod wait;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;

pub(crate) use logs::Logs;

/// Enqueue jobs, look at them and change them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum JobCommand {
    #[command(visible_alias = "submit")]
    Enqueue(Box<submit::Submit>),
    Wait(wait::Wait),
    #[command(alias = "status")]
    Show(show::Show),
    Result(result::ResultOf),
    Logs(Logs),
    List(Box<list::List>),
    #[command(alias = "stop")]
    Cancel(Box<cancel::Cancel>),
    Retry(Box<retry::Retry>),
    RunNow(run_now::RunNow),
    Delete(Box<delete::Delete>),
}

impl JobCommand {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        match self {
            Self::Enqueue(submit) => Box::pin(submit.run(context)).await,
            Self::Wait(wait) => Box::pin(wait.run(context)).await,
            Self::Show(show) => show.run(context).await,
            Self::Result(result) => result.run(context).await,
            Self::Logs(logs) => logs.run(context).await,
            Self::List(list) => list.run(context).await,
            Self::Cancel(cancel) => Box::pin(cancel.run(context)).await,
            Self::Retry(retry) => retry.run(context).await,
            Self::RunNow(now) => now.run(context).await,
            Self::Delete(delete) => delete.run(context).await,
        }
    }
}
