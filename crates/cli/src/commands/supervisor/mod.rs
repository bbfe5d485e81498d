//! `meshwork supervisor`.

mod listen;

use std::time::Duration;

use meshwork::context::{ContextHandle, Coordinator, Node, Serves};
use meshwork::mesh::{Daemon, Mesh};
use meshwork::{Client, Worker, WorkerHandle};
use meshwork_model::actor_key::SecretKey;
use meshwork_model::keys::context::{ContextId, ContextLayout};
use meshwork_model::name::ScriptType;
use meshwork_model::number::counted;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::args::parsers;
use crate::args::sandbox::WorkerSandboxArgs;
use crate::commands::mesh::NodeKeyArgs;
use crate::commands::worker::{CONCURRENCY, in_contexts};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::note;
use crate::scope::ActorArgs;
use listen::{ListenArgs, Serving};

/// Deliver the messages between a node's contexts, until Ctrl-C or SIGTERM
///
/// Takes outgoing messages, checks signatures and permissions, delivers them, enqueues the jobs of job messages,
/// returns their results, and ends expired messages. Several supervisors may serve one node, and a killed one loses
/// nothing. Notifies systemd when ready (Type=notify). With --listen it serves the API and the
/// dashboard too (docs/api.md, docs/dashboard.md).
#[derive(Debug, clap::Args)]
pub(crate) struct Supervisor {
    /// The contexts to serve, or `all`
    #[arg(long, value_name = "IDS", default_value = "all", value_parser = parsers::contexts)]
    context: Serves,
    /// Run jobs of these types too: up to 10 at once outside contexts, unless --context names some, and up to 10 at once in all
    /// contexts together, which get them in turn. The actor needs the role executor there, and admin to register a runner;
    /// other contexts are skipped
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    worker: Vec<ScriptType>,
    #[command(flatten)]
    sandbox: WorkerSandboxArgs,
    /// Exchange messages with trusted nodes through the Mycelium daemon of this host, whose JSON-RPC address this is
    #[arg(long, value_name = "URL", env = "MESHWORK_MYCELIUM", num_args = 0..=1,
          default_missing_value = Daemon::DEFAULT_URL)]
    mycelium: Option<String>,
    /// Longest wait for running jobs, and for requests under way, at shutdown; waits of requests for jobs end at once, with the
    /// job's id
    #[arg(long, value_name = "DURATION", default_value = "25s", value_parser = parsers::wait,
          allow_hyphen_values = true)]
    shutdown_timeout: Duration,
    #[command(flatten)]
    node_key: NodeKeyArgs,
    #[command(flatten)]
    actor: ActorArgs,
    #[command(flatten)]
    listen: ListenArgs,
}

#[derive(Debug, Serialize)]
struct Ready {
    event: &'static str,
    contexts: Vec<ContextId>,
    /// URLs of the API.
    api: Vec<String>,
}

