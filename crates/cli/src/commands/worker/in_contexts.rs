//! `meshwork worker --context`: a worker, with its runner, for each context.

use std::time::Duration;

use futures_util::future::join_all;
use meshwork::context::{ContextError, ContextHandle, Identity, NewRunner, Node, Serves};
use meshwork::{
    Client, Error as MeshworkError, MAX_POOL, Worker, WorkerHandle, WorkerPool, local_name,
};
use meshwork_model::access::{Object, Operation};
use meshwork_model::context::Runner;
use meshwork_model::keys::context::{ContextId, RunnerId};
use meshwork_model::name::{Instance, NameError, ScriptType};

use crate::args::parsers;
use crate::error::CommandError;
use crate::identity;
use crate::scope::ActorArgs;

/// Greatest number of contexts of one process.
const MOST: usize = MAX_POOL;
/// Number of workers that start, or stop, at the same time.
const AT_ONCE: usize = 16;
/// Greatest number of attempts to register a runner while other starting workers take the new ones.
const MOST_TRIES: usize = 16;

/// Options of workers in contexts.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Context")]
pub(super) struct InContexts {
    /// Contexts whose jobs to run: up to 1000 numbers with commas between them, or `all` that exist now and that the actor may serve
    /// [default: none]. Several contexts share the slots of --concurrency and get them in turn. The actor needs the
    /// role executor there, and admin to register a runner
    #[arg(long, value_name = "IDS", value_parser = parsers::contexts,
          conflicts_with_all = ["instance", "legacy_ids"])]
    context: Option<Serves>,
    /// Runner to use; its types run unless --type selects some [default: a free runner of this user and host, or a new
    /// one]
    #[arg(long, value_name = "N", requires = "context")]
    runner: Option<RunnerId>,
    /// Run the jobs of spread queues of these types, in all of their parts, also those that are added later. The actor
    /// needs the roles executor and admin there
    #[arg(long, conflicts_with_all = ["context", "instance", "legacy_ids"])]
    pub(super) spread: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
}

/// A worker in a context.
pub(crate) struct Started {
    pub(crate) worker: WorkerHandle,
    pub(crate) client: Client,
    pub(crate) context: ContextId,
    pub(crate) runner: RunnerId,
}

/// Workers of a command before their start.
pub(super) struct Members {
    me: Identity,
    contexts: Vec<ContextHandle>,
    runner: Option<RunnerId>,
}

impl InContexts {
    /// Returns the named contexts, if any.
    pub(super) fn named(&self) -> Option<&Serves> {
        self.context.as_ref()
    }

    /// Finds the contexts and their runners.
    pub(super) async fn open(
        &self,
        serves: &Serves,
        client: &Client,
    ) -> Result<Members, CommandError> {
        let (node, me) = self.actor.identity().create(client).await?;
        let mut contexts = find(&node, &me, serves).await?;
        if *serves == Serves::All {
            contexts = served(contexts, &me).await?;
            if contexts.is_empty() {
                return Err(CommandError::usage(format_args!(
                    "actor {} runs jobs in no context of this node: an admin grants the role with `meshwork context grant ID executor {0}`",
                    me.id()
                )));
            }
        }
        if contexts.len() > 1 && self.runner.is_some() {
            return Err(CommandError::usage(
                "--runner needs a single context: name one with --context",
            ));
        }
        let runner = self.runner;
        Ok(Members {
            me,
            contexts,
            runner,
        })
    }
}

impl Members {
    /// Returns the types of the named runner.
    pub(super) async fn types(&self) -> Result<Vec<ScriptType>, CommandError> {
        let (Some(id), Some(context)) = (self.runner, self.contexts.first()) else {
            return Ok(Vec::new());
        };
        Ok(context.runner(&self.me, id).await?.types)
    }

    pub(super) async fn start(
        &self,
        types: &[ScriptType],
        concurrency: usize,
        worker: impl Fn(&Client) -> Result<Worker, CommandError>,
    ) -> Result<Vec<Started>, CommandError> {
        let which = (types, self.runner, concurrency);
        start(&self.me, &self.contexts, which, worker).await
    }
}

/// Resolves the contexts, at most [`MOST`].
pub(crate) async fn find(
    node: &Node,
    me: &Identity,
    serves: &Serves,
) -> Result<Vec<ContextHandle>, CommandError> {
    let too_many = || {
        CommandError::usage(format_args!(
            "one process serves at most {MOST} contexts: select some with --context, and start further processes for the others"
        ))
    };
    let mut found = Vec::new();
    match serves {
        Serves::Some(ids) if ids.len() > MOST => return Err(too_many()),
        Serves::All => found = node.contexts().await?,
        Serves::Some(ids) => {
            for id in ids {
                found.push(node.context(*id).await?);
            }
        }
    }
    if found.is_empty() {
        found.push(identity::find(node, me, None).await?);
    }
    if found.len() > MOST {
        return Err(too_many());
    }
    Ok(found)
}

