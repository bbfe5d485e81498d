//! `meshwork actor list` and `show`.

use meshwork::context::Node;
use meshwork::model::context::Actor;
use meshwork::model::keys::context::ActorId;
use serde::Serialize;

use super::when;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::IdentityArgs;
use crate::out::{Column, Row};

/// List the actors of the node
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let node = Node::of(context.client().await?.broker());
        print(context, &node.actors().await?)
    }
}

/// Show an actor; without a number, who you are
///
///   meshwork actor show
///   meshwork actor show 12 --json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Show {
    /// His number
    #[arg(value_name = "ACTOR")]
    id: Option<ActorId>,
    #[command(flatten)]
    identity: IdentityArgs,
}

impl Show {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let actor = match self.id {
            Some(id) => Node::of(context.client().await?.broker()).actor(id).await?,
            None => {
                let (node, me) = self.identity.open(context).await?;
                node.actor(me.id()).await?
            }
        };
        print(context, &[actor])
    }
}

fn print(context: &mut Context, actors: &[Actor]) -> Result<Exit, CommandError> {
    context.out.rows(actors.iter().map(Listed))?;
    Ok(Exit::DONE)
}

#[derive(Debug, Serialize)]
struct Listed<'a>(&'a Actor);

impl Row for Listed<'_> {
    fn columns() -> Vec<Column> {
        Column::named(["id", "public key", "created", "state"], &["id"])
    }

    fn cells(&self) -> Vec<String> {
        let actor = self.0;
        let state = match (actor.revoked_at, actor.old_until) {
            (Some(at), _) => format!("revoked {}", when(at)),
            (None, Some(until)) => format!("old key until {}", when(until)),
            (None, None) => "trusted".to_owned(),
        };
        let (id, key) = (actor.id.to_string(), actor.pubkey.to_string());
        vec![id, key, when(actor.created_at), state]
    }
}
