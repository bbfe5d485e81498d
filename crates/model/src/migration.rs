//! State of a type's migration from legacy lists to canonical queues. The broker does the work of each phase.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::keys::hero::LegacyList;
use crate::name::ActorId;

/// A phase of a migration. A type without a phase has not begun to migrate, or has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Jobs are pushed to the canonical queue and to the legacy list.
    Dual,
    /// Jobs are pushed to both. Meshwork's workers also claim from legacy lists, after the canonical queues.
    Canonical,
    /// Meshwork pushes nothing to legacy lists. Its workers still claim from them.
    Closing,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 3] = [Self::Dual, Self::Canonical, Self::Closing];

    /// Returns the word for the phase.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dual => "dual",
            Self::Canonical => "canonical",
            Self::Closing => "closing",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The migration of one type, stored as phase, list and age in milliseconds, with blanks between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// Current phase.
    pub phase: Phase,
    /// Legacy list to which jobs are pushed besides the canonical queue.
    pub list: LegacyList,
    /// Time for which a job may be on no list before it is pushed again. Two checks, this far apart, must find it so.
    pub age: Duration,
}

/// A text that is not a migration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no setting of a migration: a phase (dual, canonical, closing), a list, milliseconds"
)]
pub struct UnknownMigration(String);

impl Migration {
    /// Returns the legacy lists that a Meshwork worker with these legacy names claims from.
    #[must_use]
    pub fn lists(&self, names: &[ActorId]) -> Vec<String> {
        if self.phase == Phase::Dual {
            return Vec::new();
        }
        if self.list.is_per_worker() {
            names.iter().map(|name| self.list.of(name)).collect()
        } else {
            vec![self.list.as_str().to_owned()]
        }
    }
}

impl fmt::Display for Migration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (list, age) = (self.list.as_str(), self.age.as_millis());
        write!(f, "{} {list} {age}", self.phase)
    }
}

impl FromStr for Migration {
    type Err = UnknownMigration;

    fn from_str(text: &str) -> Result<Self, UnknownMigration> {
        let read = || {
            let mut words = text.split(' ');
            let phase = words.next()?;
            let phase = Phase::ALL.into_iter().find(|p| p.as_str() == phase)?;
            let list = LegacyList::foreign(words.next()?.to_owned());
            let age = Duration::from_millis(words.next()?.parse().ok()?);
            Some(Self { phase, list, age })
        };
        read().ok_or_else(|| UnknownMigration(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_read_as_it_is_written() {
        for text in [
            "dual hero:job:actor_queue:osis 30000",
            "canonical hero:work_queue:{worker_id} 1500",
            "closing hero:job:a 1",
        ] {
            assert_eq!(text.parse::<Migration>().unwrap().to_string(), text);
        }
        for bad in ["", "dual", "dual a", "dual a b", "done a 1"] {
            let said = bad.parse::<Migration>().unwrap_err().to_string();
            assert!(said.contains(&format!("`{bad}`")), "{said}");
        }
    }

    #[test]
    fn workers_take_from_old_lists_after_the_first_phase() {
        let names = ["a".parse().unwrap(), "b".parse().unwrap()];
        let lists = |text: &str| text.parse::<Migration>().unwrap().lists(&names);
        assert!(lists("dual x 1").is_empty());
        assert_eq!(lists("canonical x 1"), ["x"]);
        assert_eq!(lists("closing x:{worker_id} 1"), ["x:a", "x:b"]);
    }
}
