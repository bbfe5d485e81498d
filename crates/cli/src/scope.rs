//! Context of a command: its options, the ids of its jobs, and the client.

use std::path::PathBuf;

use meshwork::Client;
use meshwork::context::{ContextHandle, Identity, Node};
use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::ContextId;
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
    #[command(flatten)]
    actor: ActorArgs,
}

/// Option that selects the actor in a context.
#[derive(Debug, Clone, clap::Args)]
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
        let Some(id) = self.context else {
            return Ok(None);
        };
        let client = context.client().await?;
        let handle = Node::of(client.broker()).context(id).await?;
        let (_, me) = self.actor.identity().open(context).await?;
        Ok(Some(Scope { me, handle }))
    }
}

/// Actor in a context.
pub(crate) struct Scope {
    me: Identity,
    handle: ContextHandle,
}

impl Scope {
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
