//! Resources that a run has used, and a limit that it has exceeded.

use meshwork_model::sandbox::{Limit, Usage};

/// A limit that a run has exceeded, for which it was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct LimitExceeded {
    /// The resource.
    pub(in super::super) limit: Limit,
    /// The value of the limit.
    pub(in super::super) value: u64,
}

/// Processes above the limit that start, so that the launcher sees that the run exceeds it. Also the least number of
/// other processes that start before the number of one is used again.
const SEEN: u64 = 64;

/// Returns the number of processes and threads up to which the kernel lets a run go.
pub(super) fn seen(limit: u64) -> u64 {
    limit.saturating_add(SEEN)
}

/// Length of the encoded usage.
pub(super) const USAGE: usize = 4 * size_of::<u64>();
/// Length of an encoded limit.
pub(super) const EXCEEDED: usize = 1 + size_of::<u64>();

/// Encodes a usage.
pub(super) fn encode(usage: &Usage) -> [u8; USAGE] {
    let numbers = [
        usage.user_ms,
        usage.system_ms,
        usage.peak_memory,
        usage.written,
    ];
    let mut encoded = [0; USAGE];
    for (at, number) in encoded.chunks_exact_mut(size_of::<u64>()).zip(numbers) {
        at.copy_from_slice(&number.to_le_bytes());
    }
    encoded
}

/// Decodes a usage.
pub(super) fn decode(bytes: &[u8; USAGE]) -> Usage {
    let mut numbers = bytes.chunks_exact(size_of::<u64>()).map(|number| {
        let number = number.try_into().unwrap_or_default();
        u64::from_le_bytes(number)
    });
    let mut next = || numbers.next().unwrap_or_default();
    Usage {
        user_ms: next(),
        system_ms: next(),
        peak_memory: next(),
        written: next(),
    }
}

impl LimitExceeded {
    pub(super) fn encode(&self) -> [u8; EXCEEDED] {
        let mut encoded = [0; EXCEEDED];
        let (first, rest) = encoded.split_at_mut(1);
        let at = Limit::ALL.iter().position(|limit| *limit == self.limit);
        first[0] = u8::try_from(at.unwrap_or_default()).unwrap_or_default();
        rest.copy_from_slice(&self.value.to_le_bytes());
        encoded
    }

    pub(super) fn decode(bytes: &[u8; EXCEEDED]) -> Option<Self> {
        let (first, value) = bytes.split_first()?;
        Some(Self {
            limit: *Limit::ALL.get(usize::from(*first))?,
            value: u64::from_le_bytes(value.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_arrive_as_they_were() {
        let usage = Usage {
            user_ms: 1,
            system_ms: 2,
            peak_memory: 3,
            written: u64::MAX,
        };
        assert_eq!(decode(&encode(&usage)), usage);
        for limit in Limit::ALL {
            let exceeded = LimitExceeded {
                limit,
                value: 1 << 40,
            };
            assert_eq!(LimitExceeded::decode(&exceeded.encode()), Some(exceeded));
        }
        assert_eq!(LimitExceeded::decode(&[99; EXCEEDED]), None);
    }
}
