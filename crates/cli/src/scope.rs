//! Context of a command: its options, the ids of its jobs, and the client.

use std::collections::BTreeSet;
use std::path::PathBuf;

use meshwork::Client;
use meshwork::context::{ContextHandle, Identity, Node};
use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::{ContextId, ContextKeys};
use meshwork_model::name::JobId;

use crate::app::{App, Entered};
use crate::error::CommandError;
use crate::identity::IdentityArgs;

/// Options of commands whose jobs may be those of a context.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Context")]
pub(crate) struct ScopeArgs {
    /// Context of the jobs [default: none]
    #[arg(long, value_name = "ID", global = true)]
    context: Option<ContextId>,
    /// All parts of spread queues, as `queue spread` shows them
    #[arg(long, global = true, conflicts_with = "context")]
    pub(crate) spread: bool,
    #[command(flatten)]
    pub(crate) actor: ActorArgs,
}

/// Option that selects the actor in a context.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ActorArgs {
    /// Key file of the actor in the context [default: meshwork/actor.key in $XDG_CONFIG_HOME, else in ~/.config]
    #[arg(long, value_name = "FILE", env = "MESHWORK_ACTOR_KEY", global = true)]
    actor_key: Option<PathBuf>,
}

impl ActorArgs {
    pub(crate) fn identity(&self) -> IdentityArgs {
        IdentityArgs {
            key: self.actor_key.clone(),
        }
    }
}

impl ScopeArgs {
    /// Opens the named context, if there is one.
    pub(crate) async fn open(&self, context: &App) -> Result<Option<Scope>, CommandError> {
        match self.context {
            Some(id) => Ok(Some(self.open_context(id, context).await?)),
            None => Ok(None),
        }
    }

    /// Opens the context that the ids of all these jobs name, if they do: they are keys as `{ctx:7}:job:12:2001`.
    pub(crate) async fn open_named(
        &self,
        ids: &[&mut JobId],
        context: &App,
    ) -> Result<Option<Scope>, CommandError> {
        let named = ids.iter().map(|id| ContextKeys::named_in(id.as_str()));
        let named: BTreeSet<_> = named.collect();
        match named.into_iter().collect::<Vec<_>>()[..] {
            [Some(id)] => Ok(Some(self.open_context(id, context).await?)),
            _ => Ok(None),
        }
    }

    async fn open_context(&self, id: ContextId, context: &App) -> Result<Scope, CommandError> {
        let client = context.client().await?;
        let handle = Node::of(client.broker()).context(id).await?;
        let (_, me) = self.actor.identity().open(context).await?;
        Ok(Scope { me, handle })
    }
}

/// Actor in a context.
pub(crate) struct Scope {
    me: Identity,
    handle: ContextHandle,
}

impl Scope {
    pub(crate) fn new(me: Identity, handle: ContextHandle) -> Self {
        Self { me, handle }
    }

    /// Resolves the id of a job: `2001` is a job of the actor, `12:2001` one of caller 12; else a whole key.
    pub(crate) fn job_id(&self, text: &JobId) -> Result<JobId, CommandError> {
        Ok(self.handle.job_id(self.me.id(), text.as_str())?)
    }

    /// Resolves the id of a prerequisite: any other text is a key of another kind, or a gate.
    pub(crate) fn awaited(&self, text: &JobId) -> JobId {
        self.handle.awaited(self.me.id(), text.as_str())
    }

    /// Returns a client for an actor who has the permission for `operation` on `object`.
    pub(crate) async fn client(
        &self,
        (object, operation): (Object, Operation),
    ) -> Result<Client, CommandError> {
        Ok(self.handle.client(&self.me, object, operation).await?)
    }
}

impl App {
    /// Switches the rest of the command to a context, after a check of the permission.
    pub(crate) async fn enter(
        &mut self,
        scope: Scope,
        needs: (Object, Operation),
    ) -> Result<(), CommandError> {
        let client = scope.client(needs).await?;
        let Scope { me, handle } = scope;
        self.entered = Some(Entered { me, handle, client });
        Ok(())
    }
}
