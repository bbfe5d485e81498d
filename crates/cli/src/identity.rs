//! Identity of a command: its actor and context. On a store without actors or contexts, the first flow, message, worker
//! or context creates them; commands that read create nothing.

use std::env;
use std::path::{Path, PathBuf};

use meshwork::Client;
use meshwork::context::{
    ContextError, ContextHandle, Identity, KeyFile, Node, Passphrase, new_key, write_key,
};
use meshwork::view::ContextSummary;
use meshwork_model::actor_key::SecretKey;
use meshwork_model::keys::context::ContextId;
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;
use crate::passphrase;

/// Options that select the actor.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct IdentityArgs {
    /// Key file of the actor [default: meshwork/actor.key in $XDG_CONFIG_HOME, else in ~/.config]
    #[arg(
        long,
        visible_alias = "actor-key",
        value_name = "FILE",
        env = "MESHWORK_ACTOR_KEY"
    )]
    pub(crate) key: Option<PathBuf>,
}

/// Options that select the actor and the context.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ContextArgs {
    /// The context [default: the only one of the node]
    #[arg(long, value_name = "ID")]
    pub(crate) context: Option<ContextId>,
    #[command(flatten)]
    pub(crate) identity: IdentityArgs,
}

impl IdentityArgs {
    /// Returns the path of the key file.
    pub(crate) fn path(&self) -> Result<PathBuf, CommandError> {
        if let Some(path) = &self.key {
            return Ok(path.clone());
        }
        Ok(config_folder("--key")?.join("actor.key"))
    }

    /// Opens the node with the actor of the key file. Creates nothing.
    pub(crate) async fn open(&self, context: &App) -> Result<(Node, Identity), CommandError> {
        let (node, me, _) = self.unlock(&context.client().await?).await?;
        Ok((node, me))
    }

    /// Same as [`Self::open`] over an existing connection, and returns the passphrase if the key file is encrypted.
    pub(crate) async fn unlock(
        &self,
        client: &Client,
    ) -> Result<(Node, Identity, Option<Passphrase>), CommandError> {
        let found = self.known(client).await?;
        let me = found.me.ok_or_else(no_actor)?;
        let passphrase = found.key.and_then(|(_, passphrase)| passphrase);
        Ok((found.node, me, passphrase))
    }

    /// Returns the actor of the key file, if there are both.
    pub(crate) async fn find(&self, client: &Client) -> Result<Option<Identity>, CommandError> {
        match self.path()?.exists() {
            true => Ok(self.known(client).await?.me),
            false => Ok(None),
        }
    }

    /// Same as [`Self::open`], over an existing connection. On a node without actors, creates the first one, with a key
    /// file if there is none.
    pub(crate) async fn create(&self, client: &Client) -> Result<(Node, Identity), CommandError> {
        let Found { node, key, me } = self.known(client).await?;
        if let Some(me) = me {
            return Ok((node, me));
        }
        let path = self.path()?;
        let key = match key {
            Some((key, _)) => key,
            None => made(&path, None)?,
        };
        let actor = node.trust(key.public(), None).await?;
        note(format_args!(
            "created actor {}; its key is in {}",
            actor.id,
            path.display()
        ));
        let me = node.identify(key).await?;
        Ok((node, me))
    }

    /// Finds the key file and its actor. Both may be absent on a node without actors.
    async fn known(&self, client: &Client) -> Result<Found, CommandError> {
        let path = self.path()?;
        let node = Node::of(client.broker());
        if !path.exists() {
            if !node.actors().await?.is_empty() {
                return Err(CommandError::usage(format_args!(
                    "this node has actors, and your key file {} does not exist: name your key file with --key, or create an actor \
                     with `meshwork actor create`",
                    path.display()
                )));
            }
            let (key, me) = (None, None);
            return Ok(Found { node, key, me });
        }
        let (key, passphrase) = unlocked(&path)?;
        let me = match node.identify(key.clone()).await {
            Err(ContextError::UnknownKey { .. }) if node.actors().await?.is_empty() => None,
            identified => Some(identified?),
        };
        let key = Some((key, passphrase));
        Ok(Found { node, key, me })
    }
}

/// Returns the folder of key files; `option` names a key file elsewhere.
pub(crate) fn config_folder(option: &str) -> Result<PathBuf, CommandError> {
    let set = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    // The XDG specification requires to ignore a relative path.
    let config = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let config = config.or_else(|| set("HOME").map(|home| home.join(".config")));
    let config = config.ok_or_else(|| {
        CommandError::usage(format_args!(
            "no folder for the key file: neither XDG_CONFIG_HOME nor HOME is set; name the file with {option}"
        ))
    })?;
    Ok(config.join("meshwork"))
}

/// A node, the key of the user, and its actor.
struct Found {
    node: Node,
    key: Option<(SecretKey, Option<Passphrase>)>,
    me: Option<Identity>,
}

fn no_actor() -> CommandError {
    let why =
        "this node has no actor: `meshwork actor create` creates one, as does the first context";
    CommandError::new(Exit::NO_JOB, why)
}

fn no_context() -> CommandError {
    let why = "this node has no context: `meshwork context create` creates one, as does the first flow or message";
    CommandError::new(Exit::NO_JOB, why)
}

