//! Processor time of the processes of a run, from samples in `/proc`. A process whose parent ignores its end is in no sum
//! of the kernel afterwards. Its last sample counts then. Control groups count it exactly.

use std::collections::HashMap;

/// Processor time in ticks of the clock: in user mode and in the kernel.
pub(super) type Ticks = [u64; 2];

/// One process at the time of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) pid: i32,
    /// Start time. Pids are reused, but not with the same start time.
    pub(super) started: u64,
    /// Ticks of the process itself.
    pub(super) own: Ticks,
    /// Ticks of its children that it has reaped.
    pub(super) reaped: Ticks,
}

/// Samples of a run so far.
#[derive(Debug, Default)]
pub(super) struct Samples {
    last: HashMap<(i32, u64), Sample>,
    /// Ticks of processes that have ended, which their parents should have by now.
    ended: Ticks,
    /// Ticks of ended children that their parents have.
    arrived: Ticks,
}

impl Samples {
    /// Adds a sample of all processes, among them the one that measures. Returns the ticks of all of them so far.
    pub(super) fn add(&mut self, all: &[Sample]) -> Ticks {
        let mut sum = [0; 2];
        let mut now = HashMap::with_capacity(all.len());
        for sample in all {
            let key = (sample.pid, sample.started);
            let before = self.last.remove(&key).map_or([0; 2], |last| last.reaped);
            for at in 0..2 {
                add(&mut sum[at], sample.own[at]);
                add(&mut sum[at], sample.reaped[at]);
                add(
                    &mut self.arrived[at],
                    sample.reaped[at].saturating_sub(before[at]),
                );
            }
            now.insert(key, *sample);
        }
        for gone in self.last.values() {
            for at in 0..2 {
                add(&mut self.ended[at], gone.own[at]);
                add(&mut self.ended[at], gone.reaped[at]);
            }
        }
        self.last = now;
        let lost = self.lost();
        [0, 1].map(|at| sum[at].saturating_add(lost[at]))
    }

    /// Returns the ticks that no process has reaped.
    pub(super) fn lost(&self) -> Ticks {
        [0, 1].map(|at| self.ended[at].saturating_sub(self.arrived[at]))
    }
}

/// Adds ticks. Some kernels report numbers that no process can have used.
fn add(sum: &mut u64, ticks: u64) {
    *sum = sum.saturating_add(ticks);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_numbers_of_a_kernel_do_not_overflow() {
        let mut samples = Samples::default();
        for pid in 2..5 {
            let all = [process(1, u64::MAX, 1), process(pid, u64::MAX, u64::MAX)];
            assert_eq!(samples.add(&all), [u64::MAX, 0]);
        }
    }

    fn process(pid: i32, own: u64, reaped: u64) -> Sample {
        Sample {
            pid,
            started: 7,
            own: [own, 0],
            reaped: [reaped, 0],
        }
    }

    #[test]
    fn time_of_reaped_processes_counts_once() {
        let mut samples = Samples::default();
        let first = [process(1, 0, 0), process(2, 5, 0), process(3, 10, 0)];
        assert_eq!(samples.add(&first), [15, 0]);
        // The third has run on for a while, and one that no sample has seen was reaped, too.
        let second = [process(1, 0, 0), process(2, 5, 16)];
        assert_eq!(samples.add(&second), [21, 0]);
        assert_eq!(samples.add(&[process(1, 0, 21)]), [21, 0]);
        assert_eq!(samples.lost(), [0, 0]);
    }

    #[test]
    fn time_of_processes_that_nobody_reaps_counts() {
        let mut samples = Samples::default();
        for turn in 1..=10 {
            let sum = samples.add(&[process(1, 0, 0), process(2, 0, 0), process(10 + turn, 5, 0)]);
            assert_eq!(sum, [5 * u64::try_from(turn).unwrap(), 0]);
        }
        assert_eq!(samples.add(&[process(1, 0, 0)]), [50, 0]);
        assert_eq!(samples.lost(), [50, 0]);
    }

    #[test]
    fn time_that_arrives_after_a_sample_is_not_lost() {
        let mut samples = Samples::default();
        samples.add(&[process(1, 0, 0), process(2, 5, 0)]);
        assert_eq!(samples.add(&[process(1, 0, 0)]), [5, 0]);
        assert_eq!(samples.add(&[process(1, 0, 5)]), [5, 0]);
    }
}
