//! Coordinator: delivers messages of contexts through the transport, processes received ones, answers them, and ends
//! expired ones. Several coordinators may serve one context: each message has one of them at a time, and each step
//! happens once.

use meshwork_macros::boxed;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::Backoff;
use meshwork_broker::context::{Commit, Read};
use meshwork_model::context::NodeId;
use meshwork_model::keys::context::ContextId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::context::messages::damage::Damage;
use crate::context::messages::done::Done;
use crate::context::messages::message::next_look_ms;
use crate::context::messages::outbox_watch::OutboxWatch;
use crate::context::messages::served::{Part, Roll, Served};
use crate::context::messages::steps::{Step, Steps};
use crate::context::{ContextError, ContextHandle, MOST, Node, StoreTransport, Transport};

/// Pause between two rounds after recent work, when jobs of messages may end soon.
const SOON: Duration = Duration::from_millis(100);
/// Time for which work counts as recent.
const LATELY: Duration = Duration::from_secs(30);
/// Pause between two rounds without recent work if each outbox is watched. A round also finds messages that a watching
/// connection has missed.
const WATCHED: Duration = Duration::from_secs(1);
/// Pause if there are too many outboxes to watch.
const UNWATCHED: Duration = Duration::from_millis(250);
/// Pause between two searches for new contexts.
const LOOK_FOR_CONTEXTS: Duration = Duration::from_secs(2);

/// The contexts that a coordinator serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serves {
    /// All contexts of the node, also those that are created later.
    All,
    /// Only these contexts.
    Some(Vec<ContextId>),
}

/// Serves the messages of contexts; cheap to clone.
#[derive(Clone)]
pub struct Coordinator {
    pub(crate) node: Node,
    pub(crate) id: NodeId,
    pub(crate) transport: Arc<dyn Transport>,
}

