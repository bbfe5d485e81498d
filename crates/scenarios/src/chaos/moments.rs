//! When to kill, and whom.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::ground::LEASE;

/// Up to here after a start: it may still be starting, or be back at work.
const SOON: Duration = Duration::from_millis(800);

/// Every so many kills there is a longer time of peace. A job that loses its worker five times is
/// taken for what kills them, and ends in error; three kills in a row may hit the same job, and
/// before the fourth it must come to its end.
const KILLS_IN_A_ROW: u32 = 3;

/// Leases until what was in flight at the last kill has surely been run.
const PEACE: u32 = 3;

/// The moments that are left, and the chance they are drawn from.
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

    /// How long to wait before the next kill; `None` when there have been enough.
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

    /// One of `count` to be killed now.
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
