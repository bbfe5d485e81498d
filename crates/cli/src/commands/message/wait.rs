//! `meshwork message wait`.

use std::time::Duration;

use meshwork::context::{ContextError, MessageView, Outcome};
use meshwork_model::context::MessageStatus;
use meshwork_model::keys::context::{ContextId, MessageKey};
use serde::Serialize;
use tokio::time::Instant;

use super::look::outcome;
use super::{message_key, params, without_supervisor};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;

/// Interval of polls on the store.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Interval of polls by the API.
const CALL_EVERY: Duration = Duration::from_millis(500);

/// Wait until a message is processed, and print the results of its jobs
#[derive(Debug, clap::Args)]
pub(crate) struct Wait {
    /// Message, as CALLER:ID
    #[arg(value_name = "MESSAGE", value_parser = message_key)]
    message: MessageKey,
    /// Longest wait, in seconds [default: until the message ends, at the latest by its own timeouts]
    #[arg(long, value_name = "DURATION", value_parser = parsers::wait, allow_hyphen_values = true)]
    timeout: Option<Duration>,
    #[command(flatten)]
    args: ContextArgs,
}

impl Wait {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let of = self.args.need_for_calls(context).await?;
        wait_for(context, (of, self.message), self.timeout).await
    }
}

/// Waits until a message is in a final state, and prints its outcome.
pub(super) async fn wait_for(
    context: &mut App,
    (of, key): (ContextId, MessageKey),
    patience: Option<Duration>,
) -> Result<Exit, CommandError> {
    let view = until_ended(context, (of, key), patience).await?;
    // The key of the result has the names of its context before the numbers.
    let result = view.result.as_deref();
    let result = result.and_then(|key| key.rsplit_once("message:"));
    let result = result.and_then(|(_, numbers)| MessageKey::of_numbers(numbers).ok());
    let result: Option<MessageView> = match result {
        Some(key) => Some(context.call("message.get", &params(of, key)).await?),
        None => None,
    };
    print(context, &view, result.as_ref())
}

/// Waits until a message is in a final state. On a data directory, delivers messages meanwhile.
async fn until_ended(
    context: &App,
    (of, key): (ContextId, MessageKey),
    patience: Option<Duration>,
) -> Result<MessageView, CommandError> {
    let until = patience.map(|patience| Instant::now() + patience);
    let coordinator = without_supervisor(context).await?;
    let pause = match context.remote {
        Some(_) => CALL_EVERY,
        None => LOOK_EVERY,
    };
    loop {
        if let Some(coordinator) = &coordinator {
            coordinator.settle().await?;
        }
        let view: MessageView = context.call("message.get", &params(of, key)).await?;
        if view.message.status.is_final() {
            return Ok(view);
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            return Err(ContextError::NotEnded { key, context: of }.into());
        }
        tokio::time::sleep(pause).await;
    }
}

/// An ended message: its result, or itself if it has none.
#[derive(Debug, Serialize)]
struct Ended<'a> {
    #[serde(flatten)]
    view: &'a MessageView,
    outcome: Option<Outcome>,
}

/// Prints the outcome of a message: the results of its jobs, or the error.
fn print(
    context: &mut App,
    view: &MessageView,
    result: Option<&MessageView>,
) -> Result<Exit, CommandError> {
    let processed = view.message.status == MessageStatus::Processed;
    let exit = if processed { Exit::DONE } else { Exit::FAILED };
    if context.out.is_json() {
        let outcome = view.outcome();
        let view = result.unwrap_or(view);
        context.out.json(&Ended { view, outcome })?;
        return Ok(exit);
    }
    let (key, outcome) = (view.message.key(), outcome(view));
    context.out.line(format_args!("{key}: {outcome}"))?;
    for job in result.iter().flat_map(|result| &result.message.job) {
        let values = job
            .result
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let values: Vec<_> = values.chain(job.error.clone()).collect();
        context.out.line(
            format_args!(
                "{}: {}  {}",
                job.key(),
                job.status.as_str(),
                values.join(" ")
            )
            .to_string()
            .trim_end(),
        )?;
    }
    if let (false, None, Some(log)) = (processed, &result, view.message.logs.last()) {
        context.out.line(&log.text)?;
    }
    Ok(exit)
}
