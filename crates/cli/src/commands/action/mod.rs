//! `meshwork action`: what a client of Nooble4's actions does, from the shell; `meshwork service` answers them.

mod call;
mod dead;
mod gateway;
mod listen;
mod notify;
mod send;
mod trace;

use clap::builder::NonEmptyStringValueParser;
use meshwork::model::keys::nooble::{Dialect, QueueManager, service_of};
use meshwork::model::name::Namespace;
use meshwork::model::nooble::Data;
use meshwork::source::nooble::{Client, Ids, Request};
use meshwork_broker::nooble::Nooble;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Call services by actions (Nooble4), and look at how actions went
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ActionCommand {
    Call(call::Call),
    Send(send::Send),
    Notify(notify::Notify),
    Listen(listen::Listen),
    Gateway(gateway::Gateway),
    Trace(trace::Trace),
    #[command(subcommand)]
    Dead(dead::DeadCommand),
}

impl ActionCommand {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        match self {
            Self::Call(call) => Box::pin(call.run(context)).await,
            Self::Send(send) => Box::pin(send.run(context)).await,
            Self::Notify(notify) => Box::pin(notify.run(context)).await,
            Self::Listen(listen) => Box::pin(listen.run(context)).await,
            Self::Gateway(gateway) => Box::pin(gateway.run(context)).await,
            Self::Trace(trace) => trace.run(context).await,
            Self::Dead(dead) => dead.run(context).await,
        }
    }
}

/// Whose names, and which wire.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Side {
    /// The first part of every key of Nooble4
    #[arg(
        long,
        value_name = "NAME",
        default_value = "nooble4",
        env = "NOOBLE4_PREFIX"
    )]
    prefix: Namespace,
    /// The second part; Nooble4's own services are in `development` unless they are told otherwise
    #[arg(
        long = "env",
        value_name = "NAME",
        default_value = "dev",
        env = "ENVIRONMENT"
    )]
    environment: String,
    /// Its wire: streams (its code) or lists (its standard as it was written down)
    #[arg(long, value_name = "NAME", default_value = "streams")]
    dialect: Dialect,
}

impl Side {
    /// The verbs, connected.
    pub(crate) async fn broker(&self, context: &Context) -> Result<Nooble, Error> {
        let target = context.place.target()?;
        let names = QueueManager::new(self.prefix.clone(), Some(&self.environment), self.dialect);
        let broker = Nooble::connect(&target, names).await;
        Ok(broker.map_err(meshwork::Error::from)?)
    }

    /// A client of this name, connected.
    pub(crate) async fn client(&self, name: &str, context: &Context) -> Result<Client, Error> {
        Ok(Client::new(self.broker(context).await?, name))
    }
}

/// What is asked.
#[derive(Debug, clap::Args)]
struct Asked {
    /// The service, a dot, and what it is to do: embedding.generate
    #[arg(value_parser = action_type)]
    action_type: String,
    /// What it is given, an object in JSON
    #[arg(default_value = "{}", value_parser = data)]
    data: Data,
    /// The service in whose name it is asked
    #[arg(long = "as", value_name = "NAME", default_value = "meshwork", value_parser = NonEmptyStringValueParser::new())]
    origin: String,
    /// The service's queue of this context, as a tenant's
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The task that it belongs to, a UUID; a new one otherwise
    #[arg(long, value_name = "ID", value_parser = uuid)]
    task: Option<String>,
    /// Whose it is, a UUID; a new one otherwise
    #[arg(long, value_name = "ID", value_parser = uuid)]
    tenant: Option<String>,
    /// The conversation, a UUID; a new one otherwise
    #[arg(long, value_name = "ID", value_parser = uuid)]
    session: Option<String>,
}

fn action_type(text: &str) -> Result<String, String> {
    let said = "it names no service: give one, a dot, and what it is to do, as embedding.generate";
    match service_of(text) {
        "" => Err(said.to_owned()),
        _ => Ok(text.to_owned()),
    }
}

fn data(text: &str) -> Result<Data, String> {
    Data::parse(text).map_err(|error| error.to_string())
}

fn uuid(text: &str) -> Result<String, String> {
    let said = || "it is no UUID: give one as 01900000-0000-7000-8000-000000000001".to_owned();
    meshwork::model::nooble::uuid(text).ok_or_else(said)
}

impl Asked {
    fn request(&self) -> Request {
        let mut ids = Ids::default();
        for (id, given) in [
            (&mut ids.task_id, &self.task),
            (&mut ids.tenant_id, &self.tenant),
            (&mut ids.session_id, &self.session),
        ] {
            if let Some(given) = given {
                id.clone_from(given);
            }
        }
        let request = Request::with_data(&self.action_type, self.data.clone()).ids(ids);
        match &self.context {
            Some(context) => request.context(context),
            None => request,
        }
    }
}