impl std::fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coordinator")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Coordinator {
    /// Creates a coordinator over the transport through the store.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn new(node: &Node) -> Result<Self, ContextError> {
        let transport = StoreTransport::new(node).await?;
        Self::over(node, transport).await
    }

    /// Creates a coordinator over another transport.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn over(node: &Node, transport: impl Transport) -> Result<Self, ContextError> {
        Ok(Self {
            id: node.identity().await?,
            node: node.clone(),
            transport: Arc::new(transport),
        })
    }

    /// Returns the transport in use.
    #[must_use]
    pub fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    /// Runs one step in a context: handles all elements that are due. Returns their number.
    ///
    /// # Errors
    /// The first failure, after all other elements have been handled; or the server is unreachable. The next step
    /// handles the rest.
    #[boxed]
    pub async fn step(&self, context: &ContextHandle) -> Result<usize, ContextError> {
        let done = self.serve(&mut Served::new(context.clone())).await?;
        done.failed.map_or(Ok(done.count), |(_, error)| Err(error))
    }

    /// Runs steps in all contexts of the node until no element is left. Failures of single messages and contexts are
    /// logged.
    ///
    /// # Errors
    /// The server is unreachable, or the registry of contexts cannot be read.
    #[boxed]
    pub async fn settle(&self) -> Result<(), ContextError> {
        let contexts = self.node.contexts().await?;
        let mut served: Vec<_> = contexts.into_iter().map(Served::new).collect();
        loop {
            let mut all = Done::default();
            for one in &mut served {
                all.add(self.serve(one).await?);
            }
            if all.count == 0 && !all.more {
                return Ok(());
            }
        }
    }

    /// Serves contexts until `stop` is cancelled, and completes begun steps. Failures are logged and retried.
    #[boxed]
    pub async fn run(&self, serves: &Serves, stop: &CancellationToken) {
        let (mut served, mut looked) = (Roll::default(), None::<Instant>);
        let (mut backoff, mut watch) = (Backoff::new(), OutboxWatch::new());
        let (mut steps, mut worked) = (Steps::new(), Instant::now());
        while !stop.is_cancelled() {
            if looked.is_none_or(|at| at.elapsed() >= LOOK_FOR_CONTEXTS) {
                served.update(self.find(serves).await);
                looked = Some(Instant::now());
                watch.follow(served.contexts());
            }
            let done = steps.round(&mut served, |one| self.step_of(one)).await;
            watch.looked();
            let pause = async {
                match done {
                    Ok(done) if done.count == 0 && !done.more => {
                        let idle = match (worked.elapsed() < LATELY, watch.is_complete()) {
                            (true, _) => SOON,
                            (false, true) => WATCHED,
                            (false, false) => UNWATCHED,
                        };
                        let woken = async {
                            tokio::select! {
                                () = watch.woken() => {}
                                () = self.node.signals().incoming.notified() => {}
                            }
                        };
                        let _ = tokio::time::timeout(idle, woken).await;
                    }
                    Ok(_) => worked = Instant::now(),
                    Err(error) => {
                        tracing::warn!(%error, "messages not delivered: trying again");
                        backoff.wait().await;
                        return;
                    }
                }
                backoff = Backoff::new();
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = pause => {}
            }
        }
        steps.finish().await;
    }

    /// Returns the contexts that were found, and the reasons why others were not.
    async fn find(&self, serves: &Serves) -> (Vec<ContextHandle>, Vec<ContextError>) {
        let ids = match serves {
            Serves::All => match self.node.registered().await {
                Ok(found) => return found,
                Err(error) => return (Vec::new(), vec![error]),
            },
            Serves::Some(ids) => ids,
        };
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for id in ids {
            match self.node.context(*id).await {
                Ok(context) => found.push(context),
                Err(error) => failed.push(error),
            }
        }
        (found, failed)
    }

    fn step_of(&self, mut one: Served) -> Step<'_> {
        Box::pin(async move {
            let done = self.serve_if_needed(&mut one).await;
            (one, done)
        })
    }

    /// Runs a step if one call finds an element that is due.
    async fn serve_if_needed(&self, served: &mut Served) -> Result<Done, ContextError> {
        let keys = served.context.keys();
        let lists = [keys.msg_out(), keys.msg_in(), keys.msg_in_jobs()];
        let times = [
            keys.outbound(),
            keys.sent(),
            keys.open(),
            keys.messages(),
            keys.letters(),
        ];
        let lists = lists.iter().map(|key| (key.as_str(), Read::Tail(1)));
        let times = times.iter().map(|key| (key.as_str(), Read::Due(1)));
        let reads: Vec<_> = lists.chain(times).collect();
        let database = served.context.database();
        let found = self.node.store().any(database, &reads).await;
        match found.map_err(ContextError::from) {
            Ok(false) => Ok(Done::default()),
            Err(error) if error.is_outage() => Err(error),
            // The step then finds the damaged key.
            Ok(true) | Err(_) => self.serve(served).await,
        }
    }

    /// Runs all parts of a step. A part that failed pauses, and does not delay the others.
    ///
    /// # Errors
    /// The server is unreachable.
    async fn serve(&self, served: &mut Served) -> Result<Done, ContextError> {
        let mut all = Done::default();
        for part in Part::ALL {
            if !served.is_due(part) {
                continue;
            }
            match self.part(part, served).await {
                Ok(done) => {
                    served.handled(part, &done);
                    all.add(done);
                }
                Err(error) if error.is_outage() => return Err(error),
                Err(error) => {
                    served.failed(part, &error);
                    all.failed.get_or_insert((String::new(), error));
                }
            }
        }
        Ok(all)
    }

    async fn part(&self, part: Part, served: &mut Served) -> Result<Done, ContextError> {
        let (context, transport) = (&served.context, &*self.transport);
        match part {
            Part::Expire => self.expire(context).await,
            Part::Route => self.route(context).await,
            Part::Sort => context.sort_inbox(&mut served.sorted).await,
            Part::TakeUp => context.take_up(self.id, transport).await,
            Part::Answer => context.answer(self.id, transport).await,
            Part::Prune => self.prune(context).await,
            Part::Letters => context.notify_of_letters(transport).await,
        }
    }

    /// Ends the messages of a context whose timeout is over.
    async fn expire(&self, context: &ContextHandle) -> Result<Done, ContextError> {
        let sent = context.keys().sent();
        let elements = self
            .node
            .store()
            .elements(context.database(), &sent, Read::Due(MOST))
            .await?;
        let mut done = Done::default();
        for element in &elements {
            let expired = self.expire_one(context, &sent, element).await;
            done.note(context.id(), element, expired.map(|()| 1))?;
        }
        Ok(done)
    }

    async fn expire_one(
        &self,
        context: &ContextHandle,
        sent: &str,
        element: &[u8],
    ) -> Result<(), ContextError> {
        let forget = Commit::default().unmark(sent, element);
        let view = match context.keys().parse_message(element) {
            Ok(key) => match context.message_of(key).await {
                Err(error) if error.is_permanent() => {
                    let end = Damage::of(element, &error);
                    return context.end_damaged(end, &*self.transport, forget).await;
                }
                view => view?,
            },
            Err(_) => None,
        };
        let Some(view) = view.filter(|view| !view.message.status.is_final()) else {
            let _ = context.commit(&forget).await?;
            return Ok(());
        };
        let now = self.node.now().await?;
        let message = &view.message;
        let Some(overdue) = message.overdue(now, view.stored_at.is_some()) else {
            let next = Commit::default().mark(sent, next_look_ms(message, now), element);
            let _ = context.commit(&next).await?;
            return Ok(());
        };
        let _ = context
            .commit(&context.timed_out(&view, overdue, now))
            .await?;
        Ok(())
    }
}
