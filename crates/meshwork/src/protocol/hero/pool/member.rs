//! Member of a pool: the keys that the poller polls for a worker, and the signals that it sends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_broker::{Broker, DueTasks, PollKeys, PollResult};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::worker_request::WorkerRequest;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::super::registry::reclaim_dead;
use super::super::subscription::{Lists, Subscriptions};
use super::PoolState;
use super::watches::{Session, Watch};
use meshwork_worker::Demand;
use meshwork_worker::dedicated_thread::within;
use meshwork_worker::{Queues, RIGHTS_FOR};

/// Longest time between two maintenance calls of an idle context. Tasks that the poller does not check, such as
/// retention, run this often.
const IDLE_POLL: Duration = Duration::from_secs(300);
/// Time for which a context is polled every second after it had work.
const LINGER: Duration = Duration::from_secs(3);
/// Time for each member of a pool between two of these calls, and between two checks of rights.
const IDLE_EACH: Duration = Duration::from_secs(3);
/// Longest time without a look at a context whose server reports changes: for a report that got lost, and for a server
/// whose clock was set.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Time for each member of a pool between two such looks.
const LOOK_EACH: Duration = Duration::from_millis(120);
/// Time without a look after which a change is looked at before the next poll.
const CALM: Duration = Duration::from_millis(100);
/// Longest time of a look. A server that hangs is then connected to again, wherever the data is.
const LOOK_MOST: Duration = Duration::from_secs(4);

/// Keys of a worker, and the number of its registrations.
#[derive(Debug)]
pub(in crate::protocol::hero) struct MemberKeys {
    /// Lists with requests to cancel jobs.
    control: Vec<String>,
    /// Requests to the worker.
    requests: Vec<String>,
    names: usize,
}

impl MemberKeys {
    pub(in crate::protocol::hero) fn of(
        keys: &JobKeys,
        places: &Subscriptions,
        worker: &str,
    ) -> Self {
        Self {
            control: places.control_queues(keys),
            requests: WorkerRequest::ALL
                .map(|request| keys.worker_request(worker, request))
                .into(),
            names: places.listens.len(),
        }
    }
}

/// A worker of a pool.
#[derive(Debug)]
pub(in crate::protocol::hero) struct Member {
    broker: Broker,
    demand: Arc<Demand>,
    lists: watch::Receiver<Arc<Lists>>,
    keys: MemberKeys,
    /// Session over the poller's connection.
    session: tokio::sync::Mutex<Option<Session>>,
    /// Results of looks, as far as the server would have reported changes since.
    known: Mutex<Known>,
    /// Notified of a wakeup for delayed jobs.
    pub(in crate::protocol::hero) wakeup: Notify,
    /// Notified when a flow is due.
    pub(in crate::protocol::hero) flow: Arc<Notify>,
    /// True if leases or registrations have expired.
    expired: AtomicBool,
    /// True if there may be a request to the worker.
    requested: AtomicBool,
    poll: Mutex<Poll>,
    /// Longest time without a look.
    look_again: Duration,
    /// Number of members of the pool.
    size: u32,
}

/// State since the last look, for a server that reports changes: nothing is looked at twice without a change.
#[derive(Debug, Default)]
struct Known {
    /// Reports come over this connection.
    watch: Option<Arc<Watch>>,
    /// Queues that were empty in the last look, if nothing has changed since.
    empty: Option<Vec<String>>,
    /// Time of the last look.
    looked: Option<Instant>,
    /// Time of the next due task, if nothing has changed since; `None` inside: no task has a time.
    due: Option<Option<Instant>>,
    /// Time of the last look that found something.
    found: Option<Instant>,
}

impl Known {
    fn forget(&mut self) {
        (self.empty, self.due) = (None, None);
    }
}

/// Times of the polls of the context.
#[derive(Debug)]
struct Poll {
    last: Option<Instant>,
    /// End of the polls that come every second.
    until: Option<Instant>,
    /// Pause before a poll without cause.
    pause: Duration,
}

