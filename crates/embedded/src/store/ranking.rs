//! An ordered sequence with ranks: the members of a sorted set by score, by member and by rank.

use std::{cmp::Ordering, ops::Range};

use bytes::Bytes;

/// Length beyond which a run is split. Long enough for a short list of runs (400 for 100,000 members), short enough
/// that an insertion moves few bytes.
const MAX_RUN: usize = 512;

/// A member with its score; ordered by score, then by the bytes of the member.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) score: f64,
    pub(crate) member: Bytes,
}

impl Ranked {
    fn cmp(&self, score: f64, member: &[u8]) -> Ordering {
        // Scores are numbers; 0 and -0 are equal.
        let by_score = self.score.partial_cmp(&score).unwrap_or(Ordering::Equal);
        by_score.then_with(|| self.member[..].cmp(member))
    }
}

/// The members in order, in runs of bounded length, none of them empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ranking {
    runs: Vec<Vec<Ranked>>,
    len: usize,
}

/// A position: the run, and the index in it.
#[derive(Debug, Clone, Copy)]
struct Rank {
    run: usize,
    at: usize,
}

impl Ranking {
    /// Adds a new member.
    pub(crate) fn insert(&mut self, ranked: Ranked) {
        let place = self.place_where(|other| other.cmp(ranked.score, &ranked.member).is_lt());
        self.len += 1;
        if self.runs.is_empty() {
            self.runs.push(Vec::new());
        }
        // A member after all others goes to the end of the last run.
        let index = place.run.min(self.runs.len() - 1);
        let run = &mut self.runs[index];
        let at = if place.run == index {
            place.at
        } else {
            run.len()
        };
        run.insert(at, ranked);
        if run.len() > MAX_RUN {
            let tail = run.split_off(MAX_RUN / 2);
            self.runs.insert(index + 1, tail);
        }
    }

    /// Removes a member with exactly this score.
    pub(crate) fn remove(&mut self, score: f64, member: &[u8]) {
        let place = self.place_where(|other| other.cmp(score, member).is_lt());
        if !self.is_at(place, score, member) {
            return;
        }
        self.runs[place.run].remove(place.at);
        self.len -= 1;
        self.tidy(place.run);
    }

    /// Returns the rank of a member with exactly this score.
    pub(crate) fn rank(&self, score: f64, member: &[u8]) -> Option<usize> {
        let place = self.place_where(|other| other.cmp(score, member).is_lt());
        self.is_at(place, score, member)
            .then(|| self.rank_of(place))
    }

    /// Returns the number of leading members that satisfy `before`, which must hold for no member after one for which
    /// it fails.
    pub(crate) fn count_while(&self, before: impl Fn(&Ranked) -> bool) -> usize {
        self.rank_of(self.place_where(before))
    }

    /// Returns the members of these ranks, in order; ranks beyond the end are skipped.
    pub(crate) fn range(&self, ranks: Range<usize>) -> impl DoubleEndedIterator<Item = &Ranked> {
        let (start, end) = self.places(ranks);
        let runs = self.runs.get(start.run..).unwrap_or_default();
        runs.iter()
            .take(end.run + 1 - start.run)
            .enumerate()
            .flat_map(move |(index, run)| {
                let from = if index == 0 { start.at } else { 0 };
                let to = if start.run + index == end.run {
                    end.at
                } else {
                    run.len()
                };
                &run[from..to]
            })
    }

    /// Removes the members of these ranks and returns them in order.
    pub(crate) fn remove_range(&mut self, ranks: Range<usize>) -> Vec<Ranked> {
        let (start, end) = self.places(ranks);
        let mut removed = Vec::new();
        for index in start.run..(end.run + 1).min(self.runs.len()) {
            let run = &mut self.runs[index];
            let from = if index == start.run { start.at } else { 0 };
            let to = if index == end.run { end.at } else { run.len() };
            removed.extend(run.drain(from..to));
        }
        self.len -= removed.len();
        self.runs.retain(|run| !run.is_empty());
        self.tidy(start.run);
        removed
    }

    fn is_at(&self, place: Rank, score: f64, member: &[u8]) -> bool {
        let found = self.runs.get(place.run).and_then(|run| run.get(place.at));
        found.is_some_and(|found| found.cmp(score, member).is_eq())
    }

