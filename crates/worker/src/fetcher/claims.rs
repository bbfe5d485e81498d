//! The rules of a call: when it is sent, with which results, and how many jobs it requests.

use tokio::time::Instant;

use super::batch::batch;
use super::{FRUITLESS, Fetcher, MOST_CALLS, PARTS, SAFETY};
use crate::exchange::{Exchange, FetchRequest};
use crate::protocol::Protocol;
use meshwork_runtime::lease::Moment;

/// Number of jobs to request.
#[derive(Debug, Clone, Copy, Default)]
struct Want {
    /// For free slots.
    slots: usize,
    /// Beyond them.
    ahead: usize,
}

impl Want {
    fn jobs(self) -> usize {
        self.slots + self.ahead
    }
}

impl<P: Protocol> Fetcher<P> {
    /// Returns the next call, if any.
    pub(super) fn next(&mut self) -> Option<Exchange<P::Job>> {
        if self.resting || self.calls >= MOST_CALLS {
            return None;
        }
        let (sent, sent_at) = (Instant::now(), self.engine.config.clock.now());
        if self.ready.front().is_some_and(|ran| ran.alone) {
            return Some(Exchange {
                results: self.ready.pop_front().into_iter().collect(),
                fetch: None,
                sent,
                sent_at,
            });
        }
        let fills_a_call = self.ready.len() >= self.part();
        if self.calls > 0 && self.arrivals.is_empty() && !fills_a_call {
            return None;
        }
        let part = self.part();
        let results = batch::<P>(&mut self.ready, part);
        for ran in &results {
            self.unblock(P::queue(&ran.task.job), sent);
        }
        let fetch = self.claim(results.len(), sent, sent_at);
        (fetch.is_some() || !results.is_empty()).then_some(Exchange {
            results,
            fetch,
            sent,
            sent_at,
        })
    }

    /// Returns the greatest number of results of one call.
    fn part(&self) -> usize {
        let part = (self.engine.config.concurrency + self.depth.jobs()).div_ceil(PARTS);
        part.min(meshwork_broker::MAX_ITEMS)
    }

    /// Returns the request to send with this many results, if any.
    fn claim(&mut self, results: usize, now: Instant, sent_at: Moment) -> Option<FetchRequest> {
        let want = self.want(results);
        if self.stopping {
            // When the worker deregisters, prefetched ids return to their queues.
            self.arrivals.clear();
        }
        let hungry = !self.empty || self.wakes().is_some_and(|at| at <= now);
        if self.arrivals.is_empty() && (want.jobs() == 0 || !hungry) {
            return None;
        }
        let mut skipped = self.engine.paused();
        let sweep = self.swept.is_none_or(|swept| swept + SAFETY <= now);
        let is_back = |queue| sweep || self.arrivals.contains(queue);
        let returns = !P::PUSH_DELIVERY && skipped.iter().any(is_back);
        let want = self.granted(if returns { Want::default() } else { want }, results);
        if returns {
            // A claim of no jobs returns the prefetched ids of paused queues.
            skipped.clear();
        } else if self.arrivals.is_empty() && want.jobs() == 0 {
            return None;
        }
        let arrivals = std::mem::take(&mut self.arrivals);
        let mut until = sent_at + self.engine.config.lease;
        if !returns && (arrivals.is_empty() || P::PUSH_DELIVERY) {
            skipped.extend(self.blocked.skipped(now));
        }
        if P::PUSH_DELIVERY
            && let Some(known) = &*self.registered.borrow_and_update()
        {
            // After the end of the registration, other workers take its jobs.
            until = known.until;
            skipped.extend(known.refused.iter().cloned());
        }
        Some(FetchRequest {
            until,
            want: want.jobs(),
            ahead: want.ahead,
            // Two concurrent claims take the queues in their usual order.
            round: (self.claims == 0).then_some(self.rounds),
            skipped,
            arrivals,
            sweep,
        })
    }

    /// Returns the part of `want` for which there are slots.
    fn granted(&mut self, want: Want, results: usize) -> Want {
        let Some(seat) = &self.engine.seat else {
            return want;
        };
        if want.slots == 0 {
            return Want::default();
        }
        seat.settle(self.in_flight + self.reserved, true);
        let slots = seat.take(want.slots, results);
        self.waits_for_turn = slots == 0;
        Want { slots, ahead: 0 }
    }

    /// Claims the ids that were found, unless such claims keep returning nothing.
    pub(super) fn seen(&mut self) {
        if self.fruitless < FRUITLESS || self.looked.elapsed() >= SAFETY {
            self.empty = false;
        }
    }

    /// Returns the number of jobs to request with this many results.
    fn want(&self, results: usize) -> Want {
        let busy = (self.in_flight - results) + self.reserved;
        let concurrency = self.engine.config.concurrency;
        let slots = concurrency.saturating_sub(busy);
        let is_known = !P::PUSH_DELIVERY || self.engine.registration().is_some();
        if self.stopping || self.releases > 0 || self.spawner.is_closed() || !is_known {
            Want::default()
        } else if !self.spawner.one_by_one {
            // A claim for no slot is worth a call only if it goes with results, or is sure to find jobs.
            let ahead = match slots > 0 || results > 0 || self.full {
                true => (concurrency + self.depth.jobs()).saturating_sub(busy + slots),
                false => 0,
            };
            Want { slots, ahead }
        } else if self.claims > 0 {
            Want::default()
        } else {
            Want {
                slots: slots.min(1),
                ahead: 0,
            }
        }
    }

    /// Returns the time of the next claim without an arrival and without found ids.
    pub(super) fn wakes(&self) -> Option<Instant> {
        if !self.empty
            || self.claims > 0
            || self.resting
            || self.want(0).slots == 0 && self.ready.is_empty()
        {
            return None;
        }
        // Blocking reads that take jobs leave no ids in prefetch lists.
        let safety = !P::PUSH_DELIVERY && !self.engine.protocol.polls();
        let safety = safety.then(|| self.looked + SAFETY);
        safety.into_iter().chain(self.blocked.next()).min()
    }

    pub(super) fn is_hungry(&self) -> bool {
        self.empty
            && self.arrivals.is_empty()
            && !self.resting
            && self.claims == 0
            && self.want(0).slots > 0
    }
}
