//! Start: gives each job that was claimed a slot and a task of its own.

use std::sync::Arc;

use meshwork_broker::Claimed;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::Setup;
use super::held::Held;
use super::slot::{self, Berth, Ended, Slot};
use super::turn::{Place, Turns};
use crate::runner::Announced;
use crate::span;

/// Starts what was claimed.
pub(super) struct Starter {
    setup: Arc<Setup>,
    held: Arc<Held>,
    turns: Turns,
    running: TaskTracker,
    ended: UnboundedSender<Ended>,
    /// The last claim brought a job that runs alone. Such jobs come in rows, and what is claimed beside one
    /// is handed back: until another kind comes they are claimed one by one.
    pub(super) one_by_one: bool,
}

impl Starter {
    pub(super) fn new(
        setup: Arc<Setup>,
        held: Arc<Held>,
        running: TaskTracker,
        ended: UnboundedSender<Ended>,
    ) -> Self {
        Self {
            setup,
            held,
            turns: Turns::new(),
            running,
            ended,
            one_by_one: false,
        }
    }

    /// Whether a job waits to run alone, or does: nothing more is to be claimed.
    pub(super) fn is_closed(&self) -> bool {
        self.turns.is_taken()
    }

    /// Starts those that run beside others, then the first of those that run alone. Returns the rest of
    /// these: they are better handed back, since another worker may be free for them long before this one.
    #[must_use]
    pub(super) fn start(&mut self, jobs: Vec<Claimed>) -> Vec<Claimed> {
        if self.is_closed() {
            // They were asked for before this was known.
            return jobs;
        }
        if jobs.is_empty() {
            return jobs;
        }
        let (beside_others, alone): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|claimed| claimed.job.concurrent);
        self.one_by_one = !alone.is_empty();
        let announced: Vec<_> = beside_others.iter().map(|job| self.announce(job)).collect();
        for (claimed, announced) in beside_others.into_iter().zip(announced) {
            self.spawn(claimed, self.turns.beside_others(), announced);
        }
        let mut alone = alone.into_iter();
        if let Some(first) = alone.next() {
            self.spawn(first, self.turns.alone(), None);
        }
        alone.collect()
    }

    fn announce(&self, claimed: &Claimed) -> Option<Announced> {
        self.setup.runner(&claimed.queue)?.announce()
    }

    fn spawn(&self, claimed: Claimed, place: Place, announced: Option<Announced>) {
        let (span, trace) = span::of_run(&claimed, self.setup.identity.worker());
        let claimed = Arc::new(claimed);
        // Now, so that they are held in the order in which they were claimed.
        let (stop, held) = self.held.add(&claimed);
        let slot = Slot {
            claimed,
            stop,
            place: held,
            _running: self.running.token(),
        };
        let berth = Berth::new(slot, self.ended.clone());
        let work = slot::work(Arc::clone(&self.setup), berth, place, (trace, announced));
        tokio::spawn(work.instrument(span));
    }
}