/// Creates a key, in a file that is encrypted if there is a passphrase.
pub(crate) fn made(
    path: &Path,
    passphrase: Option<&Passphrase>,
) -> Result<SecretKey, CommandError> {
    let key = new_key();
    write_key(path, &key, passphrase)?;
    Ok(key)
}

/// Reads the key of a file, and the passphrase if the file is encrypted.
pub(crate) fn unlocked(path: &Path) -> Result<(SecretKey, Option<Passphrase>), CommandError> {
    let file = KeyFile::open(path)?;
    let passphrase = match file.is_encrypted() {
        true => passphrase::of(path)?,
        false => None,
    };
    Ok((file.key(passphrase.as_ref())?, passphrase))
}

impl ContextArgs {
    /// Returns the named context, or the only one, if there is any. Creates nothing.
    pub(crate) async fn existing(
        &self,
        context: &App,
    ) -> Result<Option<ContextHandle>, CommandError> {
        let node = Node::of(context.client().await?.broker());
        existing(&node, self.context).await
    }

    /// Opens the actor and the context. Creates nothing.
    pub(crate) async fn open(
        &self,
        context: &App,
    ) -> Result<(Identity, ContextHandle), CommandError> {
        self.find(context).await?.ok_or_else(no_context)
    }

    /// Same as [`Self::open`], for lists: `None` if the node has no context and none is named.
    pub(crate) async fn find(
        &self,
        context: &App,
    ) -> Result<Option<(Identity, ContextHandle)>, CommandError> {
        let Some(handle) = self.existing(context).await? else {
            return Ok(None);
        };
        let (_, me) = self.identity.open(context).await?;
        Ok(Some((me, handle)))
    }

    /// Returns the named context, or the only one, for calls of methods of the API: on the store as the actor, else by the
    /// API. `None` if the node has no context and none is named.
    pub(crate) async fn for_calls(
        &self,
        context: &mut App,
    ) -> Result<Option<ContextId>, CommandError> {
        if context.remote.is_some() {
            return self.by_api(context).await;
        }
        let Some((me, handle)) = self.find(context).await? else {
            return Ok(None);
        };
        context.actor = Some(me.id());
        Ok(Some(handle.id()))
    }

    /// Same as [`Self::for_calls`]; an error if there is no context.
    pub(crate) async fn need_for_calls(
        &self,
        context: &mut App,
    ) -> Result<ContextId, CommandError> {
        self.for_calls(context).await?.ok_or_else(no_context)
    }

    /// Adds the context to parameters of the API, an object.
    pub(crate) async fn params(
        &self,
        context: &mut App,
        others: Value,
    ) -> Result<Map<String, Value>, CommandError> {
        let id = self.need_for_calls(context).await?;
        let Value::Object(mut all) = others else {
            return Ok(Map::new());
        };
        all.insert("context".to_owned(), id.get().into());
        Ok(all)
    }

    /// Same as [`Self::for_calls`]. On the store, creates what [`Self::create`] does.
    pub(crate) async fn create_for_calls(
        &self,
        context: &mut App,
    ) -> Result<ContextId, CommandError> {
        if context.remote.is_some() {
            return self.need_for_calls(context).await;
        }
        let (me, handle) = self.create(context).await?;
        context.actor = Some(me.id());
        Ok(handle.id())
    }

    async fn by_api(&self, context: &App) -> Result<Option<ContextId>, CommandError> {
        if self.context.is_some() {
            return Ok(self.context);
        }
        let all = context.pages("context.list", Map::new(), ("contexts", usize::MAX));
        let (contexts, _): (Vec<ContextSummary>, _) = all.await?;
        match &contexts[..] {
            [] => Ok(None),
            [only] => Ok(ContextId::new(only.id)),
            many => Err(which_of(many.len())),
        }
    }

    /// Same as [`Self::open`]. If no context exists and none is named, creates the first one, and the first actor.
    pub(crate) async fn create(
        &self,
        context: &App,
    ) -> Result<(Identity, ContextHandle), CommandError> {
        let client = context.client().await?;
        if let Some(id) = self.context {
            // An unknown context creates no actor.
            Node::of(client.broker()).context(id).await?;
        }
        let (node, me) = self.identity.create(&client).await?;
        let handle = find(&node, &me, self.context).await?;
        Ok((me, handle))
    }
}

/// Returns the named context, or the only one. Creates the first one.
pub(crate) async fn find(
    node: &Node,
    me: &Identity,
    id: Option<ContextId>,
) -> Result<ContextHandle, CommandError> {
    if let Some(found) = existing(node, id).await? {
        return Ok(found);
    }
    let made = node.create_context(me, None, None).await?;
    note(format_args!(
        "created context {}, with {me} as admin and executor",
        made.id()
    ));
    Ok(made)
}

/// Returns the named context, or the only one, if there is any.
async fn existing(
    node: &Node,
    id: Option<ContextId>,
) -> Result<Option<ContextHandle>, CommandError> {
    if let Some(id) = id {
        return Ok(Some(node.context(id).await?));
    }
    let mut contexts = node.contexts().await?;
    match contexts.len() {
        0 | 1 => Ok(contexts.pop()),
        many => Err(which_of(many)),
    }
}

fn which_of(contexts: usize) -> CommandError {
    CommandError::usage(format_args!(
        "the node has {contexts} contexts: select one with --context; `meshwork context list` shows them"
    ))
}
