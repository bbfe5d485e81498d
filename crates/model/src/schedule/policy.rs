//! Rules for missed slots, and for a slot whose predecessor has not ended.

use std::fmt;
use std::str::FromStr;

/// Default number of missed slots that `all` runs.
pub const DEFAULT_CATCH_UP: usize = 100;
/// Greatest such number: as many jobs as one call enqueues.
pub const MAX_CATCH_UP: usize = 1000;

/// Rule for slots that did not run in time, because no worker lived or the server was down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// Skips slots that are more than a minute late.
    Skip,
    /// Runs the latest missed slot, however late it is.
    #[default]
    One,
    /// Runs all missed slots, the oldest first; if there are more than this number, the latest ones.
    All(usize),
}

/// An unknown rule.
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

/// Rule for a slot whose predecessor's job has not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Runs both.
    Allow,
    /// Skips the new slot.
    #[default]
    Skip,
    /// Cancels the predecessor; the new slot runs after its end.
    Replace,
}

impl Overlap {
    /// All rules.
    const ALL: [Self; 3] = [Self::Allow, Self::Skip, Self::Replace];

    /// Returns the word for the rule.
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
