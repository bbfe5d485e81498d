//! `meshwork message delete`.

use meshwork_model::keys::context::MessageKey;
use serde::Serialize;
use serde::de::IgnoredAny;

use super::{message_key, params};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;

/// Delete a message of a context, sent or received
///
/// A message that was not delivered is not sent any more, and one in the inbox is not read any more. A message whose jobs
/// may run is refused. Without this command, messages are deleted 7 days after the last change of their status.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    /// Message, as CALLER:ID
    #[arg(value_name = "MESSAGE", value_parser = message_key)]
    message: MessageKey,
    #[command(flatten)]
    args: ContextArgs,
}

#[derive(Debug, Serialize)]
struct Deleted {
    message: String,
    outcome: &'static str,
}

impl Delete {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let of = self.args.need_for_calls(context).await?;
        let params = params(of, self.message);
        let _: IgnoredAny = context.call("message.delete", &params).await?;
        let (message, outcome) = (self.message.numbers(), "deleted");
        match context.out.is_json() {
            true => context.out.json(&Deleted { message, outcome })?,
            false => context.out.line(format_args!("{message} {outcome}"))?,
        }
        Ok(Exit::DONE)
    }
}
