//! How far a type has moved from the old lists to the canonical queues. What is
//! done in each phase is the broker's business.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::keys::hero::LegacyList;
use crate::name::ActorId;

/// A step of a migration. A type without one has not begun, or is through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Jobs are pushed to the canonical queue and to the old list.
    Dual,
    /// The same, and our workers take from the old lists too, after the canonical queues.
    Canonical,
    /// Our workers still take from the old lists, but nothing of ours is pushed there any more.
    Closing,
}

impl Phase {
    /// All phases in their order.
    pub const ALL: [Self; 3] = [Self::Dual, Self::Canonical, Self::Closing];

    /// The phase as a word.
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

/// The migration of one type, as it is stored: phase, list and age in milliseconds, with blanks between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// How far it is.
    pub phase: Phase,
    /// Where jobs are pushed besides the canonical queue.
    pub list: LegacyList,
    /// How long a job may stand on no list before it is pushed again: it is looked at twice, so far apart.
    pub age: Duration,
}

/// A text that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no setting of a migration: a phase (dual, canonical, closing), a list, milliseconds"
)]
pub struct UnknownMigration(String);

impl Migration {
    /// The old lists that one of our workers takes from now, if it goes by these old names.
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
