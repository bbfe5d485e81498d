//! Spread queues: one queue whose jobs are in several contexts, its parts, so that several nodes of a Cluster serve it.
//!
//! [`Node::spread_queue`](crate::context::Node::spread_queue) makes the parts. [`Spread`] enqueues jobs: those with a
//! key in the part of the key, others in the shorter of two parts. A worker of all parts is a worker of their contexts
//! ([`WorkerPool`](crate::WorkerPool)). On a single server the parts are contexts, too.

mod enqueue;
mod enqueue_all;
mod error;
mod load;
mod parts;
mod registry;
mod serve;

use meshwork_macros::boxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::{ContextId, ContextLayout};

use tokio::sync::OnceCell;

use crate::Client;
use crate::context::{Acting, Caller, ContextHandle, Node};
pub use error::SpreadError;
use load::Loads;
pub use meshwork_model::spread::{InvalidSpreadName, MAX_PARTS, SpreadLayout, SpreadName};
pub use parts::{SpreadPart, SpreadState};

/// Greatest number of attempts of a call whose layout changes meanwhile.
const TRIES: usize = 16;

/// A spread queue, for the jobs that one actor enqueues. Cheap to clone.
///
/// ```
/// # use meshwork::context::{Identity, Node};
/// # use meshwork::spread::{Spread, SpreadError};
/// # use meshwork::{Job, JobRequest};
/// # async fn run(node: &Node, me: &Identity) -> Result<(), SpreadError> {
/// node.spread_queue(me, &"python".parse()?, 4).await?;
/// let spread = Spread::open(node, me, "python".parse()?).await?;
/// let job = JobRequest::new("python".parse()?, "result = 1").key("customer 7");
/// println!("{}", spread.enqueue(job).await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Spread {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    node: Node,
    me: Caller,
    name: SpreadName,
    /// The layout that was read last, with its clients.
    opened: Mutex<Arc<Opened>>,
    loads: Loads,
}

/// A layout, and a client for each of its parts.
#[derive(Debug)]
struct Opened {
    layout: SpreadLayout,
    /// Clients of the parts. One whose node did not answer is opened by the next call for it.
    clients: Vec<OnceCell<Client>>,
}

impl Spread {
    /// Opens a spread queue for an actor who may create jobs in all of its parts. Parts on a node that does not answer are
    /// opened when a job goes there; jobs without a key go to other parts meanwhile.
    ///
    /// # Errors
    /// [`SpreadError::NotSpread`]; [`SpreadError::Context`] if a permission is missing in a part, or no part answers.
    pub async fn open(
        node: &Node,
        me: &impl Acting,
        name: SpreadName,
    ) -> Result<Self, SpreadError> {
        let me = Caller::of(me);
        let opened = open(node, &me, &name).await?;
        Ok(Self {
            state: Arc::new(State {
                node: node.clone(),
                me,
                name,
                loads: Loads::default(),
                opened: Mutex::new(Arc::new(opened)),
            }),
        })
    }

    /// Returns the name of the queue.
    #[must_use]
    pub fn name(&self) -> &SpreadName {
        &self.state.name
    }

    /// Returns the layout by which jobs are placed. It is read again when a part knows a later one.
    #[must_use]
    pub fn layout(&self) -> SpreadLayout {
        self.opened().layout.clone()
    }

    /// Returns the client of a part, with which its jobs are read and changed.
    ///
    /// # Errors
    /// [`SpreadError::NoPart`]; [`SpreadError::Context`] if the node of the part does not answer.
    #[boxed]
    pub async fn part(&self, context: ContextId) -> Result<Client, SpreadError> {
        let opened = self.opened();
        let at = opened.part_in(context);
        let at = at.ok_or_else(|| self.no_part(&context.to_string()))?;
        self.state.client(&opened, at).await.cloned()
    }

    /// Returns the context of the shorter of two parts that are drawn at random: for what lives whole in one part, such
    /// as a flow.
    ///
    /// # Errors
    /// [`SpreadError::Context`] or [`SpreadError::Job`] if a call to the server fails.
    #[boxed]
    pub async fn shorter_part(&self) -> Result<ContextHandle, SpreadError> {
        let opened = self.opened();
        let at = self.state.choose(&opened).await?;
        part_of(&self.state.node, opened.layout.parts[at]).await
    }

    fn no_part(&self, text: &str) -> SpreadError {
        let (name, text) = (self.name().clone(), text.to_owned());
        SpreadError::NoPart { name, text }
    }

    fn guard(&self) -> MutexGuard<'_, Arc<Opened>> {
        // No code that can panic runs under the lock.
        let opened = self.state.opened.lock();
        opened.unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self) -> Arc<Opened> {
        Arc::clone(&self.guard())
    }

    /// Reads the layout again.
    async fn reopen(&self) -> Result<Arc<Opened>, SpreadError> {
        let State { node, me, name, .. } = &*self.state;
        let opened = Arc::new(open(node, me, name).await?);
        self.guard().clone_from(&opened);
        Ok(opened)
    }
}

impl State {
    /// Returns the client of a part.
    async fn client<'a>(&self, opened: &'a Opened, at: usize) -> Result<&'a Client, SpreadError> {
        let id = opened.layout.parts[at];
        let client = async || client(&self.node, &self.me, id).await;
        opened.clients[at].get_or_try_init(client).await
    }
}

impl Opened {
    /// Returns the place of a part in the layout.
    fn part_in(&self, context: ContextId) -> Option<usize> {
        self.layout.parts.iter().position(|part| *part == context)
    }
}

async fn open(node: &Node, me: &Caller, name: &SpreadName) -> Result<Opened, SpreadError> {
    let layout = node.spread(name).await?;
    let layout = layout.filter(|layout| layout.active > 0);
    let layout = layout.ok_or_else(|| SpreadError::NotSpread(name.clone()))?;
    let parts = layout.parts.iter();
    let tried = join_all(parts.map(|id| client(node, me, *id))).await;
    let (mut clients, mut outage) = (Vec::new(), None);
    for one in tried {
        match one {
            Ok(client) => clients.push(OnceCell::from(client)),
            Err(error) if error.is_outage() => {
                clients.push(OnceCell::new());
                outage = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match outage {
        Some(error) if !clients.iter().any(OnceCell::initialized) => Err(error),
        _ => Ok(Opened { layout, clients }),
    }
}

/// Returns a client of a part for an actor who may create jobs there.
async fn client(node: &Node, me: &Caller, id: ContextId) -> Result<Client, SpreadError> {
    let part = part_of(node, id).await?;
    Ok(part.client(me, Object::Job, Operation::Create).await?)
}

/// Returns the context of a part. The keys of its jobs have to name it.
async fn part_of(node: &Node, id: ContextId) -> Result<ContextHandle, SpreadError> {
    let part = node.context(id).await?;
    match part.keys().layout() {
        ContextLayout::Prefix => Ok(part),
        ContextLayout::Db => Err(SpreadError::Layout(id)),
    }
}
