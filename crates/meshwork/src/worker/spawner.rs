//! Spawner: gives each job that was claimed a slot and a task of its own.

use std::sync::Arc;

use meshwork_model::outcome::{Failure, Report};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::completer;
use super::engine::Engine;
use super::exclusive::{ExclusiveGate, GateTicket};
use super::executor::{self, RunContext};
use super::protocol::Protocol;
use super::task::{LeasedJob, RunEvent, SlotGuard};
use crate::runner::{Announced, StopReason};
use crate::span;

/// Starts jobs that were claimed.
pub(super) struct Spawner<P: Protocol> {
    engine: Arc<Engine<P>>,
    gate: ExclusiveGate,
    running: TaskTracker,
    events: UnboundedSender<RunEvent<P::Job>>,
    /// The last claim brought an exclusive job. Such jobs come in rows, and what is claimed beside one is released: until
    /// another kind comes they are claimed one by one.
    pub(super) one_by_one: bool,
}

impl<P: Protocol> Spawner<P> {
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
            one_by_one: false,
        }
    }

    /// Whether an exclusive job waits or runs: nothing more is to be claimed.
    pub(super) fn is_closed(&self) -> bool {
        self.gate.is_taken()
    }

    /// Starts the jobs that run beside others, then the first exclusive one. Returns the other exclusive jobs, which are
    /// better released: another worker may be free for them long before this one.
    #[must_use]
    pub(super) fn start(&mut self, jobs: Vec<P::Job>) -> Vec<P::Job> {
        // They were asked for before it was known that the gate is closed.
        if jobs.is_empty() || self.is_closed() {
            return jobs;
        }
        let (exclusive, others): (Vec<_>, Vec<_>) = jobs.into_iter().partition(P::is_exclusive);
        self.one_by_one = !exclusive.is_empty();
        let reserved: Vec<_> = others.iter().map(|job| self.reserve(job)).collect();
        for (job, reserved) in others.into_iter().zip(reserved) {
            self.spawn(job, self.gate.beside_others(), reserved);
        }
        let mut exclusive = exclusive.into_iter();
        if let Some(first) = exclusive.next() {
            self.spawn(first, self.gate.alone(), None);
        }
        exclusive.collect()
    }

    fn reserve(&self, job: &P::Job) -> Option<Announced> {
        self.engine.protocol.runner(job)?.announce()
    }

    fn spawn(&self, job: P::Job, ticket: GateTicket, reserved: Option<Announced>) {
        let (span, trace) = self.engine.protocol.span(&job);
        let job = Arc::new(job);
        // Added now, so that jobs in flight have the order of their claims.
        let (cancel, seq) = self.engine.in_flight.add(&job);
        let task = LeasedJob {
            job,
            cancel,
            seq,
            _running: self.running.token(),
        };
        let guard = SlotGuard::new(task, self.events.clone());
        let work = work(Arc::clone(&self.engine), guard, ticket, (trace, reserved));
        tokio::spawn(work.instrument(span));
    }
}

/// One job from claim to report.
async fn work<P: Protocol>(
    engine: Arc<Engine<P>>,
    mut guard: SlotGuard<P::Job>,
    ticket: GateTicket,
    context: RunContext,
) {
    let Some(task) = guard.task() else { return };
    span::dequeued();
    let ended = tokio::select! {
        biased;
        entered = ticket.enter() => {
            let ended = executor::execute(&engine, task, context).await;
            drop(entered);
            ended
        }
        // It has not begun.
        reason = task.cancel.stopped() => match reason {
            StopReason::Requested => Some((Report::failed(Failure::stopped()), std::time::Duration::ZERO)),
            StopReason::Lost => None,
        },
    };
    drop(ticket);
    let Some((report, took)) = ended else { return };
    match report.result {
        // Reported while the guard has the job, so that its slot is freed in any case.
        Err(_) => completer::fail(&engine, task, &report, took).await,
        Ok(output) => guard.complete(output, (report.stdout, report.stderr), took),
    }
}
