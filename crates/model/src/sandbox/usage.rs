//! Resources that a run used, and their text in the store.

use std::fmt;
use std::str::FromStr;

use super::{Effective, Profile, SandboxSettings};

/// Resources that all processes of a run used together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in user mode, in milliseconds.
    pub user_ms: u64,
    /// Processor time in the kernel, in milliseconds.
    pub system_ms: u64,
    /// Greatest memory at once, in bytes.
    pub peak_memory: u64,
    /// Written to files, pipes and sockets, in bytes.
    pub written: u64,
}

/// The sandbox of a run, and what the run used.
///
/// The text form is that of the store: the sandbox as [`SandboxSettings`], a blank, and the resources:
/// `standard,memory:536870912 user:120,system:8,peak_memory:9830400,written:4096`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunUsage {
    /// The sandbox.
    pub sandbox: Effective,
    /// The resources.
    pub usage: Usage,
}

/// A text that is no [`RunUsage`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no usage of a run")]
pub struct InvalidUsage(String);

impl fmt::Display for RunUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sandbox = SandboxSettings {
            profile: Some(self.sandbox.profile),
            parent: None,
            limits: self.sandbox.limits,
        };
        let Usage {
            user_ms,
            system_ms,
            peak_memory,
            written,
        } = self.usage;
        write!(
            f,
            "{sandbox} user:{user_ms},system:{system_ms},peak_memory:{peak_memory},written:{written}"
        )
    }
}

impl FromStr for RunUsage {
    type Err = InvalidUsage;

    fn from_str(text: &str) -> Result<Self, InvalidUsage> {
        let invalid = || InvalidUsage(text.to_owned());
        let (sandbox, resources) = text.split_once(' ').ok_or_else(invalid)?;
        let sandbox: SandboxSettings = sandbox.parse().map_err(|_| invalid())?;
        let mut usage = Usage::default();
        for part in resources.split(',') {
            let (name, value) = part.split_once(':').ok_or_else(invalid)?;
            let value = value.parse().map_err(|_| invalid())?;
            match name {
                "user" => usage.user_ms = value,
                "system" => usage.system_ms = value,
                "peak_memory" => usage.peak_memory = value,
                "written" => usage.written = value,
                // A later release may write more.
                _ => {}
            }
        }
        Ok(Self {
            sandbox: Effective {
                profile: sandbox.profile.unwrap_or(Profile::Open),
                limits: sandbox.limits,
            },
            usage,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_read_as_it_was_written() {
        let text = "standard,memory:536870912 user:120,system:8,peak_memory:9830400,written:4096";
        let read: RunUsage = text.parse().unwrap();
        assert_eq!(read.to_string(), text);
        assert_eq!(read.usage.peak_memory, 9_830_400);
        let later: RunUsage = "open user:1,gpu:7".parse().unwrap();
        assert_eq!(later.usage.user_ms, 1);
        for text in ["", "open", "lax user:1", "open user", "open user:x"] {
            assert!(text.parse::<RunUsage>().is_err(), "{text}");
        }
    }
}
