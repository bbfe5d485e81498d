//! `meshwork actor create`, `trust`, `rotate`, `revoke`, `grant-node` and `revoke-node`.

use std::path::{Path, PathBuf};

use meshwork::context::{KeyFile, Node};
use meshwork_model::actor_key::PublicKey;
use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::ActorId;

use super::print_changed;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::{IdentityArgs, made, unlocked};
use crate::passphrase::NewPassphrase;

/// Create an actor with a new key, and print its number
///
/// The secret key goes into the key file (mode 0600). Everybody who can read the file can act as that actor.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// Number of the actor [default: the next free one]
    #[arg(long, value_name = "N")]
    id: Option<ActorId>,
    #[command(flatten)]
    identity: IdentityArgs,
    #[command(flatten)]
    passphrase: NewPassphrase,
}

impl Create {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let path = self.identity.path()?;
        let passphrase = self.passphrase.read()?;
        let node = node(context).await?;
        if let Some(id) = self.id {
            free(&node, id).await?;
        }
        let key = made(&path, passphrase.as_ref())?;
        let actor = node.trust(key.public(), self.id).await?;
        print_changed(context, &actor, Some(path.display().to_string()))?;
        Ok(Exit::DONE)
    }
}

/// Checks that a number is free before a key file is written for it.
async fn free(node: &Node, id: ActorId) -> Result<(), CommandError> {
    use meshwork::context::ContextError;
    match node.actor(id).await {
        Err(ContextError::NoActor(_)) => Ok(()),
        Ok(_) => Err(ContextError::ActorExists(id).into()),
        Err(error) => Err(error.into()),
    }
}

async fn node(context: &App) -> Result<Node, CommandError> {
    Ok(Node::of(context.client().await?.broker()))
}

/// Register the public key of another actor, and print its number on this node
#[derive(Debug, clap::Args)]
pub(crate) struct Trust {
    /// Public key in 64 hexadecimal digits, or a key file
    #[arg(value_name = "KEY")]
    key: String,
    /// Number of the actor [default: the next free one]
    #[arg(long, value_name = "N")]
    id: Option<ActorId>,
}

impl Trust {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let file = Path::new(&self.key);
        let key: PublicKey = match self.key.parse() {
            Ok(key) => key,
            Err(_) if file.exists() => unlocked(file)?.0.public(),
            Err(source) => {
                let text = &self.key;
                return Err(CommandError::usage(format_args!(
                    "the key {text:?} cannot be trusted: {source}; and no key file of that name exists"
                )));
            }
        };
        let actor = node(context).await?.trust(key, self.id).await?;
        print_changed(context, &actor, None)?;
        Ok(Exit::DONE)
    }
}

/// Replace the key of an actor; the old one is valid for 7 more days
///
/// The new key goes into the key file, encrypted with the same passphrase as the old one, if any. The old key stays
/// beside it, in a file that ends with .old.
#[derive(Debug, clap::Args)]
pub(crate) struct Rotate {
    #[command(flatten)]
    identity: IdentityArgs,
}

impl Rotate {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let path = self.identity.path()?;
        let client = context.client().await?;
        let (node, me, passphrase) = self.identity.unlock(&client).await?;
        // First the new file under another name: a command that is killed between two steps loses no key.
        let (new, old) = (beside(&path, "new"), beside(&path, "old"));
        let key = match new.exists() {
            true => KeyFile::open(&new)?.key(passphrase.as_ref())?,
            false => made(&new, passphrase.as_ref())?,
        };
        let actor = node.rotate(me.id(), key.public()).await?;
        let moved = std::fs::rename(&path, &old).and_then(|()| std::fs::rename(&new, &path));
        moved.map_err(|source| CommandError::system("place for the new key file", &source))?;
        print_changed(context, &actor, Some(path.display().to_string()))?;
        Ok(Exit::DONE)
    }
}

/// The file of the same name with another ending behind it.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Revoke all keys of an actor, at once and permanently
///
/// Its keys of the API, its sockets, streams and sessions of pages end within a second.
#[derive(Debug, clap::Args)]
pub(crate) struct Revoke {
    /// Number of the actor
    #[arg(value_name = "ACTOR")]
    id: ActorId,
}

impl Revoke {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let actor = node(context).await?.revoke(self.id).await?;
        print_changed(context, &actor, None)?;
        Ok(Exit::DONE)
    }
}

/// Give an actor rights outside of contexts: the node's own jobs, queues, workers, schedules, metrics and events
///
/// An actor has none there by itself. Its keys of the API and its logins have the lesser of this scope and their own.
#[derive(Debug, clap::Args)]
pub(crate) struct GrantNode {
    /// Number of the actor
    #[arg(value_name = "ACTOR")]
    id: ActorId,
    /// Methods that it may call there: viewer (read), user (also enqueue, cancel, retry), registrar (read and register
    /// runners), admin (all). Replaces an earlier grant
    #[arg(long, value_name = "SCOPE", value_parser = ["admin", "user", "registrar", "viewer"])]
    scope: String,
}

impl GrantNode {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let scope: Scope = self.scope.parse().map_err(CommandError::usage)?;
        let node = node(context).await?;
        let actor = node.grant_node_scope(self.id, scope).await?;
        print_changed(context, &actor, None)?;
        Ok(Exit::DONE)
    }
}

/// End the rights of an actor outside of contexts, within a second
#[derive(Debug, clap::Args)]
pub(crate) struct RevokeNode {
    /// Number of the actor
    #[arg(value_name = "ACTOR")]
    id: ActorId,
}

impl RevokeNode {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let actor = node(context).await?.revoke_node_scope(self.id).await?;
        print_changed(context, &actor, None)?;
        Ok(Exit::DONE)
    }
}
