//! Jobs that are claimed and wait for a slot.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;

use super::Fetcher;
use crate::capacity::prefetch::MOST_WAIT;
use crate::exchange::ExchangeEvent;
use crate::protocol::Protocol;
use crate::release::release_all;
use crate::task::LeasedJob;
use meshwork_runtime::lease::Moment;

/// Prefetched jobs in the order of their claims, in which they start. Another order would let jobs of a high priority starve
/// those for which claims of the reverse order exist.
#[derive(Debug)]
pub(super) struct Prefetched<J> {
    jobs: VecDeque<Waiting<J>>,
}

#[derive(Debug)]
struct Waiting<J> {
    task: LeasedJob<J>,
    /// Time at which all are released.
    until: Instant,
}

impl<J> Default for Prefetched<J> {
    fn default() -> Self {
        Self {
            jobs: VecDeque::new(),
        }
    }
}

impl<J> Prefetched<J> {
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    fn add(&mut self, task: LeasedJob<J>, until: Instant) {
        self.jobs.push_back(Waiting { task, until });
    }

    fn take(&mut self, most: usize) -> Vec<LeasedJob<J>> {
        let first = self.jobs.drain(..most.min(self.jobs.len()));
        first.map(|waiting| waiting.task).collect()
    }

    /// Returns the time of the next release.
    pub(super) fn until(&self) -> Option<Instant> {
        self.jobs.front().map(|waiting| waiting.until)
    }
}

impl<P: Protocol> Fetcher<P> {
    /// Keeps jobs until slots are free. Their leases last until `lease_end` unless they are renewed.
    pub(super) fn keep(&mut self, jobs: Vec<P::Job>, lease_end: Moment) {
        let until = Instant::now() + MOST_WAIT;
        for job in jobs {
            let task = self.spawner.starter.hold(job, lease_end);
            self.prefetched.add(task, until);
        }
    }

    /// Returns the number of jobs that may start now.
    pub(super) fn room(&self) -> usize {
        let running = self.in_flight - self.prefetched.len() - self.ready.len();
        self.engine.config.concurrency.saturating_sub(running)
    }

    /// Starts prefetched jobs on free slots. Releases those that waited too long, or that nobody is to start any more.
    pub(super) fn start_prefetched(&mut self) {
        if self.prefetched.len() == 0 {
            return;
        }
        if self.stopping || self.spawner.is_closed() {
            let all = self.prefetched.take(usize::MAX);
            return self.release_prefetched(all);
        }
        let room = self.room();
        let tasks = self.prefetched.take(room);
        self.spawner.starter.start_all(tasks);
        let now = Instant::now();
        if self.prefetched.until().is_some_and(|until| until <= now) {
            // All of them, so that they keep their order.
            self.depth.stalled();
            let all = self.prefetched.take(usize::MAX);
            self.release_prefetched(all);
        }
    }

    /// Returns prefetched jobs to the fronts of their queues. The last one goes first, so that they keep their order.
    fn release_prefetched(&mut self, tasks: Vec<LeasedJob<P::Job>>) {
        self.in_flight -= tasks.len();
        self.releases += 1;
        let engine = Arc::clone(&self.engine);
        self.flying.push(Box::pin(async move {
            let (in_flight, protocol) = (&engine.in_flight, &engine.protocol);
            // A renewal may find that a job is released already.
            tasks.iter().for_each(|task| in_flight.ended(task.seq));
            let jobs = tasks.iter().rev().map(|task| Arc::clone(&task.job));
            let jobs: Vec<_> = jobs.collect();
            let release = |job: Arc<P::Job>| async move { protocol.release(&job).await };
            release_all(jobs, engine.config.lease, release).await;
            tasks.iter().for_each(|task| in_flight.remove(task.seq));
            ExchangeEvent::Released
        }));
    }
}
