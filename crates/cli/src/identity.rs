//! Who a command acts as, and in which context. On a store without actors or contexts the first use makes them.

use std::env;
use std::path::{Path, PathBuf};

use meshwork::Client;
use meshwork::context::{
    ContextError, ContextHandle, Identity, KeyFile, Node, Passphrase, new_key, write_key,
};
use meshwork::model::access::Role;
use meshwork::model::actor_key::SecretKey;
use meshwork::model::keys::context::ContextId;

use crate::context::Context;
use crate::error::CommandError;
use crate::out::note;
use crate::passphrase;

/// The options that say who acts.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct IdentityArgs {
    /// The key file of the actor who acts [default: meshwork/actor.key in $XDG_CONFIG_HOME, else in ~/.config]
    #[arg(
        long,
        alias = "actor-key",
        value_name = "FILE",
        env = "MESHWORK_ACTOR_KEY"
    )]
    pub(crate) key: Option<PathBuf>,
}

/// The options that say who acts in which context.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ContextArgs {
    /// The context [default: the only one of the node]
    #[arg(long, value_name = "ID")]
    pub(crate) context: Option<ContextId>,
    #[command(flatten)]
    pub(crate) identity: IdentityArgs,
}

impl IdentityArgs {
    /// The key file.
    pub(crate) fn path(&self) -> Result<PathBuf, CommandError> {
        if let Some(path) = &self.key {
            return Ok(path.clone());
        }
        let set = |name| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        // The XDG specification asks to ignore a relative path.
        let config = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        let config = config.or_else(|| set("HOME").map(|home| home.join(".config")));
        let config = config.ok_or_else(|| {
            CommandError::usage(
                "there is no place for the key file of an actor: neither XDG_CONFIG_HOME nor HOME is set; name it with --key",
            )
        })?;
        Ok(config.join("meshwork").join("actor.key"))
    }

    /// The node, and the actor of the key file. Where neither the file nor any actor is there, both are made.
    pub(crate) async fn open(&self, context: &Context) -> Result<(Node, Identity), CommandError> {
        self.over(&context.client().await?).await
    }

    /// The same, over a connection that is there.
    pub(crate) async fn over(&self, client: &Client) -> Result<(Node, Identity), CommandError> {
        let (node, me, _) = self.unlock(client).await?;
        Ok((node, me))
    }

    /// The same, with the passphrase of the key file if that is encrypted.
    pub(crate) async fn unlock(
        &self,
        client: &Client,
    ) -> Result<(Node, Identity, Option<Passphrase>), CommandError> {
        let path = self.path()?;
        let node = Node::of(client.broker());
        let there = path.exists();
        if !there && !node.actors().await?.is_empty() {
            return Err(CommandError::usage(format_args!(
                "this node has actors, and {} with your key is not there: name your key file with --key, or make an actor \
                 with `meshwork actor create`",
                path.display()
            )));
        }
        let (key, passphrase) = match there {
            true => unlocked(&path)?,
            false => (made(&path, None)?, None),
        };
        match node.identify(key.clone()).await {
            Err(ContextError::UnknownKey { .. }) if node.actors().await?.is_empty() => {
                let actor = node.trust(key.public(), None).await?;
                note(format_args!(
                    "made actor {}; its key is in {}",
                    actor.id,
                    path.display()
                ));
                Ok((node.clone(), node.identify(key).await?, passphrase))
            }
            identified => Ok((node, identified?, passphrase)),
        }
    }
}

/// A new key, in a file that is encrypted if there is a passphrase.
pub(crate) fn made(
    path: &Path,
    passphrase: Option<&Passphrase>,
) -> Result<SecretKey, CommandError> {
    let key = new_key();
    write_key(path, &key, passphrase)?;
    Ok(key)
}

/// The key of a file, and its passphrase if it is encrypted.
pub(crate) fn unlocked(path: &Path) -> Result<(SecretKey, Option<Passphrase>), CommandError> {
    let file = KeyFile::open(path)?;
    let passphrase = match file.is_encrypted() {
        true => passphrase::of(path)?,
        false => None,
    };
    Ok((file.key(passphrase.as_ref())?, passphrase))
}

impl ContextArgs {
    /// The actor, and the context. Where no context is there and none is named, the first is made.
    pub(crate) async fn open(
        &self,
        context: &Context,
    ) -> Result<(Identity, ContextHandle), CommandError> {
        let (node, me) = self.identity.open(context).await?;
        let handle = find(&node, &me, self.context).await?;
        Ok((me, handle))
    }
}

/// The context that is named, or the only one; the first is made.
pub(crate) async fn find(
    node: &Node,
    me: &Identity,
    id: Option<ContextId>,
) -> Result<ContextHandle, CommandError> {
    if let Some(id) = id {
        return Ok(node.context(id).await?);
    }
    let mut contexts = node.contexts().await?;
    match contexts.len() {
        0 => {
            let made = node.create_context(me, None, None).await?;
            // So that it can be tried at once: an admin could do this himself.
            made.grant(me, Role::Executor, me.id()).await?;
            note(format_args!(
                "made context {}, of which {me} is admin and executor",
                made.id()
            ));
            Ok(made)
        }
        1 => Ok(contexts.remove(0)),
        many => Err(CommandError::usage(format_args!(
            "the node has {many} contexts: say which one with --context, `meshwork context list` shows them"
        ))),
    }
}
