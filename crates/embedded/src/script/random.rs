//! Random numbers of scripts, from the generator of Redis, so that a script gets the same numbers. It restarts with
//! the scripts, and with `math.randomseed`.

use std::sync::atomic::{AtomicU64, Ordering};

const START: u64 = 0x1234_ABCD_330E;
const FACTOR: u64 = 0x5_DEEC_E66D;
const ADDEND: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

/// The generator known as `lrand48`.
pub(super) struct Random(AtomicU64);

impl Default for Random {
    fn default() -> Self {
        Self(AtomicU64::new(START))
    }
}

impl Random {
    pub(super) fn seed(&self, seed: i32) {
        let seed = u64::from(seed.cast_unsigned());
        self.0.store((seed << 16) | 0x330E, Ordering::Relaxed);
    }

    /// Returns a number from 0 to 1, excluding 1.
    pub(super) fn next(&self) -> f64 {
        let state = self
            .0
            .load(Ordering::Relaxed)
            .wrapping_mul(FACTOR)
            .wrapping_add(ADDEND);
        self.0.store(state & MASK, Ordering::Relaxed);
        let drawn = i32::try_from((state & MASK) >> 17).unwrap_or(0);
        f64::from(drawn % i32::MAX) / f64::from(i32::MAX)
    }
}
