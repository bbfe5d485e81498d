//! Work queues by what people call them.

use super::Hero;
use crate::name::{Group, Instance, NameError, ScriptType};
use crate::route::{Priority, UnknownPriority};

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

impl Hero {
    /// Takes the name of a work queue apart; nothing for a list that is none, as the old ones.
    #[must_use]
    pub fn queue_parts(&self, queue: &str) -> Option<QueueParts> {
        let short = queue.strip_prefix(&self.work_prefix())?;
        let parts: Vec<_> = short.split(':').collect();
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
        Some(QueueParts {
            script_type: script_type.to_owned(),
            group: group.map(str::to_owned),
            instance: instance.map(str::to_owned),
            priority,
        })
    }

    /// The work queue that `text` names: by its whole name, or by what comes after `hero:q:work:type:`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse_work_queue(&self, text: &str) -> Result<String, NoWorkQueue> {
        let short = text.strip_prefix(&self.work_prefix()).unwrap_or(text);
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
        let queue = match *parts {
            [of_type] => self.work_queue_type(&of_type.parse().map_err(name)?),
            [of_type, "group", group] => {
                let of_type: ScriptType = of_type.parse().map_err(name)?;
                self.work_queue_group(&of_type, &group.parse().map_err(name)?)
            }
            [of_type, "group", group, "inst", instance] => {
                let of_type: ScriptType = of_type.parse().map_err(name)?;
                let group: Group = group.parse().map_err(name)?;
                let instance: Instance = instance.parse().map_err(name)?;
                self.work_queue_instance(&of_type, &group, &instance)
            }
            _ => return Err(NoWorkQueue::Parts { text: own() }),
        };
        let Some(level) = priority else {
            return Ok(queue);
        };
        let level: Priority = level.parse().map_err(|source| NoWorkQueue::Priority {
            text: own(),
            source,
        })?;
        Ok(Self::work_queue_priority(&queue, level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_and_short_ones() {
        let keys = Hero::default();
        for short in [
            "osis",
            "sal:group:io",
            "osis:group:default:inst:1",
            "osis:prio:0",
            "sal:group:io:inst:3:prio:2",
        ] {
            let whole = format!("hero:q:work:type:{short}");
            assert_eq!(keys.parse_work_queue(short), Ok(whole.clone()));
            assert_eq!(keys.parse_work_queue(&whole), Ok(whole));
        }
        let low = keys.parse_work_queue("osis:prio:low").unwrap();
        assert_eq!(low, "hero:q:work:type:osis:prio:2");
    }

    #[test]
    fn a_name_is_taken_apart() {
        let keys = Hero::default();
        let parts = |short: &str| keys.queue_parts(&format!("hero:q:work:type:{short}"));
        let whole = parts("Odd One:group:io:inst:3:prio:2").unwrap();
        assert_eq!(whole.script_type, "Odd One");
        assert_eq!(whole.group.as_deref(), Some("io"));
        assert_eq!(whole.instance.as_deref(), Some("3"));
        assert_eq!(whole.priority, Priority::Low);
        assert_eq!(parts("osis"), parts("osis:prio:1"));
        assert_ne!(parts("osis"), parts("osis:group:default"));
        for other in ["osis:prio:7", "osis:x", "osis:group:a:b"] {
            assert_eq!(parts(other), None, "{other}");
        }
        assert_eq!(keys.queue_parts("hero:work_queue:w"), None);
    }

    #[test]
    fn what_is_no_queue_is_named() {
        let keys = Hero::default();
        for bad in [
            "",
            "osis:",
            "osis:group",
            "osis:group:",
            "osis:group:a b",
            "osis:inst:1",
            "osis:prio:3",
            "osis:prio:",
            "hero:work_queue:w",
            "other:q:work:type:osis",
        ] {
            let error = keys.parse_work_queue(bad).unwrap_err().to_string();
            assert!(error.contains(&format!("{bad:?}")), "{error}");
        }
    }
}
