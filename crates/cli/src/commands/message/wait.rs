//! `meshwork message wait`.

use std::time::Duration;

use meshwork::context::{ContextError, ContextHandle, Coordinator, Identity, MessageView, Outcome};
use meshwork_model::context::MessageStatus;
use meshwork_model::keys::context::MessageKey;
use serde::Serialize;
use tokio::time::Instant;

use super::look::outcome;
use super::message_key;
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;

/// Interval of polls.
const LOOK_EVERY: Duration = Duration::from_millis(100);

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
        let (me, handle) = self.args.open(context).await?;
        let coordinator = super::without_supervisor(context, handle.node()).await?;
        let view = until_ended(
            &handle,
            &me,
            self.message,
            coordinator.as_ref(),
            self.timeout,
        )
        .await?;
        print(context, &handle, &me, &view).await
    }
}

/// Waits until a message is in a final state. On a data directory, delivers messages meanwhile.
pub(super) async fn until_ended(
    handle: &ContextHandle,
    me: &Identity,
    key: MessageKey,
    coordinator: Option<&Coordinator>,
    patience: Option<Duration>,
) -> Result<MessageView, CommandError> {
    let until = patience.map(|patience| Instant::now() + patience);
    loop {
        if let Some(coordinator) = coordinator {
            coordinator.settle().await?;
        }
        let view = handle.message(me, key).await?;
        if view.message.status.is_final() {
            return Ok(view);
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            let context = handle.id();
            return Err(ContextError::NotEnded { key, context }.into());
        }
        tokio::time::sleep(LOOK_EVERY).await;
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
pub(super) async fn print(
    context: &mut App,
    handle: &ContextHandle,
    me: &Identity,
    view: &MessageView,
) -> Result<Exit, CommandError> {
    let key = view
        .result
        .as_deref()
        .and_then(|key| handle.keys().parse_message(key.as_bytes()).ok());
    let result = match key {
        Some(key) => Some(handle.message(me, key).await?),
        None => None,
    };
    let processed = view.message.status == MessageStatus::Processed;
    let exit = if processed { Exit::DONE } else { Exit::FAILED };
    if context.out.is_json() {
        let outcome = view.outcome();
        let view = result.as_ref().unwrap_or(view);
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
