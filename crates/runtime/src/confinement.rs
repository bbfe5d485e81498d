//! The sandbox of one run.

use std::path::PathBuf;

use meshwork_model::sandbox::{Effective, Limits, Profile};

/// The sandbox of one run: what it may read and write, and its limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Profile. The paths and the process isolation below apply to `standard` and `strict`.
    pub profile: Profile,
    /// Files and folders that scripts may read, besides system folders and the interpreter.
    pub read: Vec<PathBuf>,
    /// Files and folders that scripts may read and write, besides their work folder.
    pub write: Vec<PathBuf>,
    /// Limits of the run, in all profiles.
    pub limits: Limits,
}

impl Confinement {
    /// Returns its profile and its limits.
    pub const fn effective(&self) -> Effective {
        Effective {
            profile: self.profile,
            limits: self.limits,
        }
    }

    /// Returns a confinement without paths and limits.
    #[must_use]
    pub fn of(profile: Profile) -> Self {
        Self {
            profile,
            ..Self::default()
        }
    }
}
