//! Spawner: gives each job a slot and a task.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use meshwork_model::outcome::{Failure, FailureKind, Report};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::mpsc::error::SendError;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::{Instrument, Span};

use super::completer;
use super::engine::Engine;
use super::executor::{self, RunContext};
use super::fetched::Fetched;
use super::protocol::{Intake, Protocol};
use super::release::release_all;
use super::task::{Arrival, LeasedJob, RunEvent, SlotGuard};
use crate::capacity::exclusive::{ExclusiveGate, GateTicket};
use crate::span;
use meshwork_runtime::lease::{Lease, Moment};
use meshwork_runtime::{Announced, StopReason};

/// Starts the jobs of one claim after another.
pub(super) struct Spawner<P: Protocol> {
    pub(super) starter: Arc<Starter<P>>,
    /// True if the last claim returned an exclusive job. Jobs beside it have to be released, and exclusive jobs often
    /// come in groups. So the worker claims one job at a time until another kind comes.
    pub(super) one_by_one: bool,
}

/// Starts single jobs, from any thread.
pub(super) struct Starter<P: Protocol> {
    engine: Arc<Engine<P>>,
    gate: ExclusiveGate,
    pub(super) running: TaskTracker,
    events: UnboundedSender<RunEvent<P::Job>>,
    runtime: Handle,
}

/// Parts of a job's task, before its span is known.
struct Start<P: Protocol> {
    engine: Arc<Engine<P>>,
    guard: SlotGuard<P::Job>,
    ticket: GateTicket,
    reserved: Option<Announced>,
}

impl<P: Protocol> Spawner<P> {
    pub(super) fn new(starter: Arc<Starter<P>>) -> Self {
        Self {
            starter,
            one_by_one: false,
        }
    }

    /// Returns true if nothing more may be claimed: an exclusive job waits or runs, or the worker has stopped.
    pub(super) fn is_closed(&self) -> bool {
        self.starter.gate.is_taken() || self.starter.running.is_closed()
    }

    /// Starts the jobs that run beside others, up to `room`, then the first exclusive one. Beside an exclusive job nothing
    /// waits: the others are left for release, since another worker may be free earlier. Their leases last until
    /// `lease_end` unless they are renewed.
    pub(super) fn start(
        &mut self,
        jobs: Vec<P::Job>,
        lease_end: Moment,
        room: usize,
    ) -> Placed<P::Job> {
        // The claim was sent before the gate was closed.
        if jobs.is_empty() || self.is_closed() {
            return Placed::left(jobs);
        }
        let starter = &self.starter;
        let hold = |job| starter.hold(job, lease_end);
        let (exclusive, mut others): (Vec<_>, Vec<_>) = jobs.into_iter().partition(P::is_exclusive);
        self.one_by_one = !exclusive.is_empty();
        let mut waiting = others.split_off(room.min(others.len()));
        starter.start_all(others.into_iter().map(hold).collect());
        let mut exclusive = exclusive.into_iter();
        let mut left = Vec::new();
        if let Some(first) = exclusive.next() {
            left.append(&mut waiting);
            starter.spawn(hold(first), starter.gate.alone(), None, None);
        }
        left.extend(exclusive);
        Placed { waiting, left }
    }
}

/// Jobs of a claim that were not started.
pub(super) struct Placed<J> {
    /// Jobs that wait for a slot.
    pub(super) waiting: Vec<J>,
    /// Jobs to release.
    pub(super) left: Vec<J>,
}

impl<J> Placed<J> {
    pub(super) fn left(left: Vec<J>) -> Self {
        Self {
            waiting: Vec::new(),
            left,
        }
    }
}

impl<P: Protocol> Starter<P> {
    /// Creates a starter on the current runtime.
    pub(super) fn new(
        engine: Arc<Engine<P>>,
        running: TaskTracker,
        events: UnboundedSender<RunEvent<P::Job>>,
    ) -> Self {
        Self {
            engine,
            gate: ExclusiveGate::new(),
            running,
            events,
            runtime: Handle::current(),
        }
    }

    fn reserve(&self, job: &P::Job) -> Option<Announced> {
        self.engine.protocol.runtime_of(job)?.announce()
    }

