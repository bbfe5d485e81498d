//! Work queues by what follows their common beginning: `TYPE[:group:GROUP[:inst:INSTANCE]][:prio:LEVEL]`. The
//! same in the canonical queues of Hero and in those of a context.

use crate::name::{Group, Instance, NameError, ScriptType};
use crate::route::{Priority, UnknownPriority};

/// The suffix of a group's queue.
pub(crate) fn of_group(script_type: &ScriptType, group: &Group) -> String {
    format!("{script_type}:group:{group}")
}

/// The suffix of one worker's queue.
pub(crate) fn of_instance(script_type: &ScriptType, group: &Group, instance: &Instance) -> String {
    format!("{script_type}:group:{group}:inst:{instance}")
}

/// A queue, or a suffix, for one priority.
pub(crate) fn with_priority(queue: &str, priority: Priority) -> String {
    format!("{queue}:prio:{}", priority.level())
}

/// Why a text names no work queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoWorkQueue {
    /// Its parts are not those of a queue.
    #[error("{text:?} is no work queue: write TYPE[:group:GROUP[:inst:INSTANCE]][:prio:LEVEL]")]
    Parts {
        /// The text.
        text: String,
    },
    /// A name in it cannot be one.
    #[error("{text:?} is no work queue: {source}")]
    Name {
        /// The text.
        text: String,
        /// What is wrong with the name.
        source: NameError,
    },
    /// Its priority is none.
    #[error("{text:?} is no work queue: {source}")]
    Priority {
        /// The text.
        text: String,
        /// What is wrong with the priority.
        source: UnknownPriority,
    },
}

/// What the name of a work queue says, as it stands there: clients of another make name types and groups as
/// they like.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueParts {
    /// What its jobs are run by.
    pub script_type: String,
    /// The group it is for, if it is for one.
    pub group: Option<String>,
    /// The worker it is for, if it is for one.
    pub instance: Option<String>,
    /// How urgent its jobs are; `:prio:1` and no suffix are the same.
    pub priority: Priority,
}

impl QueueParts {
    /// Takes a suffix apart; nothing for a text that is none.
    pub(super) fn of_suffix(suffix: &str) -> Option<Self> {
        let parts: Vec<_> = suffix.split(':').collect();
        let (parts, priority) = match parts.as_slice() {
            [before @ .., "prio", level] => (before, level.parse().ok()?),
            all => (all, Priority::Normal),
        };
        let (script_type, group, instance) = match *parts {
            [of_type] => (of_type, None, None),
            [of_type, "group", group] => (of_type, Some(group), None),
            [of_type, "group", group, "inst", one] => (of_type, Some(group), Some(one)),
            _ => return None,
        };
        Some(Self {
            script_type: script_type.to_owned(),
            group: group.map(str::to_owned),
            instance: instance.map(str::to_owned),
            priority,
        })
    }
}

/// The suffix that `text` names: by a whole name that begins with `prefix`, or by what follows it. A priority may be
/// a word.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn named(text: &str, prefix: &str) -> Result<String, NoWorkQueue> {
    let short = text.strip_prefix(prefix).unwrap_or(text);
    let own = || text.to_owned();
    let name = |source| NoWorkQueue::Name {
        text: own(),
        source,
    };
    let parts: Vec<_> = short.split(':').collect();
    let (parts, priority) = match parts.as_slice() {
        [before @ .., "prio", level] => (before, Some(*level)),
        all => (all, None),
    };
    let suffix = match *parts {
        [of_type] => of_type.parse::<ScriptType>().map_err(name)?.to_string(),
        [of_type, "group", group] => of_group(
            &of_type.parse().map_err(name)?,
            &group.parse().map_err(name)?,
        ),
        [of_type, "group", group, "inst", instance] => of_instance(
            &of_type.parse().map_err(name)?,
            &group.parse().map_err(name)?,
            &instance.parse().map_err(name)?,
        ),
        _ => return Err(NoWorkQueue::Parts { text: own() }),
    };
    let Some(level) = priority else {
        return Ok(suffix);
    };
    let level: Priority = level.parse().map_err(|source| NoWorkQueue::Priority {
        text: own(),
        source,
    })?;
    Ok(with_priority(&suffix, level))
}
