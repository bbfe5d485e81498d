//! `meshwork actor`.

mod change;
mod look;

use meshwork_model::context::Actor;
use meshwork_model::time;
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::OutError;

/// Create and trust actors, which own contexts, send messages and run jobs
///
/// An actor is a public key, with a number on each node. Everybody who can write to database 0 of the store owns the
/// node, and can add actors to it.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ActorCommand {
    Create(change::Create),
    List(look::List),
    Show(look::Show),
    Trust(change::Trust),
    Rotate(change::Rotate),
    Revoke(change::Revoke),
    GrantNode(change::GrantNode),
    RevokeNode(change::RevokeNode),
}

impl ActorCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Create(create) => create.run(context).await,
            Self::List(list) => list.run(context).await,
            Self::Show(show) => show.run(context).await,
            Self::Trust(trust) => trust.run(context).await,
            Self::Rotate(rotate) => rotate.run(context).await,
            Self::Revoke(revoke) => revoke.run(context).await,
            Self::GrantNode(grant) => grant.run(context).await,
            Self::RevokeNode(revoke) => revoke.run(context).await,
        }
    }
}

/// An actor as JSON.
#[derive(Debug, Serialize)]
struct View<'a> {
    #[serde(flatten)]
    actor: &'a Actor,
    /// Path of the key file, if this command has written it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_file: Option<String>,
}

/// Prints what a change made: the number, or all as JSON.
fn print_changed(
    context: &mut App,
    actor: &Actor,
    key_file: Option<String>,
) -> Result<(), OutError> {
    match context.out.is_json() {
        true => context.out.json(&View { actor, key_file }),
        false => context.out.line(actor.id),
    }
}

/// Seconds since 1970 for people.
fn when(seconds: u32) -> String {
    time::iso(u64::from(seconds) * 1000)
}
