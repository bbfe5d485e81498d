//! `meshwork action notify`.

use clap::builder::NonEmptyStringValueParser;
use meshwork::runtime::ActionDelivery;
use serde::Serialize;

use super::in_run::{self, EnclosingRun};
use super::{ActionArgs, Side};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

// Help of the options shared with `call` and `send`.
const CONTEXT: &str =
    "To those who listen in this context, as a tenant's; to those in none otherwise";
const ORIGIN: &str = "The service in whose name it is published";

/// Publish a notification and print the number of its receivers
///
/// Publishes to the channel of the event and of the service in --as: `meshwork action subscribe EVENT --of SERVICE`
/// receives it. Nothing is stored for services that do not listen at the moment; 0 receivers are no error.
#[derive(Debug, clap::Args)]
#[command(mut_arg("context", |arg| arg.help(CONTEXT)), mut_arg("origin", |arg| arg.help(ORIGIN)))]
pub(crate) struct Notify {
    #[command(flatten)]
    side: Side,
    /// Name of the event: document_updated
    #[arg(value_name = "EVENT", value_parser = NonEmptyStringValueParser::new())]
    event: String,
    #[command(flatten)]
    action_args: ActionArgs,
}

#[derive(Debug, Serialize)]
struct Heard {
    heard: usize,
}

impl Notify {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        if let Some(run) = EnclosingRun::find(context) {
            return self.through(&run, context).await;
        }
        let request = self.action_args.request(&self.event, self.side.dialect)?;
        let client = self.side.client(&self.action_args.origin, context).await?;
        print(client.notify(&self.event, request).await?, context)
    }

    /// Publishes through the worker of the run around this process.
    async fn through(self, run: &EnclosingRun, context: &mut App) -> Result<Exit, CommandError> {
        let message = self
            .action_args
            .message(ActionDelivery::Notify, &self.event)?;
        let answer = run.ask(message).await?;
        let heard = answer.reply.as_ref().map(|heard| heard.get().parse());
        match heard {
            Some(Ok(heard)) => print(heard, context),
            _ => Err(in_run::failure(&answer)),
        }
    }
}

fn print(heard: usize, context: &mut App) -> Result<Exit, CommandError> {
    if context.out.is_json() {
        context.out.json(&Heard { heard })?;
    } else {
        context.out.line(heard)?;
    }
    Ok(Exit::DONE)
}
