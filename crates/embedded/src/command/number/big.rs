//! Arithmetic on big natural numbers, as far as rounding needs it.

use std::cmp::Ordering;

/// A natural number in parts of 32 bits, the lowest first, the highest not 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Big(Vec<u32>);

impl Big {
    pub(super) fn from_digits(digits: &[u8], base: u32) -> Self {
        let mut big = Self::default();
        for digit in digits {
            big.mul_add(base, u32::from(*digit));
        }
        big
    }

    pub(super) fn from_u64(value: u64) -> Self {
        let mut big = Self::default();
        big.add(value);
        big
    }

    pub(super) fn add(&mut self, value: u64) {
        let mut other = Self(vec![low(value), low(value >> 32)]);
        other.trim();
        let mut carry = 0;
        self.0.resize(self.0.len().max(other.0.len()), 0);
        for (index, part) in self.0.iter_mut().enumerate() {
            let value =
                u64::from(*part) + u64::from(other.0.get(index).copied().unwrap_or(0)) + carry;
            *part = low(value);
            carry = value >> 32;
        }
        if carry > 0 {
            self.0.push(low(carry));
        }
    }

    /// Sets `self` to `self * factor + summand`.
    pub(super) fn mul_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for part in &mut self.0 {
            let value = u64::from(*part) * u64::from(factor) + carry;
            *part = low(value);
            carry = value >> 32;
        }
        if carry > 0 {
            self.0.push(low(carry));
        }
    }

    /// Divides by a small number and returns the remainder.
    fn div_small(&mut self, divisor: u32) -> u32 {
        let mut rest = 0_u64;
        for part in self.0.iter_mut().rev() {
            let value = (rest << 32) | u64::from(*part);
            *part = low(value / u64::from(divisor));
            rest = value % u64::from(divisor);
        }
        self.trim();
        low(rest)
    }

    pub(super) fn shift_left(&mut self, bits: usize) {
        if self.0.is_empty() {
            return;
        }
        let odd = bits % 32;
        if odd > 0 {
            let factor = 1_u32 << odd;
            self.mul_add(factor, 0);
        }
        self.0.splice(0..0, std::iter::repeat_n(0, bits / 32));
    }

    /// Subtracts a number that is not greater.
    pub(super) fn subtract(&mut self, other: &Self) {
        let mut borrow = 0_i64;
        for (index, part) in self.0.iter_mut().enumerate() {
            let other = i64::from(other.0.get(index).copied().unwrap_or(0));
            let value = i64::from(*part) - other - borrow;
            borrow = i64::from(value < 0);
            *part = low((value + (borrow << 32)).unsigned_abs());
        }
        self.trim();
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let lengths = self.0.len().cmp(&other.0.len());
        lengths.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of bits up to the highest set bit.
    pub(super) fn bits(&self) -> usize {
        self.0
            .last()
            .map_or(0, |top| self.0.len() * 32 - top.leading_zeros() as usize)
    }

    fn bit(&self, index: usize) -> bool {
        self.0
            .get(index / 32)
            .is_some_and(|part| part >> (index % 32) & 1 == 1)
    }

    /// Returns the nearest number of at most `bits` (64 or fewer) bits, and the power of two to multiply it with.
    /// Ties round to the even one. `more` means that the exact number is slightly greater than `self`.
    pub(super) fn round(&self, bits: usize, more: bool) -> (u64, i64) {
        let total = self.bits();
        let drop = total.saturating_sub(bits);
        let kept = (drop..total)
            .rev()
            .fold(0, |kept, index| (kept << 1) | u64::from(self.bit(index)));
        let shift = i64::try_from(drop).unwrap_or(i64::MAX);
        if drop == 0 {
            return (kept, shift);
        }
        let below = more || (0..drop - 1).any(|index| self.bit(index));
        if !self.bit(drop - 1) || (!below && kept & 1 == 0) {
            return (kept, shift);
        }
        match kept.checked_add(1) {
            Some(kept) => (kept, shift),
            None => (1 << 63, shift + 1),
        }
    }

    pub(super) fn to_decimal(&self) -> String {
        /// Greatest power of ten in 32 bits.
        const CHUNK: u32 = 1_000_000_000;
        let mut left = self.clone();
        let mut chunks = Vec::new();
        while !left.is_zero() {
            chunks.push(left.div_small(CHUNK));
        }
        let Some(first) = chunks.pop() else {
            return "0".to_owned();
        };
        chunks.iter().rev().fold(first.to_string(), |text, chunk| {
            text + &format!("{chunk:09}")
        })
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

/// Returns the lower half.
fn low(value: u64) -> u32 {
    u32::try_from(value & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}
