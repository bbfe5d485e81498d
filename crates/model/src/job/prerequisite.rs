//! Prerequisites of a job: the meaning of their failure, and the names of their results.

use super::limits;

/// Rule for the failure of a prerequisite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The job fails at once.
    #[default]
    Fail,
    /// The job runs anyway.
    Continue,
}

impl OnFailure {
    /// The word in the record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Continue => "continue",
        }
    }
}

/// An unknown word for such a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not known: fail or continue")]
pub struct UnknownOnFailure(String);

impl std::str::FromStr for OnFailure {
    type Err = UnknownOnFailure;

    fn from_str(text: &str) -> Result<Self, UnknownOnFailure> {
        [Self::Fail, Self::Continue]
            .into_iter()
            .find(|word| word.as_str() == text)
            .ok_or_else(|| UnknownOnFailure(text.to_owned()))
    }
}

/// True if `name` can be the name of a prerequisite's result.
#[must_use]
pub fn is_input_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=limits::MAX_INPUT_NAME).contains(&name.len()) && name.chars().all(fits)
}
