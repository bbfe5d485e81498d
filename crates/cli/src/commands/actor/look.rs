//! `meshwork actor list` and `show`.

use meshwork::context::Node;
use meshwork::view::ActorView;
use meshwork_model::keys::context::ActorId;
use serde::Serialize;
use serde_json::{Map, json};

use super::when;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::IdentityArgs;
use crate::out::{Column, Row};

/// List the actors of the node
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

impl List {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let actors: Vec<_> = match context.near().await? {
            Some(client) => {
                let actors = Node::of(client.broker()).actors().await?;
                actors.iter().map(ActorView::from).collect()
            }
            None => {
                let all = ("actors", usize::MAX);
                context.pages("actor.list", Map::new(), all).await?.0
            }
        };
        let listed = actors.into_iter().map(|actor| Listed {
            actor,
            key_file_encrypted: None,
        });
        context.out.rows(listed)?;
        Ok(Exit::DONE)
    }
}

/// Show an actor; without a number, the actor of the key file
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// Number of the actor
    #[arg(value_name = "ACTOR")]
    id: Option<ActorId>,
    #[command(flatten)]
    identity: IdentityArgs,
}

impl Show {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        if context.remote.is_some() {
            let Some(id) = self.id else {
                return Err(CommandError::usage(
                    "give the number of the actor with --api",
                ));
            };
            let listed = Listed {
                actor: context.call("actor.get", &json!({"id": id.0})).await?,
                key_file_encrypted: None,
            };
            context.out.rows([listed])?;
            return Ok(Exit::DONE);
        }
        let client = context.client().await?;
        let listed = match self.id {
            Some(id) => Listed {
                actor: (&Node::of(client.broker()).actor(id).await?).into(),
                key_file_encrypted: None,
            },
            None => {
                let (node, me, passphrase) = self.identity.unlock(&client).await?;
                Listed {
                    actor: (&node.actor(me.id()).await?).into(),
                    key_file_encrypted: Some(passphrase.is_some()),
                }
            }
        };
        context.out.rows([listed])?;
        Ok(Exit::DONE)
    }
}

/// An actor, and whether the key file of whoever asks is encrypted.
#[derive(Debug, Serialize)]
struct Listed {
    #[serde(flatten)]
    actor: ActorView,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_file_encrypted: Option<bool>,
}

impl Row for Listed {
    fn columns() -> Vec<Column> {
        Column::named(["id", "public key", "created", "state"], &["id"])
    }

    fn cells(&self) -> Vec<String> {
        let actor = &self.actor;
        let mut state = match (actor.revoked_at, actor.old_until) {
            (Some(at), _) => format!("revoked {}", when(at)),
            (None, Some(until)) => format!("old key until {}", when(until)),
            (None, None) => "trusted".to_owned(),
        };
        if let Some(scope) = &actor.node_scope {
            state.push_str(", node ");
            state.push_str(scope);
        }
        if self.key_file_encrypted == Some(true) {
            state.push_str(", key file encrypted");
        }
        let (id, key) = (actor.id.to_string(), actor.pubkey.clone());
        vec![id, key, when(actor.created_at), state]
    }
}
