//! `meshwork action`: a client of Nooble4's actions for the shell; `meshwork service` answers them.

mod call;
mod dead;
mod gateway;
mod in_run;
mod listen;
mod notify;
mod send;
mod trace;

use std::path::Path;

use clap::builder::NonEmptyStringValueParser;
use meshwork::Target;
use meshwork::protocol::nooble::{Client, Request};
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::nooble::{Dialect, NoobleKeys, service_of};
use meshwork_model::name::Namespace;
use meshwork_model::nooble::{Data, InvalidData};
use meshwork_model::trace::TraceContext;
use serde::de::IgnoredAny;

use crate::app::App;
use crate::args::input;
use crate::args::trace::{of_environment, parent};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;

/// Call services by actions (Nooble4), and look at their traces and dead letters
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ActionCommand {
    Call(call::Call),
    Send(send::Send),
    Notify(notify::Notify),
    Subscribe(listen::Listen),
    Gateway(gateway::Gateway),
    Trace(trace::Trace),
    #[command(subcommand, hide = true)]
    Dead(dead::DeadCommand),
}

impl ActionCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Call(call) => Box::pin(call.run(context)).await,
            Self::Send(send) => Box::pin(send.run(context)).await,
            Self::Notify(notify) => Box::pin(notify.run(context)).await,
            Self::Subscribe(listen) => Box::pin(listen.run(context)).await,
            Self::Gateway(gateway) => Box::pin(gateway.run(context)).await,
            Self::Trace(trace) => trace.run(context).await,
            Self::Dead(dead) => dead.run(context).await,
        }
    }
}

/// Options of the keys and the wire format.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Side {
    /// First part of every key of Nooble4 (--namespace is for jobs)
    #[arg(
        long,
        value_name = "NAME",
        default_value = "nooble4",
        env = "NOOBLE4_PREFIX"
    )]
    prefix: Namespace,
    /// Second part of every key, the same for all communicating services; `development` is the default of Nooble4's own
    /// services
    #[arg(
        long = "env",
        value_name = "NAME",
        default_value = "dev",
        env = "ENVIRONMENT",
        value_parser = part
    )]
    environment: String,
    /// Wire format: streams (as in Nooble4's code) or lists (as in its written standard)
    #[arg(long, value_name = "NAME", default_value = "streams")]
    dialect: Dialect,
}

impl Side {
    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Connects to the store.
    pub(crate) async fn broker(&self, context: &App) -> Result<Nooble, CommandError> {
        let environment = Some(self.environment.as_str());
        let names = || NoobleKeys::new(self.prefix.clone(), environment, self.dialect);
        let connect = async |target: &Target| Nooble::connect(target, names()).await;
        context.connected(connect).await
    }

    /// Connects a client of this name.
    pub(crate) async fn client(&self, name: &str, context: &App) -> Result<Client, CommandError> {
        Ok(Client::new(self.broker(context).await?, name))
    }
}

/// Service in whose name the command sends.
const DEFAULT_ORIGIN: &str = "meshwork";

/// Options of an action, except its type.
#[derive(Debug, clap::Args)]
struct ActionArgs {
    /// Data of the action: a JSON object, @FILE for the content of a file, or - for stdin
    #[arg(default_value = "{}")]
    data: String,
    /// Service in whose name the action is sent
    #[arg(long = "as", value_name = "NAME", default_value = DEFAULT_ORIGIN, value_parser = NonEmptyStringValueParser::new())]
    origin: String,
    /// Context of the service's queue, as a tenant's [default: none]
    #[arg(long, value_name = "NAME", value_parser = part)]
    context: Option<String>,
    /// Task of the action, a UUID [default: a new one]. With --dialect lists, which has no tasks, the trace. Inside a job or
    /// handler, its worker sends the action, with the ids of the run
    #[arg(long, value_name = "ID", value_parser = uuid)]
    task: Option<String>,
    /// Tenant of the action, a UUID [default: a new one]
    #[arg(long, value_name = "ID", value_parser = uuid)]
    tenant: Option<String>,
    /// Session of the action, such as a conversation, a UUID [default: a new one]
    #[arg(long, value_name = "ID", value_parser = uuid)]
    session: Option<String>,
    /// Trace and parent span of the action, in the format of W3C trace context. Workers and services set $TRACEPARENT
    /// for scripts [default: $TRACEPARENT]
    #[arg(long, value_name = "TEXT", value_parser = parent)]
    traceparent: Option<TraceContext>,
}

