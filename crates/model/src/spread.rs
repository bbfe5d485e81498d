//! Spread queues: one queue whose jobs are in several contexts, its parts.
//!
//! The registry of a node has a [`SpreadLayout`] for each spread queue. A job with a key goes to the part that the key
//! selects, so jobs of one key have one order. When the number of parts changes, a key stays in its old part while that
//! part has unfinished jobs of the key ([`Place::old`]).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::keys::context::ContextId;
use crate::name::{Group, NameError, ScriptType};
use crate::route::Route;

/// Greatest number of parts of a queue.
pub const MAX_PARTS: usize = 64;

/// Name of a spread queue: the type of its jobs, and their group if they have one, as in `python` and `python:group:io`.
/// Jobs of all priorities are in the same queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SpreadName {
    script_type: ScriptType,
    group: Option<Group>,
}

/// A text that is no name of a spread queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSpreadName {
    /// The parts of the text are not those of a queue.
    #[error("{text:?} cannot be spread over contexts: name a queue as TYPE or TYPE:group:GROUP")]
    Parts {
        /// The text.
        text: String,
    },
    /// A name in the text is not valid.
    #[error("{text:?} is no queue: {source}")]
    Name {
        /// The text.
        text: String,
        /// The fault of the name.
        source: NameError,
    },
}

impl SpreadName {
    /// Returns the name of the queue of a route.
    #[must_use]
    pub fn of(route: &Route) -> Self {
        Self {
            script_type: route.script_type.clone(),
            group: route.group.clone(),
        }
    }

    /// Returns the type of its jobs.
    #[must_use]
    pub const fn script_type(&self) -> &ScriptType {
        &self.script_type
    }

    /// Returns the route of its jobs of normal priority.
    #[must_use]
    pub fn route(&self) -> Route {
        Route {
            group: self.group.clone(),
            ..Route::to(self.script_type.clone())
        }
    }
}

impl fmt::Display for SpreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.route().suffix())
    }
}

impl From<SpreadName> for String {
    fn from(name: SpreadName) -> Self {
        name.to_string()
    }
}

impl TryFrom<String> for SpreadName {
    type Error = InvalidSpreadName;

    fn try_from(text: String) -> Result<Self, InvalidSpreadName> {
        text.parse()
    }
}

impl FromStr for SpreadName {
    type Err = InvalidSpreadName;

    fn from_str(text: &str) -> Result<Self, InvalidSpreadName> {
        let own = || text.to_owned();
        let name = |source| InvalidSpreadName::Name {
            text: own(),
            source,
        };
        let parts: Vec<_> = text.split(':').collect();
        let (script_type, group) = match *parts {
            [script_type] => (script_type, None),
            [script_type, "group", group] => (script_type, Some(group)),
            _ => return Err(InvalidSpreadName::Parts { text: own() }),
        };
        Ok(Self {
            script_type: script_type.parse().map_err(name)?,
            group: group.map(str::parse).transpose().map_err(name)?,
        })
    }
}

/// Parts of a spread queue, as the registry stores them (JSON).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpreadLayout {
    /// Number of this layout: 1 for the first one. A part refuses jobs that were placed by a layout before the latest one
    /// that it has seen.
    pub generation: u64,
    /// Contexts of all parts, also of those that get no new jobs.
    pub parts: Vec<ContextId>,
    /// Number of parts that get new jobs: the first ones.
    pub active: usize,
    /// Number of active parts before, while keys move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<usize>,
}

/// The parts where a job with a key may go, as indices into [`SpreadLayout::parts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Part that the key selects now.
    pub part: usize,
    /// Part that the key selected before. It has the job if it has unfinished jobs of the key.
    pub old: Option<usize>,
}

impl SpreadLayout {
    /// Parses the text of the registry; `None` if it cannot be read, or names parts that it does not have.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let layout: Self = serde_json::from_slice(text).ok()?;
        let most = layout.parts.len();
        let fits = most <= MAX_PARTS
            && layout.active <= most
            && layout.previous.is_none_or(|n| (1..=most).contains(&n));
        fits.then_some(layout)
    }

    /// Returns the parts for the jobs of a key.
    #[must_use]
    pub fn place(&self, key: &str) -> Place {
        let part = part_of(key, self.active);
        let old = self.previous.map(|before| part_of(key, before));
        Place {
            part,
            old: old.filter(|old| *old != part),
        }
    }

    /// Returns true if a key with unfinished jobs in this part moves to another one.
    #[must_use]
    pub fn moves_from(&self, part: usize, key: &str) -> bool {
        self.place(key).old == Some(part)
    }
}