impl Member {
    pub(in crate::protocol::hero) fn new(
        broker: &Broker,
        lists: watch::Receiver<Arc<Lists>>,
        keys: MemberKeys,
        size: usize,
    ) -> Self {
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        // They differ by context, so that those of a pool are spread.
        let pause = IDLE_POLL.max(IDLE_EACH * size);
        let pause = pause.mul_f64(rand::random_range(0.5..1.0));
        let look_again = LOOK_AGAIN.max(LOOK_EACH * size);
        let (last, until) = (None, None);
        Self {
            broker: broker.clone(),
            demand: Arc::new(Demand::default()),
            lists,
            keys,
            session: tokio::sync::Mutex::default(),
            known: Mutex::default(),
            wakeup: Notify::new(),
            flow: Arc::default(),
            expired: AtomicBool::new(true),
            requested: AtomicBool::new(true),
            poll: Mutex::new(Poll { last, until, pause }),
            look_again: look_again.mul_f64(rand::random_range(0.75..1.0)),
            size,
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of its context; `None` for jobs without a context.
    pub(super) fn context(&self) -> Option<u32> {
        let keys = self.broker.keys().context()?;
        Some(keys.context().get())
    }

    /// Records that a key of the context has changed.
    pub(super) fn note_change(&self) {
        self.known().forget();
    }

    /// Returns true if the next look may find something. With `due`, it also checks for due tasks.
    pub(super) fn is_look_due(&self, due: bool) -> bool {
        let wanted = self.wanted();
        let mut known = self.known();
        let is_old = |at: Instant| at.elapsed() >= self.look_again;
        if due && known.looked.is_none_or(is_old) {
            known.forget();
        }
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= Instant::now());
        known.watch.is_none()
            || known.empty.as_ref() != Some(&wanted)
            || due && known.due.is_none_or(is_due)
    }

    /// Returns true if its server reports no changes, and the last looks found nothing.
    pub(super) fn is_polled_idle(&self) -> bool {
        let known = self.known();
        known.watch.is_none() && known.found.is_none_or(|at| at.elapsed() > LINGER)
    }

    /// Returns true if it was not looked at during the last interval of polls.
    pub(super) fn is_calm(&self) -> bool {
        self.known().looked.is_none_or(|at| at.elapsed() > CALM)
    }

    /// Returns true if its server has answered lately over the pool's connection.
    pub(in crate::protocol::hero) fn is_reached(&self) -> bool {
        let known = self.known();
        known.watch.as_ref().is_some_and(|watch| watch.is_reached())
    }

    /// Returns true if there may be a request to the worker: one was found, or the server reports no changes.
    pub(in crate::protocol::hero) fn take_request(&self) -> bool {
        self.requested.swap(false, Ordering::Relaxed) || self.known().watch.is_none()
    }

    /// Returns the time for which a check of rights counts.
    pub(in crate::protocol::hero) fn rights_for(&self) -> Duration {
        RIGHTS_FOR.max(IDLE_EACH * self.size)
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
        let Ok(mut session) = self.session.try_lock() else {
            return Ok(());
        };
        let looked = within("look", LOOK_MOST, async {
            let session = match &mut *session {
                Some(session) if session.is_usable() => session,
                other => {
                    self.note_change();
                    let opened = pool.session(&self.broker).await?;
                    self.known().watch = opened.watch().cloned();
                    other.insert(opened)
                }
            };
            self.look_over(session, due).await
        });
        match looked.await {
            Ok(workers) if workers > self.keys.names => {
                reclaim_dead(&pool.beats(&self.broker).await?).await?;
            }
            Ok(_) => {}
            Err(error) => {
                // The context may be on another server now. Nobody else repairs a connection that reports changes.
                self.note_change();
                if let Some(watch) = self.known().watch.take() {
                    *session = None;
                    if error.is_unanswered() {
                        watch.give_up();
                    }
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn begin_look(&self, wanted: &[String]) {
        let mut known = self.known();
        (known.empty, known.looked) = (Some(wanted.to_vec()), Some(Instant::now()));
    }

    fn end_look(&self, looked: &PollResult) {
        if *looked != PollResult::default() {
            let mut known = self.known();
            (known.empty, known.found) = (None, Some(Instant::now()));
        }
    }

    fn end_due_look(&self, seen: &DueTasks) {
        let (mut known, now) = (self.known(), Instant::now());
        // Tasks of others may end in silence: with their process.
        if seen.expired || seen.maintenance || seen.flow || seen.held {
            (known.due, known.found) = (None, Some(now));
        }
        // A change that was reported meanwhile stays.
        if known.due.is_some() {
            known.due = Some(seen.next.map(|next| now + Duration::from_millis(next)));
        }
    }

    /// Returns the number of workers in the context, as far as it was read.
    async fn look_over(
        &self,
        session: &Session,
        due: bool,
    ) -> Result<usize, meshwork_broker::Error> {
        let (broker, wanted) = (&session.broker, self.wanted());
        let reports = session.watch().is_some();
        if !reports || self.known().empty.as_ref() != Some(&wanted) {
            // A change that is reported from now on clears it again.
            self.begin_look(&wanted);
            let keys = PollKeys {
                queues: &wanted,
                control: &self.keys.control,
                worker: &self.keys.requests,
            };
            let looked = broker.look(keys).await?;
            self.end_look(&looked);
            self.looked(broker, looked).await?;
        }
        if due && (!reports || self.is_look_due(true)) {
            self.known().due = Some(None);
            let seen = broker.look_for_due().await?;
            self.end_due_look(&seen);
            self.note_due(seen);
            return Ok(seen.workers);
        }
        Ok(0)
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
        if looked.worker {
            self.requested.store(true, Ordering::Relaxed);
        }
        if looked.wakeup && broker.take_wakeup().await? {
            self.wakeup.notify_one();
        }
        if looked.flow && broker.take_flow_wakeup().await? {
            self.flow.notify_one();
        }
        Ok(())
    }

    fn note_due(&self, seen: DueTasks) {
        if seen.expired {
            self.expired.store(true, Ordering::Relaxed);
        }
        if seen.maintenance {
            self.expect_poll();
        }
        if seen.flow {
            self.flow.notify_one();
        }
    }
}
