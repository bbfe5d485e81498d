//! Jobs that blocking reads have claimed.

use std::time::Duration;

use super::Fetcher;
use super::batch::count;
use crate::protocol::Protocol;
use crate::task::Arrival;
use meshwork_runtime::lease::Moment;

/// The time of a claim by both clocks, to date what blocking reads claim: their answers say only the server's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimedClaim {
    /// The claim was not earlier.
    pub(super) sent: Moment,
    /// The server's time of the claim, in milliseconds since 1970.
    pub(super) at_ms: u64,
}

impl<P: Protocol> Fetcher<P> {
    /// Starts jobs that a blocking read has claimed. If no slot is free any more, they wait like prefetched jobs, or go
    /// back at once if runs are long.
    pub(super) fn arrived(&mut self, arrival: Arrival<P::Job>) {
        if self.stopping {
            self.spawner.starter.release_arrival(arrival);
            return self.engine.demand.claimed();
        }
        count(&self.engine, &arrival.fetched);
        self.fruitless = 0;
        if arrival.fetched.more {
            // Those of the queue are claimed with results, for all free slots.
            self.arrivals.insert(arrival.queue);
        }
        let keeps = self.depth.jobs().saturating_sub(self.prefetched.len());
        let until = self.lease_end(arrival.fetched.at_ms);
        self.place(arrival.fetched.jobs, until, keeps);
        // Before the next read is sent, it is known whether a slot is free.
        self.engine.demand.tell(self.is_hungry());
        self.engine.demand.claimed();
    }

    /// Returns the time until which a lease certainly lasts that began at this time of the server.
    fn lease_end(&self, at_ms: u64) -> Moment {
        let now = self.engine.config.clock.now();
        let since = self
            .timed
            .map(|timed| timed.sent + Duration::from_millis(at_ms.saturating_sub(timed.at_ms)));
        // Without an earlier claim there is no blocking read.
        since.unwrap_or(now).min(now) + self.engine.config.lease
    }
}
