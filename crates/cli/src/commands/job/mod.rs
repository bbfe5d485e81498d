//! `meshwork job`.

mod delete;
mod jsonl;
mod list;
mod logs;
mod retry;
mod run_now;
mod select;
mod status;
mod stop;
mod submit;
mod wait;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;

/// Submit jobs, look at them and change them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum JobCommand {
    Submit(Box<submit::Submit>),
    Wait(wait::Wait),
    Status(status::StatusOf),
    Logs(logs::Logs),
    List(list::List),
    Stop(stop::Stop),
    Retry(retry::Retry),
    RunNow(run_now::RunNow),
    Delete(delete::Delete),
}

impl JobCommand {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        match self {
            Self::Submit(submit) => Box::pin(submit.run(context)).await,
            Self::Wait(wait) => Box::pin(wait.run(context)).await,
            Self::Status(status) => status.run(context).await,
            Self::Logs(logs) => logs.run(context).await,
            Self::List(list) => list.run(context).await,
            Self::Stop(stop) => Box::pin(stop.run(context)).await,
            Self::Retry(retry) => retry.run(context).await,
            Self::RunNow(now) => now.run(context).await,
            Self::Delete(delete) => delete.run(context).await,
        }
    }
}
