//! The moments and the victims of kills.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::ground::LEASE;

/// Longest time from a start to a kill: the program may still be starting, or already run jobs.
const SOON: Duration = Duration::from_millis(800);

/// Number of kills after which there is a longer pause. A job that loses its worker five times ends in error. Three
/// kills in a row may hit the same job, which must end before the fourth.
const KILLS_IN_A_ROW: u32 = 3;

/// Length of that pause in leases, so that all jobs in flight at the last kill have surely run.
const PEACE: u32 = 3;

/// The number of moments left, and the random choices.
pub(super) struct Moments {
    random: StdRng,
    left: u32,
    drawn: u32,
}

impl Moments {
    pub(super) fn new(random: StdRng, kills: u32) -> Self {
        Self {
            random,
            left: kills,
            drawn: 0,
        }
    }

    pub(super) fn left(&self) -> u32 {
        self.left
    }

    /// Returns the time to wait before the next kill; `None` after the last.
    pub(super) fn next(&mut self) -> Option<Duration> {
        if self.left == 0 {
            return None;
        }
        self.drawn += 1;
        let soon = SOON.mul_f64(self.random.random());
        let peace = if self.drawn.is_multiple_of(KILLS_IN_A_ROW) {
            LEASE * PEACE
        } else {
            Duration::ZERO
        };
        Some(peace + soon)
    }

    /// Chooses one of `count` processes to kill now.
    pub(super) fn victim(&mut self, count: usize) -> usize {
        self.left -= 1;
        self.random.random_range(0..count)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn a_seed_repeats_its_moments_and_every_third_is_late() {
        let draw = || {
            let mut moments = Moments::new(StdRng::seed_from_u64(7), 9);
            let mut drawn = Vec::new();
            while let Some(moment) = moments.next() {
                drawn.push((moment, moments.victim(3)));
            }
            drawn
        };
        let drawn = draw();
        assert_eq!(drawn, draw());
        let late: Vec<bool> = drawn
            .iter()
            .map(|(moment, _)| *moment >= LEASE * PEACE)
            .collect();
        assert_eq!(
            late,
            [false, false, true, false, false, true, false, false, true]
        );
    }
}
