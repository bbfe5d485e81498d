//! Context of a command: its options, the ids of its jobs, and the client.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use meshwork::Client;
use meshwork::context::{Caller, ContextHandle, Identity, Node};
use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::{ContextId, ContextKeys};
use meshwork_model::name::JobId;
use meshwork_ops::{Needs, Place, Placed, Store};
use serde_json::{Map, Value};

use crate::app::{App, Entered};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::IdentityArgs;
use crate::whole_id::complete;

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

/// Parameters of the API that name the place of jobs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Params {
    context: Option<ContextId>,
    spread: bool,
}

impl Params {
    /// Returns true for jobs in a context, or in spread queues.
    pub(crate) fn is_placed(self) -> bool {
        self.context.is_some() || self.spread
    }

    /// Returns the place of a job, whose id names the part of its spread queue.
    pub(crate) fn of_job(self) -> Self {
        Self {
            spread: false,
            ..self
        }
    }

    /// Adds them to others, an object.
    pub(crate) fn with(self, others: Value) -> Map<String, Value> {
        let Value::Object(mut all) = others else {
            return Map::new();
        };
        if let Some(id) = self.context {
            all.insert("context".to_owned(), id.get().into());
        }
        if self.spread {
            all.insert("spread".to_owned(), true.into());
        }
        all
    }
}

impl ScopeArgs {
    /// Returns the place as parameters of the API, whose key names the actor.
    pub(crate) fn params(&self) -> Params {
        Params {
            context: self.context,
            spread: self.spread,
        }
    }

    /// Enters the place of an operation on these jobs, or on those that a filter finds, and resolves their ids.
    pub(crate) async fn place(
        &self,
        app: &App,
        ids: Vec<&mut JobId>,
        needs: Needs,
    ) -> Result<Placed, CommandError> {
        let context = self.context.or_else(|| named_in(&ids));
        let client = app.client().await?;
        if let Some(id) = context {
            // A context that does not exist needs no actor to say so.
            Node::of(client.broker()).context(id).await?;
        }
        let place = Place {
            context: context.map(ContextId::get),
            spread: self.spread && ids.is_empty(),
        };
        let caller = match place.is_outside() {
            true => None,
            false => {
                let (_, me) = self.actor.identity().open(app).await?;
                Some(Caller::new(me.id(), None))
            }
        };
        let store = Store::new(client, caller, Arc::default());
        let placed = store.enter_all(place, None, needs).await?;
        if let Placed::One(store) = &placed {
            let mut ids = ids;
            for id in &mut ids {
                **id = store.job_id(id.as_str())?;
            }
            complete(&store.client, ids).await?;
        }
        Ok(placed)
    }

    /// Opens the named context, if there is one.
    pub(crate) async fn open(&self, context: &App) -> Result<Option<Scope>, CommandError> {
        match self.context {
            Some(id) => Ok(Some(self.open_context(id, context).await?)),
            None => Ok(None),
        }
    }

    /// Opens the context that the ids of all these jobs name, if they do.
    pub(crate) async fn open_named(
        &self,
        ids: &[&mut JobId],
        context: &App,
    ) -> Result<Option<Scope>, CommandError> {
        match named_in(ids) {
            Some(id) => Ok(Some(self.open_context(id, context).await?)),
            None => Ok(None),
        }
    }

    async fn open_context(&self, id: ContextId, context: &App) -> Result<Scope, CommandError> {
        let client = context.client().await?;
        let handle = Node::of(client.broker()).context(id).await?;
        let (_, me) = self.actor.identity().open(context).await?;
        Ok(Scope { me, handle })
    }
}

/// Returns the context that the ids of all these jobs name, if they do: they are keys as `{ctx:7}:job:12:2001`.
fn named_in(ids: &[&mut JobId]) -> Option<ContextId> {
    let named = ids.iter().map(|id| ContextKeys::named_in(id.as_str()));
    let named: BTreeSet<_> = named.collect();
    match named.into_iter().collect::<Vec<_>>()[..] {
        [only] => only,
        _ => None,
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
        self.out.context = Some(handle.id().get());
        self.entered = Some(Entered { me, handle, client });
        Ok(())
    }

    /// Runs a command in its place, in the parts of spread queues one after another. A failure in one part ends it; its
    /// message names the part.
    pub(crate) async fn in_place(
        &mut self,
        placed: Placed,
        command: impl AsyncFn(&mut Self, &Store) -> Result<Exit, CommandError>,
    ) -> Result<Exit, CommandError> {
        let parts = match placed {
            Placed::One(store) => {
                self.out.context = store.context_number();
                return Box::pin(command(self, &store)).await;
            }
            Placed::Parts(parts) => parts,
        };
        let mut exit = Exit::DONE;
        for (id, store) in parts {
            self.out.begin_part(id);
            self.out.context = Some(id.get());
            let ended = Box::pin(command(self, &store)).await;
            exit = exit.or(ended.map_err(|error| error.in_part(id))?);
        }
        self.out.end_parts()?;
        Ok(exit)
    }
}
