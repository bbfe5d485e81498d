//! History of a queue: its counters at the hours, and the jobs between them.

use std::collections::BTreeMap;

/// An hour in milliseconds.
pub const HOUR_MS: u64 = 3_600_000;
/// Greatest number of entries of a list: three days.
pub const MAX_HISTORY: u64 = 72;

/// Counters of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of jobs stored for it.
    pub stored: u64,
    /// Number of jobs that finished.
    pub finished: u64,
    /// Number of jobs that failed.
    pub failed: u64,
    /// Number of failed runs with a retry.
    pub retried: u64,
    /// Total duration of all runs, in milliseconds.
    pub run_ms: u64,
}

/// Counters at an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Number of the hour since 1970.
    pub hour: u64,
    /// The counters, as they were soon after it began.
    pub counters: Counters,
}

/// Counts between two entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistorySpan {
    /// Begin in milliseconds since 1970.
    pub from_ms: u64,
    /// End in milliseconds since 1970: an hour later, or more if no worker ran meanwhile.
    pub to_ms: u64,
    /// Differences of the counters; `None` if they were reset.
    pub counters: Option<Counters>,
}

impl HistoryEntry {
    /// Reads an entry: the hour and the counters, with blanks. `None` for other texts.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = text.split(' ').map(|number| number.parse().ok());
        let numbers: Option<Vec<u64>> = numbers.collect();
        let [hour, stored, finished, failed, retried, run_ms] = numbers?[..] else {
            return None;
        };
        let counters = Counters {
            stored,
            finished,
            failed,
            retried,
            run_ms,
        };
        Some(Self { hour, counters })
    }
}

impl Counters {
    fn zip(self, other: Self, with: impl Fn(u64, u64) -> Option<u64>) -> Option<Self> {
        Some(Self {
            stored: with(self.stored, other.stored)?,
            finished: with(self.finished, other.finished)?,
            failed: with(self.failed, other.failed)?,
            retried: with(self.retried, other.retried)?,
            run_ms: with(self.run_ms, other.run_ms)?,
        })
    }

    /// Difference to `before`; `None` if a counter is smaller than then.
    fn since(self, before: Self) -> Option<Self> {
        self.zip(before, u64::checked_sub)
    }

    fn and(self, other: Self) -> Option<Self> {
        self.zip(other, u64::checked_add)
    }
}

/// Returns the counts between the entries of a list, in order, and since the last one.
#[must_use]
pub fn spans(entries: &[HistoryEntry], (now_ms, now): (u64, Counters)) -> Vec<HistorySpan> {
    let ends = entries.iter().skip(1);
    let ends = ends.map(|entry| (entry.hour * HOUR_MS, entry.counters));
    let ends = ends.chain([(now_ms, now)]);
    let span = |(entry, (to_ms, after)): (&HistoryEntry, (u64, Counters))| HistorySpan {
        from_ms: entry.hour * HOUR_MS,
        to_ms,
        counters: after.since(entry.counters),
    };
    entries.iter().zip(ends).map(span).collect()
}

/// Adds the spans of several lists of one queue.
#[must_use]
pub fn sum_of_lists(lists: impl IntoIterator<Item = Vec<HistorySpan>>) -> Vec<HistorySpan> {
    let mut sums: BTreeMap<(u64, u64), Option<Counters>> = BTreeMap::new();
    for span in lists.into_iter().flatten() {
        let sum = sums.entry((span.from_ms, span.to_ms));
        let sum = sum.or_insert(Some(Counters::default()));
        *sum = sum.zip(span.counters).and_then(|(a, b)| a.and(b));
    }
    let span = |((from_ms, to_ms), counters)| HistorySpan {
        from_ms,
        to_ms,
        counters,
    };
    sums.into_iter().map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stored: u64) -> Counters {
        Counters {
            stored,
            finished: stored,
            ..Counters::default()
        }
    }

    fn entry(hour: u64, stored: u64) -> HistoryEntry {
        let counters = of(stored);
        HistoryEntry { hour, counters }
    }

    #[test]
    fn entries_are_read() {
        let read = HistoryEntry::parse("7 1 2 3 4 5").unwrap();
        assert_eq!(
            (read.hour, read.counters.stored, read.counters.run_ms),
            (7, 1, 5)
        );
        for text in [
            "",
            "7 1 2 3 4",
            "7 1 2 3 4 5 6",
            "7 1 2 3 4 -5",
            "7 1 2 3 4 x",
        ] {
            assert_eq!(HistoryEntry::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn spans_are_differences() {
        let now = (5 * HOUR_MS + 9, of(2));
        let shown: Vec<_> = spans(&[entry(1, 10), entry(2, 15), entry(4, 1)], now)
            .into_iter()
            .map(|span| {
                (
                    span.from_ms / HOUR_MS,
                    span.to_ms,
                    span.counters.map(|it| it.stored),
                )
            })
            .collect();
        let expected = [
            (1, 2 * HOUR_MS, Some(5)),
            // The counters were reset.
            (2, 4 * HOUR_MS, None),
            (4, 5 * HOUR_MS + 9, Some(1)),
        ];
        assert_eq!(shown, expected);
        assert_eq!(spans(&[], now), []);
    }

    #[test]
    fn lists_are_added() {
        let now = (3 * HOUR_MS, of(9));
        let (all, reset) = ([entry(1, 2), entry(2, 4)], [entry(2, 99)]);
        let sum = |lists: &[&[HistoryEntry]]| {
            let lists = lists.iter().map(|list| spans(list, now));
            let counts = sum_of_lists(lists)
                .into_iter()
                .map(|span| span.counters.map(|it| it.finished));
            counts.collect::<Vec<_>>()
        };
        assert_eq!(sum(&[&all, &all[1..]]), [Some(2), Some(10)]);
        assert_eq!(sum(&[&all, &reset]), [Some(2), None]);
    }
}
