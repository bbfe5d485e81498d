//! `meshwork job`.

mod delete;
mod list;
mod logs;
mod retry;
mod status;
mod stop;
mod submit;
mod wait;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Submit single jobs, look at them and change them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum JobCommand {
    Submit(Box<submit::Submit>),
    Wait(wait::Wait),
    Status(status::StatusOf),
    Logs(logs::Logs),
    List(list::List),
    Stop(stop::Stop),
    Retry(retry::Retry),
    Delete(delete::Delete),
}

impl JobCommand {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        match self {
            Self::Submit(submit) => submit.run(context).await,
            Self::Wait(wait) => Box::pin(wait.run(context)).await,
            Self::Status(status) => status.run(context).await,
            Self::Logs(logs) => logs.run(context).await,
            Self::List(list) => list.run(context).await,
            Self::Stop(stop) => stop.run(context).await,
            Self::Retry(retry) => retry.run(context).await,
            Self::Delete(delete) => delete.run(context).await,
        }
    }
}