fn action_type(text: &str) -> Result<String, String> {
    let said = "it names no service: give one, a dot, and what it is to do, as embedding.generate";
    match service_of(text) {
        "" => Err(said.to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Parses a part of the names of keys, such as a context.
pub(crate) fn part(text: &str) -> Result<String, String> {
    let said = match text {
        "" => "it is empty: give a name",
        _ if text.contains(':') => {
            "give a name without colons, which separate the parts of a queue's name"
        }
        _ => return Ok(text.to_owned()),
    };
    Err(said.to_owned())
}

/// Returns a warning about an unusual type, which the wire accepts: Nooble4's services may have such types.
pub(crate) fn odd_type(text: &str) -> Option<&'static str> {
    let empty = text.contains('.') && text.split('.').any(str::is_empty);
    if empty {
        return Some("a part between its dots is empty: is that intended?");
    }
    (!text.contains('.')).then_some("nothing follows the service's name: is that intended?")
}

/// Parses the name of a service.
pub(crate) fn service(text: &str) -> Result<String, String> {
    let said = "give a name without dots: an action is for the service before its first dot";
    let name = part(text)?;
    (!name.contains('.'))
        .then_some(name)
        .ok_or_else(|| said.to_owned())
}

/// Reads the data from its argument.
fn data(written: &str) -> Result<Data, CommandError> {
    let (text, place) = match written.strip_prefix('@') {
        Some(file) => (input::read(Path::new(file))?, format!("the data in {file}")),
        None if written == "-" => (input::read_stdin()?, "the data on stdin".to_owned()),
        None => (written.as_bytes().to_vec(), "the data".to_owned()),
    };
    let text = match String::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let why = format!("it is not UTF-8 from byte {at} on");
            return Err(CommandError::usage(format_args!(
                "{place} is no JSON: {why}"
            )));
        }
    };
    match Data::parse(text.trim()) {
        Err(InvalidData::NoJson) => {
            let why = no_json(&text);
            Err(CommandError::usage(format_args!(
                "{place} is no JSON: {why}"
            )))
        }
        data => Ok(data.map_err(meshwork::protocol::nooble::Error::from)?),
    }
}

/// Describes why a text is not JSON, with line and column.
fn no_json(text: &str) -> String {
    if text.trim().is_empty() {
        return "there is nothing; {} is an empty object".to_owned();
    }
    match serde_json::from_str::<IgnoredAny>(text) {
        Err(error) => error.to_string(),
        Ok(_) => "it is nested too deep, or has a number that is too long".to_owned(),
    }
}

/// Warns about an unusual type before the action is sent.
fn warn_of(action_type: &str) {
    if let Some(odd) = odd_type(action_type) {
        note(format_args!("warning: the type {action_type:?}: {odd}"));
    }
}

fn uuid(text: &str) -> Result<String, String> {
    let said = || "it is no UUID: give one as 01900000-0000-7000-8000-000000000001".to_owned();
    meshwork_model::nooble::uuid(text).ok_or_else(said)
}

impl ActionArgs {
    fn request(&self, action_type: &str, dialect: Dialect) -> Result<Request, CommandError> {
        let mut ids = in_run::ids_of_environment();
        for (id, given) in [
            (&mut ids.task_id, &self.task),
            (&mut ids.tenant_id, &self.tenant),
            (&mut ids.session_id, &self.session),
        ] {
            if let Some(given) = given {
                id.clone_from(given);
            }
        }
        let mut request = Request::with_data(action_type, data(&self.data)?).ids(ids.clone());
        let trace = self.traceparent.clone().or_else(of_environment);
        if let Some(trace) = trace {
            request = request.trace(&trace);
        }
        if let (Dialect::Lists, Some(task)) = (dialect, &self.task) {
            // This wire format has no tasks: the trace groups the actions.
            ids.trace_id.clone_from(task);
            request = request.ids(ids);
        }
        Ok(match &self.context {
            Some(context) => request.context(context),
            None => request,
        })
    }
}