    /// Starts a job that came without a claim, and whose lease lasts until `lease_end` unless it is renewed. `begun` is
    /// notified when the run has passed its first step, or has ended.
    pub(super) fn take_in(&self, job: P::Job, lease_end: Moment, begun: Option<Arc<Notify>>) {
        // Before the check of `stop`, since shutdown waits for the token.
        let token = self.running.token();
        if self.engine.stop.is_cancelled() {
            self.release(job, token);
            return;
        }
        self.engine.meter.took(1);
        // The receiver is gone if the fetcher has ended.
        let _ = self.events.send(RunEvent::TakenIn);
        let reserved = self.reserve(&job);
        let task = self.leased(job, lease_end, token);
        self.spawn(task, self.gate.beside_others(), reserved, begun);
    }

    /// Passes jobs that a blocking read has claimed to the fetcher. If the fetcher has ended, releases them and returns
    /// false.
    pub(super) fn arrived(&self, queue: &str, fetched: Fetched<P::Job>) -> bool {
        let arrival = Arrival {
            queue: queue.to_owned(),
            fetched,
            running: self.running.token(),
        };
        match self.events.send(RunEvent::Arrived(arrival)) {
            Err(SendError(RunEvent::Arrived(arrival))) => {
                self.release_arrival(arrival);
                false
            }
            _ => true,
        }
    }

    /// Releases jobs that a blocking read has claimed.
    pub(super) fn release_arrival(&self, arrival: Arrival<P::Job>) {
        for job in arrival.fetched.jobs {
            self.release(job, arrival.running.clone());
        }
    }

    /// Adds a claimed job to those in flight. It waits for a slot.
    pub(super) fn hold(&self, job: P::Job, lease_end: Moment) -> LeasedJob<P::Job> {
        self.leased(job, lease_end, self.running.token())
    }

    /// Starts jobs beside others.
    pub(super) fn start_all(&self, tasks: Vec<LeasedJob<P::Job>>) {
        let reserved: Vec<_> = tasks.iter().map(|task| self.reserve(&task.job)).collect();
        for (task, reserved) in tasks.into_iter().zip(reserved) {
            self.spawn(task, self.gate.beside_others(), reserved, None);
        }
    }

    fn leased(&self, job: P::Job, lease_end: Moment, token: TaskTrackerToken) -> LeasedJob<P::Job> {
        let job = Arc::new(job);
        let lease = Lease::until(lease_end, &self.engine.config.clock);
        // Added here, so that jobs in flight have the order of their claims.
        let (cancel, seq) = self.engine.in_flight.add(&job, &lease);
        LeasedJob {
            job,
            lease,
            cancel,
            seq,
            _running: token,
        }
    }

    /// Releases a job that has not started.
    pub(super) fn release(&self, job: P::Job, token: TaskTrackerToken) {
        let engine = Arc::clone(&self.engine);
        self.runtime.spawn(async move {
            let _token = token;
            release(&engine, &job).await;
        });
    }

    fn spawn(
        &self,
        task: LeasedJob<P::Job>,
        ticket: GateTicket,
        reserved: Option<Announced>,
        begun: Option<Arc<Notify>>,
    ) {
        self.engine.in_flight.begun(task.seq);
        let start = Start {
            engine: Arc::clone(&self.engine),
            guard: SlotGuard::new(task, self.events.clone()),
            ticket,
            reserved,
        };
        match begun {
            Some(begun) => self.runtime.spawn(tell_when_begun(start.run(), begun)),
            None => self.runtime.spawn(start.run()),
        };
    }
}

impl<P: Protocol> Intake<P::Job> for Starter<P> {
    fn free(&self) -> usize {
        match self.engine.stop.is_cancelled() {
            true => 0,
            false => self.engine.slots.available_permits(),
        }
    }

    fn each(&self, see: &mut dyn FnMut(&P::Job)) {
        self.engine.in_flight.each(see);
    }

    fn take(&self, job: P::Job) {
        // The registration was renewed before the call that returned the job, on the same thread.
        let lease_end = self.engine.registered_until();
        self.take_in(job, lease_end, None);
    }
}

async fn release<P: Protocol>(engine: &Engine<P>, job: &P::Job) {
    let release = |job| engine.protocol.release(job);
    release_all([job], engine.config.lease, release).await;
}