impl Supervisor {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let interrupt = Interrupt::listen()?;
        let client = interrupt.or(context.client()).await?;
        let api = match self.listen.is_given() {
            true => Some(
                interrupt
                    .or(self
                        .listen
                        .start(&client, &self.actor, self.shutdown_timeout))
                    .await?,
            ),
            false => None,
        };
        let node = Node::of(client.broker());
        let coordinator = Coordinator::new(&node).await?;
        let mesh = match self.daemon()? {
            Some((daemon, key)) => Some(Mesh::new(&node, daemon, key).await?),
            None => None,
        };
        let handles = self.handles(&node).await?;
        let workers = context.retried(async || self.workers(&client).await);
        let workers = Box::pin(interrupt.or(workers)).await?;
        workers.all().for_each(|worker| interrupt.holds(worker));
        let contexts = handles.iter().map(ContextHandle::id).collect();
        tell(contexts, api.as_ref(), context)?;
        tell_systemd(&[sd_notify::NotifyState::Ready]);
        let indexing = tokio::spawn(index(handles));
        let stop = CancellationToken::new();
        let serving = async {
            let mesh = async {
                if let Some(mesh) = mesh {
                    mesh.run(&stop).await;
                }
            };
            // Cut off when the store does not answer: a killed supervisor loses nothing either.
            let late = async {
                stop.cancelled().await;
                tokio::time::sleep(self.shutdown_timeout).await;
            };
            tokio::select! {
                _ = async { tokio::join!(coordinator.run(&self.context, &stop), Box::pin(mesh)) } => {}
                () = late => {}
            }
        };
        let ends = async {
            interrupt.heard().await;
            tell_systemd(&[sd_notify::NotifyState::Stopping]);
            stop.cancel();
            let api = async {
                if let Some(api) = api {
                    api.stop().await;
                }
            };
            tokio::join!(api, workers.stop(|worker| interrupt.stop(worker)));
        };
        // All graces run at the same time.
        tokio::join!(serving, ends);
        indexing.abort();
        Ok(interrupt.exit())
    }

    /// Returns the daemon for messages of other nodes, if one is named, and the key of this node.
    fn daemon(&self) -> Result<Option<(Daemon, SecretKey)>, CommandError> {
        let Some(url) = &self.mycelium else {
            return Ok(None);
        };
        Ok(Some((Daemon::new(url)?, self.node_key.open()?)))
    }

    /// Opens the contexts to be served.
    async fn handles(&self, node: &Node) -> Result<Vec<ContextHandle>, CommandError> {
        let ids = match &self.context {
            Serves::All => return Ok(node.contexts().await?),
            Serves::Some(ids) => ids,
        };
        let mut handles = Vec::with_capacity(ids.len());
        for id in ids {
            handles.push(node.context(*id).await?);
        }
        Ok(handles)
    }

    /// Starts the requested workers: those of contexts, and one for jobs of none unless contexts are named.
    async fn workers(&self, client: &Client) -> Result<Workers, CommandError> {
        let mut workers = Workers::default();
        if self.worker.is_empty() {
            return Ok(workers);
        }
        let is_private = client.broker().conn().is_private();
        let types = self.worker.iter().map(ScriptType::as_str);
        self.sandbox.note_default(is_private, types);
        let policy = self.sandbox.policy(is_private)?;
        let worker = |client: &Client| {
            let mut types = self.worker.iter();
            let worker = Worker::new(client)
                .sandbox(policy.clone())
                .shutdown_timeout(self.shutdown_timeout);
            let worker = types.try_fold(worker, Worker::script_type);
            Ok(worker?.concurrency(CONCURRENCY.into()))
        };
        let is_any = !Node::of(client.broker()).contexts().await?.is_empty();
        if is_any || self.context != Serves::All {
            let (node, me) = self.actor.identity().create(client).await?;
            let found = in_contexts::find(&node, &me, &self.context).await?;
            let found = in_contexts::served(found, &me).await?;
            let which = (&self.worker[..], None, CONCURRENCY.into());
            workers.in_contexts = in_contexts::start(&me, &found, which, worker).await?;
        }
        if self.context == Serves::All {
            workers.outside = match worker(client)?.start().await {
                Ok(started) => Some(started),
                Err(error) => {
                    workers.stop(WorkerHandle::stop).await;
                    return Err(error.into());
                }
            };
        }
        Ok(workers)
    }
}

/// Running workers.
#[derive(Default)]
struct Workers {
    in_contexts: Vec<in_contexts::Started>,
    outside: Option<WorkerHandle>,
}

impl Workers {
    fn all(&self) -> impl Iterator<Item = &WorkerHandle> {
        let in_contexts = self.in_contexts.iter().map(|one| &one.worker);
        in_contexts.chain(&self.outside)
    }

    /// Waits for running jobs, and releases the rest.
    async fn stop<F: Future<Output = usize>>(self, stop: impl Fn(WorkerHandle) -> F) {
        let outside = async {
            if let Some(worker) = self.outside {
                stop(worker).await;
            }
        };
        tokio::join!(in_contexts::stop(self.in_contexts, &stop), outside);
    }
}

/// Says that the supervisor is ready, with the URLs of its API.
fn tell(
    contexts: Vec<ContextId>,
    api: Option<&Serving>,
    context: &mut App,
) -> Result<(), CommandError> {
    let api = api.map(|api| api.urls.clone()).unwrap_or_default();
    if context.out.is_json() {
        let event = "ready";
        context.out.json(&Ready {
            event,
            contexts,
            api,
        })?;
        return Ok(context.out.flush()?);
    }
    for url in &api {
        note(format_args!("API at {url}/v1, JSON-RPC at {url}/rpc"));
        if url.starts_with("http") {
            note(format_args!("dashboard at {url}/ui/"));
        }
    }
    note(format_args!(
        "serving messages of {}",
        counted(contexts.len(), "context")
    ));
    Ok(context.out.flush()?)
}

/// Adds records to the indexes of contexts whose ACL users may not scan: those of earlier versions and of plain clients.
async fn index(contexts: Vec<ContextHandle>) {
    let after_a_prefix = |context: &ContextHandle| context.keys().layout() == ContextLayout::Prefix;
    for context in contexts.into_iter().filter(after_a_prefix) {
        if let Err(error) = context.index_records().await {
            tracing::warn!(context = %context.id(), %error, "records not indexed");
        }
    }
}

/// Notifies systemd; does nothing if systemd did not start the command.
fn tell_systemd(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "systemd not notified");
    }
}
