//! Suffixes of queues: `TYPE[:group:GROUP[:inst:INSTANCE]][:prio:LEVEL]`. They are the same in Hero's canonical
//! queues and in those of a context.

use crate::name::{Group, Instance, NameError, ScriptType};
use crate::route::{Priority, UnknownPriority};

/// Returns the suffix of a group's queue.
pub(crate) fn of_group(script_type: &ScriptType, group: &Group) -> String {
    format!("{script_type}:group:{group}")
}

/// Returns the suffix of one worker's queue.
pub(crate) fn of_instance(script_type: &ScriptType, group: &Group, instance: &Instance) -> String {
    format!("{script_type}:group:{group}:inst:{instance}")
}

/// Returns a queue, or a suffix, for one priority.
pub(crate) fn with_priority(queue: &str, priority: Priority) -> String {
    format!("{queue}:prio:{}", priority.level())
}

/// The reason why a text names no queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoWorkQueue {
    /// The parts are not those of a queue.
    #[error("{text:?} is no work queue: write TYPE[:group:GROUP[:inst:INSTANCE]][:prio:LEVEL]")]
    Parts {
        /// The text.
        text: String,
    },
    /// A name in the text is not valid.
    #[error("{text:?} is no work queue: {source}")]
    Name {
        /// The text.
        text: String,
        /// The fault of the name.
        source: NameError,
    },
    /// The priority is not valid.
    #[error("{text:?} is no work queue: {source}")]
    Priority {
        /// The text.
        text: String,
        /// The fault of the priority.
        source: UnknownPriority,
    },
}

/// The parts of a queue's name, unchecked: foreign clients choose names of types and groups freely.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueParts {
    /// Type of its jobs.
    pub script_type: String,
    /// Group of the queue, if it has one.
    pub group: Option<String>,
    /// Instance of the queue, if it has one.
    pub instance: Option<String>,
    /// Priority of its jobs; `:prio:1` and no suffix are the same.
    pub priority: Priority,
}

impl QueueParts {
    /// Returns the parts with the routing key as the group: `default` for a queue without a group, which has the jobs
    /// without a routing key, as the queue of the group `default` has. An empty name counts as none.
    #[must_use]
    pub fn by_routing_key(self) -> Self {
        let given = |name: Option<String>| name.filter(|name| !name.is_empty());
        Self {
            group: Some(given(self.group).unwrap_or_else(|| Group::default().to_string())),
            instance: given(self.instance),
            ..self
        }
    }

    /// Parses a suffix; `None` if the text is not one.
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

/// Returns the suffix that `text` names: by a whole name that begins with `prefix`, or by the part after it. A
/// priority may be a word.
///
/// # Errors
/// The text names no queue.
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