    /// Returns the first position that does not satisfy `before`.
    fn place_where(&self, before: impl Fn(&Ranked) -> bool) -> Rank {
        let run = self
            .runs
            .partition_point(|run| run.last().is_some_and(&before));
        let at = self
            .runs
            .get(run)
            .map_or(0, |run| run.partition_point(&before));
        Rank { run, at }
    }

    fn rank_of(&self, place: Rank) -> usize {
        self.runs[..place.run].iter().map(Vec::len).sum::<usize>() + place.at
    }

    /// Returns the position of the first of these ranks, and the one after the last, in the run of the last.
    fn places(&self, ranks: Range<usize>) -> (Rank, Rank) {
        let to = ranks.end.min(self.len);
        let from = ranks.start.min(to);
        let start = self.place_of(from);
        if from == to {
            return (start, start);
        }
        let last = self.place_of(to - 1);
        (
            start,
            Rank {
                run: last.run,
                at: last.at + 1,
            },
        )
    }

    fn place_of(&self, rank: usize) -> Rank {
        let mut left = rank;
        for (run, members) in self.runs.iter().enumerate() {
            if left < members.len() {
                return Rank { run, at: left };
            }
            left -= members.len();
        }
        Rank {
            run: self.runs.len(),
            at: 0,
        }
    }

    /// Joins a short run with the next one, so that runs do not accumulate.
    fn tidy(&mut self, index: usize) {
        if self.runs.get(index).is_some_and(Vec::is_empty) {
            self.runs.remove(index);
        }
        let (Some(run), Some(next)) = (self.runs.get(index), self.runs.get(index + 1)) else {
            return;
        };
        if run.len() + next.len() <= MAX_RUN / 2 {
            let next = self.runs.remove(index + 1);
            self.runs[index].extend(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn ranked(score: i32, member: u16) -> Ranked {
        Ranked {
            score: f64::from(score),
            member: Bytes::from(member.to_be_bytes().to_vec()),
        }
    }

    fn content(ranking: &Ranking) -> Vec<(i32, u16)> {
        ranking.range(0..usize::MAX).map(plain).collect()
    }

    fn plain(ranked: &Ranked) -> (i32, u16) {
        #[allow(clippy::cast_possible_truncation, reason = "made from an i32")]
        let score = ranked.score as i32;
        (
            score,
            u16::from_be_bytes([ranked.member[0], ranked.member[1]]),
        )
    }

    proptest! {
        #[test]
        fn is_a_sorted_set(
            steps in proptest::collection::vec((0..10u8, -5..5i32, 0..2_000u16), 0..3_000),
            from in 0..3_000usize,
            len in 0..2_000usize,
        ) {
            let mut ranking = Ranking::default();
            let mut model = BTreeSet::new();
            for (what, score, member) in steps {
                if what == 0 {
                    model.remove(&(score, member));
                    ranking.remove(f64::from(score), &member.to_be_bytes());
                } else if model.insert((score, member)) {
                    ranking.insert(ranked(score, member));
                }
            }
            let mut all: Vec<_> = model.iter().copied().collect();
            prop_assert_eq!(content(&ranking), all.clone());
            for (rank, (score, member)) in all.iter().enumerate().step_by(97) {
                let found = ranking.rank(f64::from(*score), &member.to_be_bytes());
                prop_assert_eq!(found, Some(rank));
            }
            prop_assert_eq!(
                ranking.count_while(|ranked| ranked.score < 0.0),
                all.iter().filter(|(score, _)| *score < 0).count()
            );
            let backwards: Vec<_> = ranking.range(from..from + len).rev().map(plain).collect();
            let slice = all.iter().skip(from).take(len).rev().copied().collect::<Vec<_>>();
            prop_assert_eq!(backwards, slice);
            let to = (from + len).min(all.len());
            let gone: Vec<_> = all.drain(from.min(to)..to).collect();
            let removed = ranking.remove_range(from..from + len);
            prop_assert_eq!(removed.iter().map(plain).collect::<Vec<_>>(), gone);
            prop_assert_eq!(content(&ranking), all);
        }
    }

    #[test]
    fn both_zeros_are_one_place() {
        let mut ranking = Ranking::default();
        ranking.insert(Ranked {
            score: -0.0,
            member: Bytes::from_static(b"b"),
        });
        ranking.insert(Ranked {
            score: 0.0,
            member: Bytes::from_static(b"a"),
        });
        assert_eq!(ranking.rank(0.0, b"b"), Some(1));
        ranking.remove(0.0, b"b");
        assert_eq!(ranking.range(0..9).count(), 1);
    }
}