/// Returns the contexts that the actor may serve. Others are skipped with a warning: one context must not keep the rest
/// from being served.
pub(crate) async fn served(
    contexts: Vec<ContextHandle>,
    me: &Identity,
) -> Result<Vec<ContextHandle>, CommandError> {
    let mut served = Vec::with_capacity(contexts.len());
    for context in contexts {
        match may_serve(&context, me).await {
            Ok(()) => served.push(context),
            Err(error) if is_of_one(&error) => {
                tracing::warn!(context = %context.id(), %error, "context skipped");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(served)
}

/// Checks that the actor may pop queues, and has a runner or may register one.
async fn may_serve(context: &ContextHandle, me: &Identity) -> Result<(), ContextError> {
    context
        .allow(me.id(), Object::Queue, Operation::Pop)
        .await?;
    let topic = local_name("worker");
    let runners = context.runners(me).await?;
    if !runners
        .iter()
        .any(|runner| runner.local && runner.topic == topic)
    {
        context
            .allow(me.id(), Object::Runner, Operation::Create)
            .await?;
    }
    Ok(())
}

/// Returns whether an error concerns this context only.
fn is_of_one(error: &ContextError) -> bool {
    match error {
        ContextError::Denied(_)
        | ContextError::Record(_)
        | ContextError::NoContext(_)
        | ContextError::NoRecord { .. } => true,
        ContextError::Broker(error) => error.is_denied() || error.is_wrong_type(),
        _ => false,
    }
}

/// Starts a worker in each context; all or none. Several share connections, and `concurrency` slots.
pub(crate) async fn start(
    me: &Identity,
    contexts: &[ContextHandle],
    (types, runner, concurrency): (&[ScriptType], Option<RunnerId>, usize),
    worker: impl Fn(&Client) -> Result<Worker, CommandError>,
) -> Result<Vec<Started>, CommandError> {
    let pool = match contexts {
        [first, _, ..] => Some(WorkerPool::open(first.node(), contexts, concurrency).await?),
        _ => None,
    };
    start_in(me, contexts, (types, runner, pool.as_ref()), worker).await
}

/// Starts a worker in each context; all or none. With a pool, they share its connections and slots.
pub(super) async fn start_in(
    me: &Identity,
    contexts: &[ContextHandle],
    (types, runner, pool): (&[ScriptType], Option<RunnerId>, Option<&WorkerPool>),
    worker: impl Fn(&Client) -> Result<Worker, CommandError>,
) -> Result<Vec<Started>, CommandError> {
    let worker = |client: &Client| {
        let worker = worker(client)?;
        Ok(pool.map_or(worker.clone(), |pool| worker.pool(pool)))
    };
    let mut started = Vec::with_capacity(contexts.len());
    for some in contexts.chunks(AT_ONCE) {
        let begun = some.iter().map(async |context| {
            let context = pool.map_or(context.clone(), |pool| context.over(pool.node()));
            start_one(me, &context, (types, runner), &worker).await
        });
        let (mut some, mut failed) = (join_all(begun).await, None);
        for one in some.drain(..) {
            match one {
                Ok(one) => started.push(one),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            stop(started, WorkerHandle::stop).await;
            return Err(error);
        }
    }
    Ok(started)
}

async fn start_one(
    me: &Identity,
    context: &ContextHandle,
    (types, named): (&[ScriptType], Option<RunnerId>),
    worker: impl Fn(&Client) -> Result<Worker, CommandError>,
) -> Result<Started, CommandError> {
    let client = context.client(me, Object::Queue, Operation::Pop).await?;
    let begin = async |id: RunnerId| {
        let name: Result<Instance, NameError> = id.to_string().parse();
        let worker = worker(&client)?.signing(context, me);
        let mut worker = worker.instance(name.map_err(MeshworkError::from)?);
        if named.is_none() {
            // Another runner is tried at once.
            worker = worker.name_timeout(Duration::ZERO);
        }
        let worker = worker.start().await;
        Ok::<_, CommandError>(worker.map(|worker| Started {
            worker,
            client: client.clone(),
            context: context.id(),
            runner: id,
        }))
    };
    if let Some(id) = named {
        check(&context.runner(me, id).await?, types)?;
        return Ok(begin(id).await??);
    }
    // A runner that an earlier worker of this user on this host registered, and that is free.
    let topic = local_name("worker");
    let is_ours = |runner: &Runner| runner.local && runner.topic == topic && runner.types == types;
    let new = NewRunner {
        id: None,
        types: types.to_vec(),
        local: true,
        topic: Some(topic.clone()),
        pubkey: None,
        address: None,
    };
    let mut tries = 0;
    loop {
        for runner in context.runners(me).await?.into_iter().filter(is_ours) {
            match begin(runner.id).await? {
                Err(MeshworkError::WorkerNameTaken { .. }) => {}
                started => return Ok(started?),
            }
        }
        tries += 1;
        match begin(context.register_runner(me, &new).await?.id).await? {
            // Another starting worker has taken the new runner.
            Err(MeshworkError::WorkerNameTaken { .. }) if tries < MOST_TRIES => {}
            started => return Ok(started?),
        }
    }
}

/// Refuses types that the runner's record does not list.
fn check(runner: &Runner, types: &[ScriptType]) -> Result<(), CommandError> {
    let id = runner.id;
    if !runner.local {
        return Err(CommandError::usage(format_args!(
            "runner {id} takes messages of its topic, which is not supported yet: name a runner that takes jobs off queues"
        )));
    }
    match types.iter().find(|name| !runner.types.contains(name)) {
        Some(name) => Err(CommandError::usage(format_args!(
            "runner {id} does not run {name}: register a runner for it"
        ))),
        None => Ok(()),
    }
}

/// Stops all workers at the same time by `stop`. Returns the name of each, and the number of its released jobs.
pub(crate) async fn stop<F: Future<Output = usize>>(
    started: Vec<Started>,
    stop: impl Fn(WorkerHandle) -> F,
) -> Vec<(String, usize)> {
    let stops = started.into_iter().map(async |Started { worker, .. }| {
        let name = worker.name().to_owned();
        (name, stop(worker).await)
    });
    join_all(stops).await
}
