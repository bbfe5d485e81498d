//! Tags: labels of a job by which people find it. They do not change its run.

use std::fmt;
use std::str::FromStr;

/// Greatest length of a tag, in bytes.
const MAX_TAG: usize = 64;

/// A label of a job: 1 to 64 of the characters `A-Z a-z 0-9 . _ : / -`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(String);

/// A text that cannot be a tag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the tag {0:?} is not possible: give 1 to {MAX_TAG} of the characters A-Z a-z 0-9 . _ : / -"
)]
pub struct InvalidTag(String);

impl Tag {
    /// Returns the tag as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Tag {
    type Err = InvalidTag;

    fn from_str(text: &str) -> Result<Self, InvalidTag> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._:/-".contains(c);
        if (1..=MAX_TAG).contains(&text.len()) && text.chars().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            // A longer text would fill the screen.
            Err(InvalidTag(text.chars().take(MAX_TAG + 1).collect()))
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_no_blank_and_no_more_than_64_characters() {
        let long = "x".repeat(MAX_TAG);
        for good in ["a", "team:billing/2026-01_v1.2", &long] {
            assert_eq!(good.parse::<Tag>().unwrap().as_str(), good);
        }
        let longer = format!("{long}x");
        for bad in ["", "a b", "ä", "a,b", "a\n", &longer] {
            let said = bad.parse::<Tag>().unwrap_err().to_string();
            assert!(said.contains("1 to 64"), "{said}");
        }
    }
}
