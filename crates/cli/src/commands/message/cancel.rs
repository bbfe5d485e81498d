//! `meshwork message cancel`.

use meshwork::context::MessageView;
use meshwork_model::keys::context::MessageKey;
use serde::Serialize;

use super::look::outcome;
use super::wait::wait_for;
use super::{message_key, params, settle};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;
use crate::out::note;

/// Cancel a message that was sent from a context
///
/// The request goes to the target of the message, on this node or another one, and may arrive before the message. The
/// target cancels the jobs that have not ended. A message that has ended keeps its outcome.
#[derive(Debug, clap::Args)]
pub(crate) struct Cancel {
    /// Message, as CALLER:ID
    #[arg(value_name = "MESSAGE", value_parser = message_key)]
    message: MessageKey,
    /// Wait until the message has ended, and print its outcome
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    args: ContextArgs,
}

#[derive(Debug, Serialize)]
struct Requested {
    message: String,
    outcome: String,
}

impl Cancel {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let of = self.args.need_for_calls(context).await?;
        let params = params(of, self.message);
        let view: MessageView = context.call("message.cancel", &params).await?;
        if self.wait {
            return wait_for(context, (of, self.message), None).await;
        }
        settle(context).await?;
        let message = self.message.numbers();
        let outcome = match view.message.status.is_final() {
            true => {
                note(format_args!("{message} had ended before"));
                outcome(&view)
            }
            false => "cancelling".to_owned(),
        };
        match context.out.is_json() {
            true => context.out.json(&Requested { message, outcome })?,
            false => context.out.line(format_args!("{message} {outcome}"))?,
        }
        Ok(Exit::DONE)
    }
}