impl fmt::Display for SpreadLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Numbers and lists of numbers can always be written.
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// Returns the part of a key, below `parts`. From n to m > n parts, only (m - n) / m of all keys change their part (jump
/// consistent hash of Lamping and Veach, over the first eight bytes of SHA-256).
fn part_of(key: &str, parts: usize) -> usize {
    let digest = Sha256::digest(key.as_bytes());
    let mut seed = digest
        .iter()
        .take(8)
        .fold(0_u64, |seed, byte| (seed << 8) | u64::from(*byte));
    let (mut chosen, mut next) = (0, 0);
    while next < parts as u64 {
        chosen = next;
        seed = seed.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        // floor((chosen + 1) * 2^31 / (the upper 31 bits of the seed + 1)), without floating point.
        next = ((chosen + 1) << 31) / ((seed >> 33) + 1);
    }
    usize::try_from(chosen).unwrap_or(0)
}

/// Part of a spread queue that a new job goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpreadTicket {
    /// The spread queue.
    pub name: SpreadName,
    /// Generation of the layout that selected the part.
    pub generation: u64,
    /// Key that selected the part, if it was not selected by load.
    pub key: Option<String>,
    /// Stores the job only if the part has unfinished jobs of the key: it is the key's old part.
    pub if_present: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(active: usize, previous: Option<usize>) -> SpreadLayout {
        let parts = (1..=8).filter_map(ContextId::new).collect();
        SpreadLayout {
            generation: 1,
            parts,
            active,
            previous,
        }
    }

    #[test]
    fn names_are_types_and_groups() {
        for text in ["python", "python:group:io"] {
            let name: SpreadName = text.parse().unwrap();
            assert_eq!(name.to_string(), text);
            assert_eq!(SpreadName::of(&name.route()), name);
        }
        for text in [
            "",
            "python:prio:0",
            "python:group:io:inst:1",
            "a b",
            "x:group:",
        ] {
            assert!(text.parse::<SpreadName>().is_err(), "{text}");
        }
    }

    #[test]
    fn keys_are_divided_evenly_and_few_of_them_move() {
        let keys: Vec<_> = (0..8_000).map(|n| format!("key {n}")).collect();
        for parts in [2, 4, 8, 64] {
            let mut counts = vec![0_usize; parts];
            keys.iter().for_each(|key| counts[part_of(key, parts)] += 1);
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(least * 3 > most * 2 || parts == 64, "{counts:?}");
            assert!(*least > 0);
        }
        let moved = |from, to| {
            let moves = |key: &&String| part_of(key, from) != part_of(key, to);
            keys.iter().filter(moves).count()
        };
        let (more, less) = (moved(4, 8), moved(8, 4));
        assert!((3_600..4_400).contains(&more), "{more}");
        assert_eq!(less, more);
    }

    #[test]
    fn parts_of_keys_never_change() {
        // Values of this version: other versions have to place the same keys in the same parts.
        let parts = ["", "a", "order 7", "müller"].map(|key| part_of(key, 16));
        assert_eq!(parts, RECORDED);
    }

    const RECORDED: [usize; 4] = [5, 1, 13, 9];

    #[test]
    fn a_moving_key_has_an_old_part() {
        let layout = layout(8, Some(4));
        let places: Vec<_> = (0..100).map(|n| layout.place(&n.to_string())).collect();
        for (n, place) in places.iter().enumerate() {
            let key = n.to_string();
            assert_eq!(place.old.is_some(), part_of(&key, 4) != part_of(&key, 8));
            if let Some(old) = place.old {
                assert!(layout.moves_from(old, &key) && !layout.moves_from(place.part, &key));
            }
        }
        assert!(places.iter().any(|place| place.old.is_some()));
    }

    #[test]
    fn the_registry_stores_a_layout_as_text() {
        for layout in [layout(4, None), layout(8, Some(4))] {
            assert_eq!(
                SpreadLayout::parse(layout.to_string().as_bytes()),
                Some(layout)
            );
        }
        let bad = [
            "",
            "{}",
            r#"{"generation":1,"parts":[1],"active":2}"#,
            r#"{"generation":1,"parts":[1],"active":1,"previous":0}"#,
            r#"{"generation":1,"parts":[1],"active":1,"previous":2}"#,
        ];
        for text in bad {
            assert_eq!(SpreadLayout::parse(text.as_bytes()), None, "{text}");
        }
    }
}