/// Notifies `begun` when a future has passed its first step, or has ended in any way.
async fn tell_when_begun(run: impl Future<Output = ()>, begun: Arc<Notify>) {
    struct Tells(Arc<Notify>);
    impl Drop for Tells {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let tells = Tells(begun);
    let mut run = pin!(run);
    let is_over = std::future::poll_fn(|context| {
        std::task::Poll::Ready(run.as_mut().poll(context).is_ready())
    });
    let is_over = is_over.await;
    drop(tells);
    if !is_over {
        run.await;
    }
}

impl<P: Protocol> Start<P> {
    async fn run(self) {
        let Some(job) = self.guard.task().map(|task| Arc::clone(&task.job)) else {
            return;
        };
        let protocol = &self.engine.protocol;
        // A panic here would repeat on the next worker.
        let span = catch_unwind(AssertUnwindSafe(|| protocol.span(&job)));
        let is_sound = span.is_ok();
        let (span, trace) = span.unwrap_or_else(|_| (Span::none(), None));
        if let Some(attempt) = P::attempt(&job) {
            span.record("attempt", attempt);
        }
        let work = work(
            self.engine,
            self.guard,
            self.ticket,
            (trace, self.reserved),
            is_sound,
        );
        work.instrument(span).await;
    }
}

/// Runs one job from claim to report.
async fn work<P: Protocol>(
    engine: Arc<Engine<P>>,
    mut guard: SlotGuard<P::Job>,
    ticket: GateTicket,
    context: RunContext,
    is_sound: bool,
) {
    let Some(task) = guard.task() else { return };
    let Some(slot) = slot(&engine, task).await else {
        return;
    };
    span::dequeued();
    let ended = tokio::select! {
        biased;
        // The job has not started.
        reason = task.cancel.stopped() => match reason {
            StopReason::Requested => Some((Report::failed(Failure::stopped()), Duration::ZERO)),
            StopReason::Lost => None,
        },
        entered = ticket.enter() => {
            let ended = match is_sound {
                true => executor::execute(&engine, task, context).await,
                false => Some((executor::unprepared(), Duration::ZERO)),
            };
            drop(entered);
            ended
        }
    };
    drop(ticket);
    let Some((report, took)) = ended else {
        if task.lease.has_refused() {
            tracing::warn!(job = %P::id(&task.job), "job released: its lease was over before its start");
            completer::not_started(&engine, task).await;
        }
        return;
    };
    let runtime = || engine.protocol.runtime(P::queue(&task.job));
    match report.result {
        Err(failure) if failure.kind == FailureKind::NotStarted => {
            // First, so that the next claim leaves the job to others.
            engine.readiness.failed(&runtime(), &failure.message);
            completer::not_started(&engine, task).await;
        }
        // Reported while the guard has the job, so that its slot is freed in any case.
        Err(ref failure) => {
            match failure.is_of_host {
                true => engine.readiness.failed(&runtime(), &failure.message),
                false => engine.readiness.started(runtime),
            }
            completer::fail(&engine, task, &report, took).await;
            guard.failed(took);
        }
        Ok(output) => {
            engine.readiness.started(runtime);
            let result = guard.ended(output, (report.stdout, report.stderr), took);
            match result {
                Some(result) if !P::BATCH_REPORTS => completer::complete(&engine, result).await,
                _ => guard.hand_over(),
            }
        }
    }
    drop(slot);
}

/// Waits for a slot for a job that came without a claim. If none is free within one heartbeat interval, releases the
/// job for another worker and returns `None`.
async fn slot<'a, P: Protocol>(
    engine: &'a Engine<P>,
    task: &LeasedJob<P::Job>,
) -> Option<Option<tokio::sync::SemaphorePermit<'a>>> {
    if !P::PUSH_DELIVERY {
        return Some(None);
    }
    if let Ok(slot) = engine.slots.try_acquire() {
        return Some(Some(slot));
    }
    tokio::select! {
        biased;
        Ok(slot) = engine.slots.acquire() => return Some(Some(slot)),
        // Another worker has the job, or it was released with all others.
        () = task.cancel.lost() => return None,
        () = engine.stop.cancelled() => {}
        () = tokio::time::sleep(engine.config.heartbeat_interval()) => {}
    }
    release(engine, &task.job).await;
    None
}
