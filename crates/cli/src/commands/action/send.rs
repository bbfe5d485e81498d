//! `meshwork action send`.

use clap::builder::NonEmptyStringValueParser;
use meshwork::runtime::{ActionDelivery, ActionMessage};
use serde::Serialize;
use serde_json::Value;

use super::in_run::{self, EnclosingRun};
use super::{ActionArgs, Side, action_type, warn_of};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Send an action without waiting for a reply, and print its id
///
/// With --callback the reply comes as a callback: `meshwork action subscribe --callback` prints it. The printed id is
/// then the correlation id of request and callback.
#[derive(Debug, clap::Args)]
pub(crate) struct Send {
    #[command(flatten)]
    side: Side,
    /// Service, dot, operation: embedding.generate
    #[arg(value_parser = action_type)]
    action_type: String,
    #[command(flatten)]
    action_args: ActionArgs,
    /// Request the reply as a callback of this event, for subscribers in the name of --as
    #[arg(long, value_name = "EVENT", value_parser = NonEmptyStringValueParser::new())]
    callback: Option<String>,
    /// Any JSON that is returned with the callback; `action subscribe --json` prints both
    #[arg(long, value_name = "JSON", requires = "callback", default_value = "null", value_parser = json)]
    remember: Value,
    /// Let the callback come to a private list, as with Nooble4's clients
    #[arg(long = "private-reply", requires = "callback")]
    private_list: bool,
}

#[derive(Debug, Serialize)]
struct Sent<'a> {
    action_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
    trace_id: Option<&'a str>,
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))
}

impl Send {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        warn_of(&self.action_type);
        if let Some(run) = EnclosingRun::find(context) {
            return self.through(&run, context).await;
        }
        let mut request = self
            .action_args
            .request(&self.action_type, self.side.dialect)?;
        if self.private_list {
            request = request.private_list();
        }
        let client = self.side.client(&self.action_args.origin, context).await?;
        let action_id = request.action_id().to_owned();
        let trace_id = request.trace_id().map(str::to_owned);
        let correlation_id = match &self.callback {
            Some(event) => {
                let sent = client.send_with_callback(request, event, &self.remember);
                Some(sent.await?)
            }
            None => client.send(request).await.map(|_| None)?,
        };
        if context.out.is_json() {
            context.out.json(&Sent {
                action_id: &action_id,
                correlation_id: correlation_id.as_deref(),
                trace_id: trace_id.as_deref(),
            })?;
        } else {
            context.out.line(correlation_id.unwrap_or(action_id))?;
        }
        Ok(Exit::DONE)
    }

    /// Sends through the worker of the run around this process.
    async fn through(self, run: &EnclosingRun, context: &mut App) -> Result<Exit, CommandError> {
        if self.private_list {
            return Err(in_run::refused("--private-reply"));
        }
        let message = self
            .action_args
            .message(ActionDelivery::Send, &self.action_type)?;
        let asks = run.ask(ActionMessage {
            callback: self.callback,
            remember: self.remember,
            ..message
        });
        let answer = asks.await?;
        let (Some(ids), true) = (&answer.ids, answer.reply.is_some()) else {
            return Err(in_run::failure(&answer));
        };
        let (action_id, correlation_id) = (ids.action_id.as_str(), ids.correlation_id.as_deref());
        if context.out.is_json() {
            context.out.json(&Sent {
                action_id,
                correlation_id,
                trace_id: ids.trace_id.as_deref(),
            })?;
        } else {
            context.out.line(correlation_id.unwrap_or(action_id))?;
        }
        Ok(Exit::DONE)
    }
}
