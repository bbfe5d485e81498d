//! Profiles of the sandbox.

use std::fmt;
use std::str::FromStr;

/// A profile of the sandbox. The order is from lax to strict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// Files, network and privileges of the worker's user.
    #[default]
    Open,
    /// System folders can be read, and only the work folder can be written. The network works.
    Standard,
    /// As [`Profile::Standard`], without a network. A host that cannot enforce it runs nothing.
    Strict,
}

impl Profile {
    /// All profiles, the laxest first.
    pub const ALL: [Self; 3] = [Self::Open, Self::Standard, Self::Strict];

    /// Returns the default of a worker. `is_private` is true for a store in which only the worker's user can enqueue jobs.
    #[must_use]
    pub const fn of_store(is_private: bool) -> Self {
        match is_private {
            true => Self::Open,
            false => Self::Standard,
        }
    }

    /// Returns the word for the profile.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Standard => "standard",
            Self::Strict => "strict",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An unknown word for a profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no sandbox profile: give open, standard or strict")]
pub struct UnknownProfile(pub(super) String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.as_str() == text)
            .ok_or_else(|| UnknownProfile(text.to_owned()))
    }
}
