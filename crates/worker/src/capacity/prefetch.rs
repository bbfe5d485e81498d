//! Prefetch: how many jobs a worker claims beyond its free slots. While handlers are short, a slot would otherwise wait for
//! a trip to the server between two jobs.

use std::time::Duration;

use crate::config::{MAX_CONCURRENCY, Prefetch};

/// Longest time for which a prefetched job waits for a slot: then it is released for other workers.
pub(crate) const MOST_WAIT: Duration = Duration::from_millis(100);
/// Trips to the server for which the prefetched jobs keep the slots busy: one for the results, one for the next claim.
const TRIPS: f64 = 2.0;
/// Weight of the last value in a moving average.
const WEIGHT: f64 = 1.0 / 8.0;
/// Shortest time of a run in the calculation, in seconds.
const SHORTEST: f64 = 1e-7;

/// Depth of the prefetch of one worker, by measurement.
#[derive(Debug)]
pub(crate) struct Depth {
    most: usize,
    slots: f64,
    run: Mean,
    trip: Mean,
    /// True if prefetched jobs were released because no slot became free; until a run ends.
    is_stalled: bool,
}

impl Depth {
    pub(crate) fn new(prefetch: Prefetch, slots: usize) -> Self {
        // A renewal carries all jobs of a worker.
        let most = prefetch.most().min(MAX_CONCURRENCY.saturating_sub(slots));
        Self {
            most,
            slots: slots as f64,
            run: Mean::default(),
            trip: Mean::default(),
            is_stalled: false,
        }
    }

    /// Records the duration of a run.
    pub(crate) fn ran(&mut self, took: Duration) {
        self.run.add(took);
        self.is_stalled = false;
    }

    /// Records the duration of a call to the server.
    pub(crate) fn called(&mut self, took: Duration) {
        self.trip.add(took);
    }

    /// Records that prefetched jobs were released because no slot became free.
    pub(crate) fn stalled(&mut self) {
        self.is_stalled = true;
    }

    /// Returns the number of jobs to claim beyond the free slots.
    pub(crate) fn jobs(&self) -> usize {
        let (Some(run), Some(trip)) = (self.run.0, self.trip.0) else {
            return 0;
        };
        if self.most == 0 || self.is_stalled || run > trip {
            return 0;
        }
        let per_second = self.slots / run.max(SHORTEST);
        let jobs = (per_second * trip * TRIPS).min(per_second * MOST_WAIT.as_secs_f64());
        (jobs.round() as usize).min(self.most)
    }
}

/// A moving average of durations, in seconds.
#[derive(Debug, Default)]
struct Mean(Option<f64>);

impl Mean {
    fn add(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        self.0 = Some(match self.0 {
            Some(mean) => mean + (took - mean) * WEIGHT,
            None => took,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(prefetch: Prefetch, slots: usize, run: u64, trip: u64) -> usize {
        let mut depth = Depth::new(prefetch, slots);
        depth.ran(Duration::from_micros(run));
        depth.called(Duration::from_micros(trip));
        depth.jobs()
    }

    #[test]
    fn prefetched_jobs_last_for_two_trips() {
        let table = [
            // Slots, µs of a run, µs of a trip, jobs.
            (1, 0, 100, 64),
            (1, 10, 100, 20),
            (1, 100, 100, 2),
            (1, 101, 100, 0),
            (10, 1_000, 2_000, 40),
            (50, 1_000, 2_000, 64),
            // At most those of 100 ms.
            (1, 30_000, 200_000, 3),
            (1, 1_000_000, 100, 0),
            (1000, 0, 100, 0),
            (990, 0, 100, 10),
        ];
        for (slots, run, trip, jobs) in table {
            let found = depth(Prefetch::Auto, slots, run, trip);
            assert_eq!(
                found, jobs,
                "{slots} slots, runs of {run} µs, trips of {trip} µs"
            );
        }
        assert_eq!(depth(Prefetch::Off, 1, 0, 100), 0);
        assert_eq!(depth(Prefetch::AtMost(5), 1, 0, 100), 5);
        assert_eq!(depth(Prefetch::AtMost(500), 1, 0, 100), 500);
    }

    #[test]
    fn nothing_is_prefetched_before_a_measurement_and_beside_a_run_without_an_end() {
        let mut depth = Depth::new(Prefetch::Auto, 1);
        assert_eq!(depth.jobs(), 0);
        depth.called(Duration::from_millis(1));
        assert_eq!(depth.jobs(), 0);
        depth.ran(Duration::ZERO);
        assert_eq!(depth.jobs(), 64);
        depth.stalled();
        assert_eq!(depth.jobs(), 0);
        depth.ran(Duration::from_micros(10));
        assert_eq!(depth.jobs(), 64);
    }

    #[test]
    fn one_slow_run_ends_the_prefetch_and_short_ones_bring_it_back() {
        let mut depth = Depth::new(Prefetch::Auto, 1);
        depth.called(Duration::from_millis(1));
        depth.ran(Duration::ZERO);
        depth.ran(Duration::from_secs(1));
        assert_eq!(depth.jobs(), 0);
        for _ in 0..100 {
            depth.ran(Duration::ZERO);
        }
        assert_eq!(depth.jobs(), 64);
    }
}
