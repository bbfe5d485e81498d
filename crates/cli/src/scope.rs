//! The context in which a command works: its options, the ids of its jobs, and the client for them.

use std::path::PathBuf;

use meshwork::Client;
use meshwork::context::{ContextHandle, Identity};
use meshwork::model::access::{Object, Operation};
use meshwork::model::keys::context::{ContextId, JobKey};
use meshwork::model::name::JobId;

use crate::context::{Context, Entered};
use crate::error::CommandError;
use crate::identity::IdentityArgs;

/// The options of commands whose jobs may be those of a context.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Context")]
pub(crate) struct ScopeArgs {
    /// The context of the jobs [default: none: jobs of Hero]
    #[arg(long, value_name = "ID", global = true)]
    context: Option<ContextId>,
    #[command(flatten)]
    actor: ActorArgs,
}

/// The option that says who acts in a context.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ActorArgs {
    /// The key file of the actor who acts in the context [default: meshwork/actor.key in $XDG_CONFIG_HOME, else in ~/.config]
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
    /// The context that is named, if one is.
    pub(crate) async fn open(&self, context: &Context) -> Result<Option<Scope>, CommandError> {
        let Some(id) = self.context else {
            return Ok(None);
        };
        let (node, me) = self.actor.identity().open(context).await?;
        let handle = node.context(id).await?;
        Ok(Some(Scope { me, handle }))
    }
}

/// An actor in a context.
pub(crate) struct Scope {
    me: Identity,
    handle: ContextHandle,
}

impl Scope {
    /// The id of a job as people write it: `2001` is one of the actor's own, `12:2001` one of caller 12; else a whole key.
    pub(crate) fn job_id(&self, text: &JobId) -> Result<JobId, CommandError> {
        let id = self.awaited(text);
        match self.handle.keys().parse_job(id.as_str().as_bytes()) {
            Ok(_) => Ok(id),
            Err(error) => Err(CommandError::usage(error)),
        }
    }

    /// The same of something that a job waits for: any other text is a key of another kind, or a gate.
    pub(crate) fn awaited(&self, text: &JobId) -> JobId {
        let (text, keys) = (text.as_str(), self.handle.keys());
        let own = text.parse().map(|id| JobKey {
            caller: self.me.id(),
            id,
        });
        let name = text.strip_prefix(keys.prefix()).unwrap_or(text);
        let key = own.or_else(|_| JobKey::of_numbers(name.strip_prefix("job:").unwrap_or(name)));
        key.map_or_else(|_| JobId::foreign(text.to_owned()), |key| keys.job_id(key))
    }

    /// A client for somebody who may do `operation` with `object`.
    pub(crate) async fn client(
        &self,
        (object, operation): (Object, Operation),
    ) -> Result<Client, CommandError> {
        Ok(self.handle.client(&self.me, object, operation).await?)
    }
}

impl Context {
    /// Lets the rest of the command work in a context, as somebody who may do this.
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
