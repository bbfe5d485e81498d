//! Requests of a job, a queue or a parent to the sandbox, and their text in the store.

use std::fmt;
use std::str::FromStr;

use super::{Limit, Limits, Profile, UnknownProfile};

/// Name of the part of the text that has the parent's profile.
const PARENT: &str = "parent";

/// The sandbox that a job or a queue asks for. It can only narrow what the worker gives.
///
/// The text form is that of the store: the profile, then limits, separated by commas:
/// `strict,memory:536870912,cpu:60000`. Sizes are in bytes, times in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SandboxSettings {
    /// Requested profile.
    pub profile: Option<Profile>,
    /// Profile in which the parent of this job ran. The job runs in that profile or a stricter one.
    pub parent: Option<Profile>,
    /// Requested limits.
    pub limits: Limits,
}

/// A sandbox that cannot be read, or has a value out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSandbox {
    /// The profile is not known.
    #[error(transparent)]
    Profile(#[from] UnknownProfile),
    /// The limit is not known, or has no number.
    #[error("`{0}` is no limit of a sandbox: give memory, cpu, processes, files, disk or output")]
    Limit(String),
    /// The value is out of range.
    #[error("the {limit} limit cannot be {}: give {} to {}", .limit.value(*.value), .limit.value(.limit.range().0), .limit.value(.limit.range().1))]
    Range {
        /// The limit.
        limit: Limit,
        /// The refused value.
        value: u64,
    },
}

impl SandboxSettings {
    /// Returns settings with only a profile.
    #[must_use]
    pub const fn profile(profile: Profile) -> Self {
        Self {
            profile: Some(profile),
            parent: None,
            limits: Limits::NONE,
        }
    }

    /// Returns true if nothing is requested.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks that each limit is in its range.
    ///
    /// # Errors
    /// A limit is out of range.
    pub fn check(&self) -> Result<(), InvalidSandbox> {
        for (limit, value) in self.limits.iter() {
            let (least, most) = limit.range();
            if !(least..=most).contains(&value) {
                return Err(InvalidSandbox::Range { limit, value });
            }
        }
        Ok(())
    }
}

impl fmt::Display for SandboxSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let profile = self.profile.map(|profile| profile.to_string());
        let parent = self.parent.map(|profile| format!("{PARENT}:{profile}"));
        let limits = self
            .limits
            .iter()
            .map(|(limit, value)| format!("{limit}:{value}"));
        let parts: Vec<String> = profile.into_iter().chain(parent).chain(limits).collect();
        f.write_str(&parts.join(","))
    }
}

impl FromStr for SandboxSettings {
    type Err = InvalidSandbox;

    fn from_str(text: &str) -> Result<Self, InvalidSandbox> {
        let mut settings = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let Some((name, value)) = part.split_once(':') else {
                settings.profile = Some(part.parse()?);
                continue;
            };
            if name == PARENT {
                settings.parent = Some(value.parse()?);
                continue;
            }
            let known = Limit::ALL.into_iter().find(|limit| limit.as_str() == name);
            let (Some(limit), Ok(value)) = (known, value.parse()) else {
                return Err(InvalidSandbox::Limit(part.to_owned()));
            };
            settings.limits.set(limit, Some(value));
        }
        settings.check()?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_read_as_it_was_written() {
        for text in [
            "",
            "open",
            "strict,memory:536870912,cpu:60000",
            "standard,parent:strict",
            "parent:open,processes:1,files:16,disk:1,output:1",
        ] {
            let settings: SandboxSettings = text.parse().unwrap();
            assert_eq!(settings.to_string(), text);
        }
    }

    #[test]
    fn faults_are_refused_by_name() {
        for (text, fault) in [
            ("lax", "`lax` is no sandbox profile"),
            ("parent:lax", "`lax` is no sandbox profile"),
            ("open,ram:1", "`ram:1` is no limit"),
            ("memory:much", "`memory:much` is no limit"),
            (
                "memory:4096",
                "the memory limit cannot be 4 KiB: give 1 MiB to",
            ),
            ("cpu:1", "the cpu limit cannot be 1 ms: give 100 ms to"),
            ("processes:0", "the processes limit cannot be 0"),
            ("files:1", "the files limit cannot be 1: give 16 to"),
        ] {
            let refused = text.parse::<SandboxSettings>().unwrap_err().to_string();
            assert!(refused.contains(fault), "{text}: {refused}");
        }
    }
}
