//! Member of a pool: the keys that the poller polls for a worker, and the signals that it sends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use meshwork_broker::{Broker, DueTasks, PollKeys, PollResult};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::super::registry::reclaim_dead;
use super::super::subscription::Lists;
use super::PoolState;
use crate::worker::capacity::demand::Demand;
use crate::worker::protocol::Queues;

/// Longest time between two maintenance calls of an idle context. Tasks that the poller does not check, such as
/// retention, run this often.
const IDLE_POLL: Duration = Duration::from_secs(300);
/// Time for which a context is polled every second after it had work.
const LINGER: Duration = Duration::from_secs(3);

/// A worker of a pool.
#[derive(Debug)]
pub(in crate::protocol::hero) struct Member {
    broker: Broker,
    demand: Arc<Demand>,
    lists: watch::Receiver<Arc<Lists>>,
    control: Vec<String>,
    /// Number of the worker's registrations.
    names: usize,
    /// Session over the poller's connection.
    beats: tokio::sync::Mutex<Option<Broker>>,
    /// Notified of a wakeup for delayed jobs.
    pub(in crate::protocol::hero) wakeup: Notify,
    /// Notified when a flow is due.
    pub(in crate::protocol::hero) flow: Arc<Notify>,
    /// True if leases or registrations have expired.
    expired: AtomicBool,
    poll: Mutex<Poll>,
}

/// Times of the polls of the context.
#[derive(Debug)]
struct Poll {
    last: Option<Instant>,
    /// End of the polls that come every second.
    until: Option<Instant>,
    /// Pause before a poll without cause. It differs by context, so that the polls of many contexts are spread.
    pause: Duration,
}

impl Member {
    /// Creates a member for a worker with this number of registrations.
    pub(in crate::protocol::hero) fn new(
        broker: &Broker,
        lists: watch::Receiver<Arc<Lists>>,
        (control, names): (Vec<String>, usize),
    ) -> Self {
        let pause = IDLE_POLL.mul_f64(rand::random_range(0.5..1.0));
        let (last, until) = (None, None);
        Self {
            broker: broker.clone(),
            demand: Arc::new(Demand::new()),
            lists,
            control,
            names,
            beats: tokio::sync::Mutex::default(),
            wakeup: Notify::new(),
            flow: Arc::default(),
            expired: AtomicBool::new(true),
            poll: Mutex::new(Poll { last, until, pause }),
        }
    }

    pub(super) fn demand(&self) -> &Arc<Demand> {
        &self.demand
    }

    pub(super) fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Returns true if leases or registrations have expired since the last call.
    pub(in crate::protocol::hero) fn take_expired(&self) -> bool {
        self.expired.swap(false, Ordering::Relaxed)
    }

    /// Returns true if a poll is due: every second while jobs run, and after a look that found work.
    pub(in crate::protocol::hero) fn is_poll_due(&self, running: usize) -> bool {
        let mut poll = self.poll.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_due = running > 0
            || poll.until.is_some_and(|until| now < until)
            || poll.last.is_none_or(|last| now >= last + poll.pause);
        if is_due {
            poll.last = Some(now);
        }
        if running > 0 {
            poll.until = Some(now + LINGER);
        }
        is_due
    }

    /// Polls every second for a while, because the context has work.
    pub(in crate::protocol::hero) fn expect_poll(&self) {
        let mut poll = self.poll.lock().unwrap_or_else(PoisonError::into_inner);
        poll.until = Some(Instant::now() + LINGER);
    }

    /// Polls once, unless a poll is running. With `due`, also checks for due tasks.
    pub(super) async fn look(
        &self,
        pool: &PoolState,
        due: bool,
    ) -> Result<(), meshwork_broker::Error> {
        let Ok(mut beats) = self.beats.try_lock() else {
            return Ok(());
        };
        let broker = match &mut *beats {
            Some(broker) => broker,
            none => none.insert(pool.beats(&self.broker).await?),
        };
        let queues = self.wanted();
        let (queues, control) = (&queues[..], &self.control[..]);
        self.looked(broker, broker.look(PollKeys { queues, control }).await?)
            .await?;
        if due {
            self.note_due(broker, broker.look_for_due().await?).await?;
        }
        Ok(())
    }

    /// Returns the queues from which an id would be claimed now.
    fn wanted(&self) -> Vec<String> {
        if !self.demand.is_hungry() {
            return Vec::new();
        }
        let lists = Arc::clone(&self.lists.borrow());
        let names = lists.names().iter();
        let wanted = names.filter(|queue| self.demand.is_demanded(queue));
        wanted.cloned().collect()
    }

    async fn looked(
        &self,
        broker: &Broker,
        looked: PollResult,
    ) -> Result<(), meshwork_broker::Error> {
        if looked.ids {
            self.demand.note_ids();
        }
        if looked.requests {
            self.expect_poll();
        }
        if looked.wakeup && broker.take_wakeup().await? {
            self.wakeup.notify_one();
        }
        if looked.flow && broker.take_flow_wakeup().await? {
            self.flow.notify_one();
        }
        Ok(())
    }

    async fn note_due(
        &self,
        broker: &Broker,
        seen: DueTasks,
    ) -> Result<(), meshwork_broker::Error> {
        if seen.expired {
            self.expired.store(true, Ordering::Relaxed);
        }
        if seen.maintenance {
            self.expect_poll();
        }
        if seen.flow {
            self.flow.notify_one();
        }
        if seen.actors > self.names {
            reclaim_dead(broker).await?;
        }
        Ok(())
    }
}
