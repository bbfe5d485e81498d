//! Scans of a collection that changes meanwhile.

use std::ops::Range;

/// One step of a scan: the positions to read, and the cursor for the next step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScanStep {
    pub(crate) places: Range<usize>,
    /// 0 when the scan is complete.
    pub(crate) cursor: u64,
}

impl ScanStep {
    /// Returns a step for a whole collection.
    pub(crate) fn all(len: usize) -> Self {
        Self {
            places: 0..len,
            cursor: 0,
        }
    }
}

/// Returns the step of up to `count` positions from `cursor` (0 to begin) in a collection of `len` items.
///
/// A scan goes from the last position to the first, and the cursor is the number of remaining positions. New items go
/// to the end, and a removal moves the last item into the gap, so that items only move towards the front. Items that
/// were not seen therefore stay before the cursor, and each item that exists during the whole scan is found.
pub(crate) fn scan_step(cursor: u64, len: usize, count: usize) -> ScanStep {
    let left = match usize::try_from(cursor) {
        Ok(0) => len,
        Ok(left) => left.min(len),
        Err(_) => len,
    };
    let first = left.saturating_sub(count);
    ScanStep {
        places: first..left,
        cursor: u64::try_from(first).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use indexmap::IndexSet;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_stays_is_met(
            size in 0..200usize,
            count in 1..20usize,
            changes in proptest::collection::vec((any::<bool>(), 0..400usize), 0..300),
        ) {
            let mut items: IndexSet<usize> = (0..size).collect();
            let mut stayed: HashSet<usize> = items.iter().copied().collect();
            let mut met = HashSet::new();
            let mut changes = changes.into_iter();
            let mut cursor = 0;
            loop {
                let step = scan_step(cursor, items.len(), count);
                prop_assert!(step.places.len() <= count);
                met.extend(step.places.filter_map(|place| items.get_index(place).copied()));
                for (add, item) in changes.by_ref().take(3) {
                    if add {
                        items.insert(item);
                    } else {
                        items.swap_remove(&item);
                        stayed.remove(&item);
                    }
                }
                cursor = step.cursor;
                if cursor == 0 {
                    break;
                }
            }
            prop_assert!(stayed.is_subset(&met));
        }
    }

    #[test]
    fn a_cursor_beyond_the_end_begins_at_the_end() {
        assert_eq!(
            scan_step(u64::MAX, 5, 2),
            ScanStep {
                places: 3..5,
                cursor: 3
            }
        );
        assert_eq!(
            scan_step(7, 0, 2),
            ScanStep {
                places: 0..0,
                cursor: 0
            }
        );
    }
}
