//! `meshwork action call`.

use std::time::Duration;

use meshwork::runtime::{ActionDelivery, ActionMessage, RunAnswer};
use meshwork_model::nooble::Response;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::in_run::{self, EnclosingRun};
use super::{ActionArgs, Side, action_type, warn_of};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::note;

/// Wait of a call that does not wait: a worker takes no 0.
const SHORTEST: Duration = Duration::from_millis(1);

/// Call a service and print its reply
///
/// Prints the data of the reply on stdout. Exits with 1 if the action failed, and with 4 if no reply came in time;
/// the service may still execute the action then.
#[derive(Debug, clap::Args)]
pub(crate) struct Call {
    #[command(flatten)]
    side: Side,
    /// Service, dot, operation: embedding.generate
    #[arg(value_parser = action_type)]
    action_type: String,
    #[command(flatten)]
    action_args: ActionArgs,
    /// Longest wait for the reply, in seconds; 0: do not wait
    #[arg(long, value_name = "DURATION", default_value = "30", value_parser = parsers::wait)]
    wait: Duration,
    /// Request the reply on a private list of this call, as Nooble4's own clients do
    #[arg(long = "private-reply")]
    private_list: bool,
}

/// A reply, as JSON.
#[derive(Debug, Serialize)]
struct Answered<'a> {
    success: bool,
    correlation_id: Option<&'a str>,
    trace_id: Option<&'a str>,
    task_id: Option<&'a str>,
    data: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

impl Call {
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
        let interrupt = Interrupt::listen()?;
        let client = interrupt
            .or(self.side.client(&self.action_args.origin, context))
            .await?;
        let answered = interrupt.or(client.call(request, self.wait)).await;
        // A late answer would stay in the store: its list gets a TTL.
        client.close().await;
        let response = answered?;
        print(&response, context)?;
        Ok(match response.success() {
            true => Exit::DONE,
            false => Exit::FAILED,
        })
    }

    /// Calls through the worker of the run around this process.
    async fn through(self, run: &EnclosingRun, context: &mut App) -> Result<Exit, CommandError> {
        if self.private_list {
            return Err(in_run::refused("--private-reply"));
        }
        let message = self
            .action_args
            .message(ActionDelivery::Call, &self.action_type)?;
        let wait = self.wait.max(SHORTEST).as_secs_f64();
        let interrupt = Interrupt::listen()?;
        let asks = run.ask(ActionMessage {
            timeout: Some(wait),
            ..message
        });
        let answer = interrupt.or(asks).await?;
        print_answer(answer, context)
    }
}

/// Prints a reply that came through the worker of a run.
fn print_answer(answer: RunAnswer, context: &mut App) -> Result<Exit, CommandError> {
    let failed = answer.failed.as_ref();
    let of_service = failed.filter(|_| answer.ids.is_some());
    if answer.reply.is_none() && of_service.is_none() {
        return Err(in_run::failure(&answer));
    }
    let message = answer.error.as_deref().unwrap_or_default();
    let exit = match of_service {
        None => Exit::DONE,
        Some(_) => Exit::FAILED,
    };
    if context.out.is_json() {
        let ids = answer.ids.unwrap_or_default();
        let error = of_service.map(|fault| {
            json!({
                "error_type": fault.kind, "error_code": fault.code, "message": message, "details": fault.details,
            })
        });
        let error = error.and_then(|error| RawValue::from_string(error.to_string()).ok());
        context.out.json(&Answered {
            success: of_service.is_none(),
            correlation_id: ids.correlation_id.as_deref(),
            trace_id: ids.trace_id.as_deref(),
            task_id: ids.task_id.as_deref(),
            data: answer.reply,
            error,
        })?;
        return Ok(exit);
    }
    if let Some(reply) = &answer.reply {
        context.out.line(reply.get())?;
    }
    if let Some(fault) = of_service {
        let code = fault.code.as_deref().unwrap_or(&fault.kind);
        note(format_args!("{message} ({code})"));
    }
    Ok(exit)
}

fn print(response: &Response, context: &mut App) -> Result<(), CommandError> {
    let raw = |text: String| RawValue::from_string(text).ok();
    let data = response.data.as_ref().map(|data| data.text().to_owned());
    if context.out.is_json() {
        return Ok(context.out.json(&Answered {
            success: response.success(),
            correlation_id: Some(&response.correlation_id),
            trace_id: Some(&response.trace_id),
            task_id: response.task_id.as_deref(),
            data: data.and_then(raw),
            error: response.error.as_ref().and_then(|error| raw(error.write())),
        })?);
    }
    if let Some(data) = data {
        context.out.line(data)?;
    }
    if let Some(error) = &response.error {
        let code = error.error_code.as_deref().unwrap_or(&error.error_type);
        note(format_args!("action failed: {} ({code})", error.message));
    }
    Ok(())
}
