//! Limits of a run.

use std::fmt;

use super::format_size;

/// Least limit of memory: an interpreter does not start below it.
pub const MIN_MEMORY: u64 = 1 << 20;
/// Greatest limit of a size.
pub const MAX_SIZE: u64 = 1 << 50;
/// Least limit of processor time, in milliseconds.
pub const MIN_CPU_MS: u64 = 100;
/// Greatest limit of processor time, in milliseconds: a year.
pub const MAX_CPU_MS: u64 = 365 * 24 * 3_600_000;
/// Greatest limit of processes: the most that Linux numbers.
pub const MAX_PROCESSES: u64 = 1 << 22;
/// Least limit of open files: an interpreter needs them to load its modules.
pub const MIN_FILES: u64 = 16;
/// Greatest limit of open files: Linux' own default.
pub const MAX_FILES: u64 = 1 << 20;

/// A resource of a run that can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// Memory of all processes of the run together, in bytes.
    Memory,
    /// Processor time of all processes of the run together, in milliseconds.
    Cpu,
    /// Number of processes and threads of the run at once.
    Processes,
    /// Number of open files of each process.
    Files,
    /// Size of all files in the work folder, in bytes.
    Disk,
    /// Output of the run (stdout and stderr together), in bytes.
    Output,
}

impl Limit {
    /// All limits.
    pub const ALL: [Self; 6] = [
        Self::Memory,
        Self::Cpu,
        Self::Processes,
        Self::Files,
        Self::Disk,
        Self::Output,
    ];

    /// Returns the word for the limit, in options, records and errors.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Processes => "processes",
            Self::Files => "files",
            Self::Disk => "disk",
            Self::Output => "output",
        }
    }

    /// Returns the least and the greatest value.
    #[must_use]
    pub const fn range(self) -> (u64, u64) {
        match self {
            Self::Memory => (MIN_MEMORY, MAX_SIZE),
            Self::Cpu => (MIN_CPU_MS, MAX_CPU_MS),
            Self::Processes => (1, MAX_PROCESSES),
            Self::Files => (MIN_FILES, MAX_FILES),
            Self::Disk | Self::Output => (1, MAX_SIZE),
        }
    }

    /// Returns a value as text: `512 MiB`, `1.5 s`, `64`.
    #[must_use]
    pub fn value(self, value: u64) -> String {
        match self {
            Self::Memory | Self::Disk | Self::Output => format_size(value),
            Self::Cpu if value.is_multiple_of(1000) => format!("{} s", value / 1000),
            Self::Cpu => format!("{value} ms"),
            Self::Processes | Self::Files => value.to_string(),
        }
    }

    /// Returns the message of a run that exceeded the limit: `memory limit 512 MiB exceeded`.
    #[must_use]
    pub fn exceeded(self, value: u64) -> String {
        format!("{self} limit {} exceeded", self.value(value))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Limits of a run, by resource. A resource without a limit is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    values: [Option<u64>; Limit::ALL.len()],
}

impl Limits {
    /// No limit for any resource.
    pub const NONE: Self = Self {
        values: [None; Limit::ALL.len()],
    };

    /// Returns the limit of a resource.
    #[must_use]
    pub const fn get(&self, limit: Limit) -> Option<u64> {
        self.values[limit as usize]
    }

    /// Sets the limit of a resource. The value has to be in [`Limit::range`]; [`super::SandboxSettings`] checks it.
    pub const fn set(&mut self, limit: Limit, value: Option<u64>) {
        self.values[limit as usize] = value;
    }

    /// Returns the limits that are set.
    pub fn iter(&self) -> impl Iterator<Item = (Limit, u64)> + '_ {
        Limit::ALL
            .into_iter()
            .filter_map(|limit| Some((limit, self.get(limit)?)))
    }

    /// Returns true if nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns these limits, and those of `others` for resources without a limit here.
    #[must_use]
    pub fn or(mut self, others: &Self) -> Self {
        for (limit, value) in others.iter() {
            self.set(limit, self.get(limit).or(Some(value)));
        }
        self
    }
}

impl FromIterator<(Limit, u64)> for Limits {
    fn from_iter<I: IntoIterator<Item = (Limit, u64)>>(values: I) -> Self {
        let mut limits = Self::default();
        for (limit, value) in values {
            limits.set(limit, Some(value));
        }
        limits
    }
}
