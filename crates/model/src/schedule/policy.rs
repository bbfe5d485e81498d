//! What becomes of slots that were missed, and of a slot that comes while the last run has not ended.

use std::fmt;
use std::str::FromStr;

/// How many missed slots `all` runs where it names no bound.
pub const DEFAULT_CATCH_UP: usize = 100;
/// The highest bound of `all`: as many jobs as one call enqueues.
pub const MAX_CATCH_UP: usize = 1000;

/// Slots that nobody ran when they were due, since no worker lived or the server was away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// They are left out: a slot that is more than a minute late does not run.
    Skip,
    /// The latest of them runs, however late it is.
    #[default]
    One,
    /// They all run, the oldest first; of more than so many, the latest.
    All(usize),
}

/// A word that is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {what}: give {known}")]
pub struct PolicyError {
    what: &'static str,
    text: String,
    known: String,
}

impl FromStr for CatchUp {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let bound = || text.strip_prefix("all:")?.parse().ok();
        match text {
            "skip" => Ok(Self::Skip),
            "one" => Ok(Self::One),
            "all" => Ok(Self::All(DEFAULT_CATCH_UP)),
            _ => bound()
                .filter(|most| (1..=MAX_CATCH_UP).contains(most))
                .map(Self::All)
                .ok_or_else(|| PolicyError {
                    what: "way to catch up",
                    text: text.to_owned(),
                    known: format!("skip, one, all (the last {DEFAULT_CATCH_UP}) or all:N, N up to {MAX_CATCH_UP}"),
                }),
        }
    }
}

impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skip => f.write_str("skip"),
            Self::One => f.write_str("one"),
            Self::All(most) => write!(f, "all:{most}"),
        }
    }
}

/// A slot that comes while the job of the schedule's last slot has not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Both run.
    Allow,
    /// The new one is left out.
    #[default]
    Skip,
    /// The last one is stopped; the new one runs when it has ended.
    Replace,
}

impl Overlap {
    /// All of them.
    const ALL: [Self; 3] = [Self::Allow, Self::Skip, Self::Replace];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Skip => "skip",
            Self::Replace => "replace",
        }
    }
}

impl FromStr for Overlap {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let found = Self::ALL.into_iter().find(|word| word.as_str() == text);
        found.ok_or_else(|| PolicyError {
            what: "way to overlap",
            text: text.to_owned(),
            known: "allow, skip or replace".to_owned(),
        })
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_words() {
        for (text, policy) in [
            ("skip", CatchUp::Skip),
            ("one", CatchUp::One),
            ("all", CatchUp::All(100)),
            ("all:1000", CatchUp::All(1000)),
        ] {
            assert_eq!(text.parse(), Ok(policy));
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for text in ["", "All", "all:", "all:0", "all:1001", "all:-1", "two"] {
            assert!(text.parse::<CatchUp>().is_err(), "{text}");
        }
        for overlap in Overlap::ALL {
            assert_eq!(overlap.to_string().parse(), Ok(overlap));
        }
        assert!("never".parse::<Overlap>().is_err());
    }
}
