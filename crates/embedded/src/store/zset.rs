//! Sorted sets: members with scores.

use std::ops::Range;

use bytes::Bytes;
use indexmap::IndexMap;

use super::{Ranked, Ranking};

/// Above this number of members, or of bytes in a member, Redis stores a sorted set as a table, and ZSCAN answers in
/// steps; below, it answers all at once.
const COMPACT_ENTRIES: usize = 128;
const COMPACT_BYTES: usize = 64;

/// A sorted set: the scores by member, and the members by score.
#[derive(Debug, Clone, Default)]
pub(crate) struct Zset {
    scores: IndexMap<Bytes, f64>,
    ranking: Ranking,
    big: bool,
}

impl Zset {
    pub(crate) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    pub(crate) fn is_compact(&self) -> bool {
        !self.big
    }

    pub(crate) fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    pub(crate) fn at(&self, index: usize) -> Option<(&Bytes, f64)> {
        let (member, score) = self.scores.get_index(index)?;
        Some((member, *score))
    }

    /// Returns the members by score.
    pub(crate) fn ranking(&self) -> &Ranking {
        &self.ranking
    }

    pub(crate) fn rank(&self, member: &Bytes) -> Option<usize> {
        self.ranking.rank(self.score(member)?, member)
    }

    /// Sets the score of a member. `score` is not NaN.
    pub(crate) fn set(&mut self, member: &Bytes, score: f64) {
        let before = self.scores.get(member).copied();
        if before.is_none() {
            self.big |= self.len() >= COMPACT_ENTRIES || member.len() > COMPACT_BYTES;
        }
        // Redis keeps the sign of a zero in tables only.
        let score = if self.big { score } else { score + 0.0 };
        if let Some(before) = before {
            self.ranking.remove(before, member);
        }
        self.scores.insert(member.clone(), score);
        self.ranking.insert(Ranked {
            score,
            member: member.clone(),
        });
    }

    pub(crate) fn remove(&mut self, member: &Bytes) -> bool {
        let Some(score) = self.scores.swap_remove(member) else {
            return false;
        };
        self.ranking.remove(score, member);
        true
    }

    /// Removes the members of these ranks and returns them in order.
    pub(crate) fn remove_ranks(&mut self, ranks: Range<usize>) -> Vec<Ranked> {
        let removed = self.ranking.remove_range(ranks);
        for ranked in &removed {
            self.scores.swap_remove(&ranked.member);
        }
        removed
    }
}
