//! `meshwork key`: keys of the API.

use meshwork_model::keys::context::{ActorId, ContextId};
use meshwork_model::name::ApiKeyName;
use meshwork_model::schedule::wall_time::Direction;
use meshwork_model::time;
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::args::moment::{self, Moment, ZoneArg};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row, note};
use crate::scope::ActorArgs;

/// Make, list and revoke keys of the API
///
/// Clients of `meshwork supervisor --listen` give a key: `authorization: Bearer mwk_…`. The store has only its digest.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum KeyCommand {
    Create(Create),
    List(List),
    #[command(visible_alias = "delete")]
    Revoke(Named),
    Rotate(Rotate),
}

/// Make a key, and print it once
///
/// A key of no actor calls outside of contexts. A key of an actor calls in contexts, as the roles of the actor allow; outside of
/// them it has what `meshwork actor grant-node` has given the actor. With --context it calls in that context alone.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// Name of the key, which is part of it
    name: ApiKeyName,
    /// Methods that it may call: viewer (read), user (also enqueue, cancel, retry), registrar (read and register
    /// runners), admin (all). Default with --context: viewer
    #[arg(long, value_name = "SCOPE", required_unless_present = "context",
          value_parser = ["admin", "user", "registrar", "viewer"])]
    scope: Option<String>,
    /// Actor whose roles decide in contexts; without one the key has no access there [default with --context: the actor of
    /// the key file]
    #[arg(long, value_name = "N")]
    actor: Option<ActorId>,
    /// The only context in which it may call
    #[arg(long, value_name = "ID")]
    context: Option<ContextId>,
    /// Refuse the key from this time on: 2027-01-31, '2027-01-31 12:00', +90d
    #[arg(long, value_name = "WHEN", value_parser = moment::future)]
    expires: Option<Moment>,
    #[command(flatten)]
    zone: ZoneArg,
    #[command(flatten)]
    identity: ActorArgs,
}

/// List the keys, without their secrets
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

/// Revoke a key: it is refused within a second
#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    /// Name of the key
    name: ApiKeyName,
}

/// Replace the secret of a key, and print the new one once; the old one is refused within a second
#[derive(Debug, clap::Args)]
pub(crate) struct Rotate {
    /// Name of the key
    name: ApiKeyName,
}

/// A key in the list.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Listed(Value);

impl Row for Listed {
    fn columns() -> Vec<Column> {
        let names = ["name", "scope", "actor", "context", "created", "expires"];
        Column::named(names, &[])
    }

    fn cells(&self) -> Vec<String> {
        let names = [
            "name",
            "scope",
            "actor",
            "context",
            "created_at",
            "expires_at",
        ];
        let cells = names.map(|name| match &self.0[name] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        });
        cells.to_vec()
    }
}

impl KeyCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Create(create) => create.run(context).await,
            Self::List(_) => list(context).await,
            Self::Revoke(named) => revoke(&named.name, context).await,
            Self::Rotate(rotate) => {
                let params = json!({"name": rotate.name.as_str()});
                made("key.rotate", &params, context).await
            }
        }
    }
}

impl Create {
    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let actor = match (self.actor, self.context) {
            (None, Some(_)) if context.remote.is_some() => {
                return Err(CommandError::usage(
                    "--context with --api needs --actor: the key file of an actor counts at the store alone",
                ));
            }
            (None, Some(_)) => Some(self.identity.identity().open(context).await?.1.id()),
            (actor, _) => actor,
        };
        let zone = self.zone.zone(&[self.expires])?;
        let expires = self.expires.map(|moment| {
            let ms = moment.ms(meshwork::host_ms(), &zone, Direction::Next);
            ms.map(time::iso)
        });
        let params = json!({
            "name": self.name.as_str(),
            "scope": self.scope.as_deref().unwrap_or("viewer"),
            "actor": actor.map(|actor| actor.to_string()),
            "context": self.context.map(ContextId::get),
            "expires_at": expires.transpose().map_err(CommandError::usage)?,
        });
        made("key.create", &params, context).await
    }
}

/// Calls a method that makes a key, and prints the key.
async fn made(method: &str, params: &Value, context: &mut App) -> Result<Exit, CommandError> {
    let made: Value = context.call(method, params).await?;
    if context.out.is_json() {
        context.out.json(&made)?;
        return Ok(Exit::DONE);
    }
    note("the key is shown only now");
    context.out.line(made["key"].as_str().unwrap_or_default())?;
    Ok(Exit::DONE)
}

async fn list(context: &mut App) -> Result<Exit, CommandError> {
    let found: Value = context.call("key.list", &json!({"limit": 1000})).await?;
    for text in found["unreadable"].as_array().into_iter().flatten() {
        note(text.as_str().unwrap_or_default());
    }
    let keys = found["keys"].as_array().cloned().unwrap_or_default();
    context.out.rows(keys.into_iter().map(Listed))?;
    Ok(Exit::DONE)
}

async fn revoke(name: &ApiKeyName, context: &mut App) -> Result<Exit, CommandError> {
    let params = json!({"name": name.as_str()});
    let revoked: Value = context.call("key.revoke", &params).await?;
    match context.out.is_json() {
        true => context.out.json(&revoked)?,
        false => context.out.line(format_args!("{name} revoked"))?,
    }
    Ok(Exit::DONE)
}
