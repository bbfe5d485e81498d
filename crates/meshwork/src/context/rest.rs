//! Rest of a coordinator in the contexts that have nothing to do: a context whose server reports changes is looked at
//! after a change, and when one of its times has come. So an idle coordinator's cost follows activity, not the number of
//! contexts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Broker, Error, MessageTasks};
use meshwork_model::keys::context::ContextLayout;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::context::ContextHandle;
use crate::watches::{Session, Watches};

/// Longest rest: for a report that got lost, and for a server whose clock was set.
const LONGEST: Duration = Duration::from_secs(60);
/// Interval of the checks that the servers answer.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Longest time of a look. A server that hangs is then connected to again, wherever the data is.
const LOOK_MOST: Duration = Duration::from_secs(4);
/// Shortest time between two rounds because of changes.
const CHANGES_EVERY: Duration = Duration::from_millis(10);

/// Connections of a coordinator that report changes.
pub(crate) struct Changes {
    watches: Arc<Watches>,
    checks: JoinHandle<()>,
    began: Instant,
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.checks.abort();
    }
}

impl Changes {
    /// Checks the connections until it is dropped.
    pub(crate) fn new(node: &Broker) -> Self {
        let (watches, node) = (Arc::<Watches>::default(), node.clone());
        let checked = Arc::clone(&watches);
        let checks = async move {
            let mut ticks = interval(CHECK_EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                checked.check(&node).await;
            }
        };
        Self {
            watches,
            checks: tokio::spawn(checks),
            began: Instant::now(),
        }
    }

    pub(crate) const fn watches(&self) -> &Arc<Watches> {
        &self.watches
    }

    /// Begins a round: returns the contexts that have changed since the last one, and true if any may have.
    pub(crate) fn take(&mut self) -> (BTreeSet<u32>, bool) {
        self.began = Instant::now();
        self.watches.changes.take()
    }

    /// Returns after a change since the round began.
    pub(crate) async fn noted(&self) {
        self.watches.changes.noted(self.began + CHANGES_EVERY).await;
    }
}

/// State of a context between two looks.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    session: Option<Session>,
    until: Option<Instant>,
}

impl Rest {
    /// Returns true if no look is needed yet.
    pub(crate) fn is_on(&self, now: Instant) -> bool {
        let reported = self.session.as_ref().is_some_and(Session::is_usable);
        reported && self.until.is_some_and(|until| now < until)
    }

    pub(crate) fn end(&mut self) {
        self.until = None;
    }

    /// Begins a rest after a look that found these tasks, none of which can be done now. It ends at `again` at the latest.
    pub(crate) fn begin(&mut self, found: MessageTasks, again: Option<Instant>) {
        let now = Instant::now();
        let longest = now + LONGEST.mul_f64(rand::random_range(0.75..1.0));
        let next = found.next.map(|next| now + Duration::from_millis(next));
        self.until = [next, again].into_iter().flatten().chain([longest]).min();
    }

    /// Returns the tasks of the context; `None` if its server does not report changes, so that it is polled.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) async fn look(
        &mut self,
        watches: &Watches,
        context: &ContextHandle,
    ) -> Result<Option<MessageTasks>, Error> {
        let node = context.node().broker();
        // A rest is measured by the clock of this process, which a manual clock does not follow.
        if node.has_manual_clock() || context.keys().layout() != ContextLayout::Prefix {
            return Ok(None);
        }
        let looked = async {
            let session = match &mut self.session {
                Some(session) if session.is_usable() => session,
                other => {
                    let broker = node.of_context(context.keys().clone()).await?;
                    other.insert(watches.session(&broker).await?)
                }
            };
            match session.watch() {
                Some(_) => session.broker.look_for_messages().await.map(Some),
                None => Ok(None),
            }
        };
        let looked = timeout(LOOK_MOST, looked).await;
        let looked = looked.unwrap_or_else(|_| Err(Error::timed_out("look_for_messages")));
        if let Err(error) = &looked
            && let Some(session) = self.session.take()
            && let Some(watch) = session.watch()
            && error.is_unanswered()
        {
            watch.give_up();
        }
        looked
    }
}
