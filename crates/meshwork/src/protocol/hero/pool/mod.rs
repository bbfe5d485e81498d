//! Worker pool: the workers of many contexts in one process share a connection, a heartbeat thread and slots. They have no
//! blocking reads: [`poller`] polls the queues of all.

mod member;
mod poller;
mod watches;

use meshwork_macros::boxed;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use meshwork_broker::{Broker, ContextConn};
use meshwork_model::keys::context::ContextLayout;
use tokio::sync::OnceCell;

use crate::Error;
use crate::context::{ContextHandle, Node};
pub(super) use member::{Member, MemberKeys};
use meshwork_worker::SharedParts;
use meshwork_worker::Slots;
use meshwork_worker::dedicated_thread::{Host, Thread};
use watches::{Reports, Session, Watches};

/// Greatest number of contexts of one pool.
pub const MAX_POOL: usize = 1_000;

/// Shared parts of the workers of several contexts: a connection for commands and one for the heartbeat, the heartbeat
/// thread, and slots, which the contexts get in turn. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WorkerPool {
    state: Arc<PoolState>,
    node: Node,
    _poller: Arc<Thread>,
}

/// State that the poller and the workers share.
#[derive(Debug)]
struct PoolState {
    node: Broker,
    databases: Vec<u32>,
    /// Connection of the heartbeat thread, opened on that thread.
    beats: OnceCell<ContextConn>,
    members: Mutex<Vec<Weak<Member>>>,
    slots: Slots,
    host: Arc<Host>,
    /// Connections that report changes.
    watches: Watches,
    /// Number of contexts that it was opened for.
    contexts: usize,
}

impl WorkerPool {
    /// Opens a pool for workers of these contexts, which run up to `concurrency` jobs at once in total. One slot is left
    /// for contexts that run nothing.
    ///
    /// # Errors
    /// If the connection cannot be made, there are more than [`MAX_POOL`] contexts, or the system has no thread left.
    #[boxed]
    pub async fn open(
        node: &Node,
        contexts: &[ContextHandle],
        concurrency: usize,
    ) -> Result<Self, Error> {
        if contexts.len() > MAX_POOL {
            return Err(Error::PoolTooLarge {
                given: contexts.len(),
            });
        }
        let broker = node.broker();
        let mut databases = vec![broker.database()];
        let own = contexts.iter().map(ContextHandle::keys);
        let own = own.filter(|keys| keys.layout() == ContextLayout::Db);
        databases.extend(own.map(|keys| keys.database()));
        let commands = ContextConn::open(broker, &databases).await?;
        let state = Arc::new(PoolState {
            node: broker.clone(),
            databases,
            beats: OnceCell::new(),
            members: Mutex::default(),
            slots: Slots::new(concurrency),
            host: Host::start()?,
            watches: Watches::default(),
            contexts: contexts.len(),
        });
        let looks = poller::poll_queues(Arc::clone(&state));
        let poller = Arc::clone(&state.host).run(looks, std::future::ready(()));
        Ok(Self {
            node: Node::of(&commands.over(broker).await?),
            state,
            _poller: Arc::new(poller),
        })
    }

    /// The node over the pool's connection. The clients of its contexts use that connection.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the number of workers, with one that is starting.
    pub(super) fn size(&self) -> usize {
        self.state.contexts.max(self.state.live().len() + 1)
    }

    /// Returns the number of jobs that run at once in all contexts together.
    pub(super) fn concurrency(&self) -> usize {
        self.state.slots.total()
    }

    /// Adds a worker, and returns the shared parts of its engine. Dropping the member removes it.
    pub(super) fn join(&self, member: &Arc<Member>) -> SharedParts {
        let mut members = self.state.members();
        members.retain(|member| member.strong_count() > 0);
        members.push(Arc::downgrade(member));
        SharedParts {
            demand: Arc::clone(member.demand()),
            seat: self.state.slots.seat(),
            host: Arc::clone(&self.state.host),
        }
    }

    /// Returns the session of a worker over the connection of the heartbeat thread. Call it on that thread.
    pub(super) async fn beats(&self, broker: &Broker) -> Result<Broker, meshwork_broker::Error> {
        self.state.beats(broker).await
    }
}

impl PoolState {
    async fn beats(&self, broker: &Broker) -> Result<Broker, meshwork_broker::Error> {
        let open = async || ContextConn::open(&self.node, &self.databases).await;
        self.beats.get_or_try_init(open).await?.over(broker).await
    }

    /// Returns the session of a member for looks.
    async fn session(&self, broker: &Broker) -> Result<Session, meshwork_broker::Error> {
        let reports = self.watches.of(broker).await?;
        let broker = match &reports {
            Reports::By(watch) => watch.over(broker),
            Reports::Without(_) => self.beats(broker).await?,
        };
        Ok(Session { broker, reports })
    }

    fn members(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Member>>> {
        // No code that can panic runs under the lock.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> Vec<Arc<Member>> {
        self.members().iter().filter_map(Weak::upgrade).collect()
    }
}
