//! Ranges of scores and of members.

use std::{cmp::Ordering, ops::Range};

use bytes::Bytes;

use crate::{
    command::{
        Stop,
        args::{refuse, score_bound},
    },
    store::{Ranked, Zset},
};

/// A range of a sorted set by scores or members.
pub(super) enum Bounds<'a> {
    Scores { min: (f64, bool), max: (f64, bool) },
    Members { min: Edge<'a>, max: Edge<'a> },
}

/// A bound of a range of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge<'a> {
    /// Before all members.
    Start,
    /// After all members.
    End,
    /// A member, which the range may exclude.
    At { member: &'a [u8], open: bool },
}

impl<'a> Edge<'a> {
    fn parse(arg: &'a Bytes) -> Result<Self, Stop> {
        match &arg[..] {
            [b'-'] | [b'-', 0, ..] => Ok(Self::Start),
            [b'+'] | [b'+', 0, ..] => Ok(Self::End),
            [b'(', member @ ..] => Ok(Self::At { member, open: true }),
            [b'[', member @ ..] => Ok(Self::At {
                member,
                open: false,
            }),
            _ => Err(refuse("min or max not valid string range item")),
        }
    }

    fn is_open(self) -> bool {
        !matches!(self, Self::At { open: false, .. })
    }

    /// Compares a member with this bound.
    fn compare(self, member: &[u8]) -> Ordering {
        match self {
            Self::Start => Ordering::Greater,
            Self::End => Ordering::Less,
            Self::At { member: bound, .. } => member.cmp(bound),
        }
    }

    /// Returns whether no member can be between this lower bound and the upper bound `max`.
    fn is_beyond(self, max: Self) -> bool {
        let order = match (self, max) {
            (Self::At { member, .. }, max) => max.compare(member),
            (min, max) if min == max => Ordering::Equal,
            (Self::Start, _) => Ordering::Less,
            (Self::End, _) => Ordering::Greater,
        };
        order.is_gt() || (order.is_eq() && (self.is_open() || max.is_open()))
    }
}

impl<'a> Bounds<'a> {
    pub(super) fn scores(min: &[u8], max: &[u8]) -> Result<Self, Stop> {
        Ok(Self::Scores {
            min: score_bound(min)?,
            max: score_bound(max)?,
        })
    }

    pub(super) fn members(min: &'a Bytes, max: &'a Bytes) -> Result<Self, Stop> {
        Ok(Self::Members {
            min: Edge::parse(min)?,
            max: Edge::parse(max)?,
        })
    }

    /// Returns whether a member is not below the range.
    pub(super) fn reaches(&self, ranked: &Ranked) -> bool {
        match self {
            Self::Scores {
                min: (min, open), ..
            } => {
                if *open {
                    ranked.score > *min
                } else {
                    ranked.score >= *min
                }
            }
            Self::Members { min, .. } => {
                let order = min.compare(&ranked.member);
                order.is_gt() || (order.is_eq() && !min.is_open())
            }
        }
    }

    /// Returns whether a member is not above the range.
    pub(super) fn admits(&self, ranked: &Ranked) -> bool {
        match self {
            Self::Scores {
                max: (max, open), ..
            } => {
                if *open {
                    ranked.score < *max
                } else {
                    ranked.score <= *max
                }
            }
            Self::Members { max, .. } => {
                let order = max.compare(&ranked.member);
                order.is_lt() || (order.is_eq() && !max.is_open())
            }
        }
    }

    /// Returns the rank of the first member of the range.
    fn first(&self, zset: &Zset) -> Option<usize> {
        let rank = if self.is_monotone(zset) {
            zset.ranking().count_while(|ranked| !self.reaches(ranked))
        } else {
            zset.ranking()
                .range(0..zset.len())
                .position(|ranked| self.reaches(ranked))?
        };
        self.found(zset, rank)
    }

    /// Returns the rank of the last member of the range.
    fn last(&self, zset: &Zset) -> Option<usize> {
        let rank = if self.is_monotone(zset) {
            zset.ranking()
                .count_while(|ranked| self.admits(ranked))
                .checked_sub(1)?
        } else {
            let from_end = |ranked| self.admits(ranked);
            zset.len()
                - 1
                - zset
                    .ranking()
                    .range(0..zset.len())
                    .rev()
                    .position(from_end)?
        };
        self.found(zset, rank)
    }

    fn found(&self, zset: &Zset, rank: usize) -> Option<usize> {
        let mut there = zset.ranking().range(rank..rank + 1);
        there
            .next()
            .filter(|ranked| self.reaches(ranked) && self.admits(ranked))
            .map(|_| rank)
    }

    /// Returns whether the members of the range are consecutive. Ranges of members are defined only if all scores are
    /// equal. Otherwise Redis scans small sorted sets member by member, and so does this engine.
    fn is_monotone(&self, zset: &Zset) -> bool {
        matches!(self, Self::Scores { .. }) || !zset.is_compact()
    }

    fn is_empty(&self, zset: &Zset) -> bool {
        let Self::Members { min, max } = self else {
            return false;
        };
        let mut all = zset.ranking().range(0..zset.len());
        let first = all.next();
        let last = all.next_back().or(first);
        min.is_beyond(*max)
            || !last.is_some_and(|last| self.reaches(last))
            || !first.is_some_and(|first| self.admits(first))
    }

    /// Returns the ranks of the range, from its first member on.
    pub(super) fn ranks(&self, zset: &Zset) -> Range<usize> {
        let Some(first) = self.first(zset).filter(|_| !self.is_empty(zset)) else {
            return 0..0;
        };
        let end = if self.is_monotone(zset) {
            zset.ranking().count_while(|ranked| self.admits(ranked))
        } else {
            let rest = zset.ranking().range(first..zset.len());
            first + rest.take_while(|ranked| self.admits(ranked)).count()
        };
        first..end
    }

    /// Returns the members of the range without the first `skip`, at most `take` of them.
    pub(super) fn select<'z>(
        &self,
        zset: &'z Zset,
        backwards: bool,
        skip: usize,
        take: usize,
    ) -> Vec<&'z Ranked> {
        if self.is_empty(zset) {
            return Vec::new();
        }
        // Skipped members are not compared, as in Redis.
        if backwards {
            let last = self.last(zset).and_then(|last| last.checked_sub(skip));
            let rest = zset
                .ranking()
                .range(0..last.map_or(0, |last| last + 1))
                .rev();
            rest.take_while(|ranked| self.reaches(ranked))
                .take(take)
                .collect()
        } else {
            let first = self
                .first(zset)
                .map_or(zset.len(), |first| first.saturating_add(skip));
            let rest = zset.ranking().range(first..zset.len());
            rest.take_while(|ranked| self.admits(ranked))
                .take(take)
                .collect()
        }
    }
}
