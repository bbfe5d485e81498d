//! Validated names: script types, groups, instances, namespaces and job ids. No keys are built here.

use std::fmt;
use std::str::FromStr;

/// Greatest length of a script type, group or instance name, in bytes.
pub const MAX_NAME: usize = 64;
/// Greatest length of job ids that Meshwork creates, in bytes.
pub const MAX_JOB_ID: usize = 128;

/// The reason why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty.
    #[error("the {what} is empty: give 1 to {max} of the characters A-Z a-z 0-9 _ -")]
    Empty {
        /// Kind of the name.
        what: &'static str,
        /// Greatest length, in bytes.
        max: usize,
    },
    /// The name is too long.
    #[error("the {what} `{shown}…` is {len} bytes long: at most {max} are allowed")]
    TooLong {
        /// Kind of the name.
        what: &'static str,
        /// First characters of the name.
        shown: String,
        /// Length in bytes.
        len: usize,
        /// Greatest length, in bytes.
        max: usize,
    },
    /// A character is not allowed: it would make two different names the same key, or a key unreadable.
    #[error(
        "the {what} {name:?} contains {found:?}: only A-Z a-z 0-9 _ - are allowed, \
         since `:` and its like separate the parts of a Redis key"
    )]
    Character {
        /// Kind of the name.
        what: &'static str,
        /// The name, shortened.
        name: String,
        /// First character that is not allowed.
        found: char,
    },
    /// The braces are not a valid hash tag, so that a Redis Cluster would spread the keys over its nodes.
    #[error(
        "the braces of the {what} {name:?} make no hash tag: give one pair with a name in it, as `{{hero}}`"
    )]
    HashTag {
        /// Kind of the name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The name is a step of a path, so that no URL could have it.
    #[error("the {what} {name:?} is a step of a path, which URLs leave out: add another character")]
    Step {
        /// Kind of the name.
        what: &'static str,
        /// The name.
        name: String,
    },
}

fn shown(text: &str) -> String {
    text.chars().take(MAX_NAME).collect()
}

fn check(
    what: &'static str,
    text: &str,
    max: usize,
    allowed: fn(char) -> bool,
) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { what, max });
    }
    if text.len() > max {
        return Err(NameError::TooLong {
            what,
            shown: shown(text),
            len: text.len(),
            max,
        });
    }
    match text.chars().find(|c| !allowed(*c)) {
        Some(found) => Err(NameError::Character {
            what,
            name: shown(text),
            found,
        }),
        None => Ok(()),
    }
}

fn word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Accepts no braces, or one pair with at least one character in it.
fn check_hash_tag(what: &'static str, text: &str) -> Result<(), NameError> {
    let tagged = || {
        let (before, rest) = text.split_once('{')?;
        let (tag, after) = rest.split_once('}')?;
        let plain = [before, tag, after].concat().chars().all(word);
        (plain && !tag.is_empty()).then_some(())
    };
    if text.chars().all(word) || tagged().is_some() {
        return Ok(());
    }
    Err(NameError::HashTag {
        what,
        name: text.to_owned(),
    })
}

/// Refuses `.` and `..`.
fn check_step(what: &'static str, text: &str) -> Result<(), NameError> {
    match text {
        "." | ".." => Err(NameError::Step {
            what,
            name: text.to_owned(),
        }),
        _ => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $max:expr, $allowed:expr $(, $also:expr)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(String);

        impl $type {
            /// Returns the name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                check($what, text, $max, $allowed)?;
                $($also($what, text)?;)?
                Ok(Self(text.to_owned()))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

name! {
    /// Type of a job: one of Hero's (`osis`, `sal`, `v`, `python`) or the name of a handler in Rust. The queue
    /// `hero:q:work:type:{script_type}` has its name.
    ScriptType, "script type", MAX_NAME, |c| word(c) || c == '.', check_step
}
name! {
    /// A named set of workers of one type. The default is `default`.
    Group, "group", MAX_NAME, word
}
name! {
    /// A worker with a name of its own in a group. Jobs can be pinned to it.
    Instance, "instance", MAX_NAME, word
}
name! {
    /// First part of every key, `hero` by default. A hash tag (`{hero}`) keeps all keys in one slot of a Redis
    /// Cluster.
    Namespace, "namespace", MAX_NAME, |c| word(c) || c == '{' || c == '}', check_hash_tag
}
name! {
    /// A name by which workers choose jobs: they claim those with one of their own keys.
    RoutingKey, "routing key", MAX_NAME, word
}
name! {
    /// Id of a batch. Meshwork creates a UUID v4.
    BatchId, "batch id", MAX_NAME, word
}
name! {
    /// Name of a schedule; the ids of its jobs begin with it.
    ScheduleName, "schedule's name", MAX_NAME, word
}
name! {
    /// Name of a key of the API, which is part of the key.
    ApiKeyName, "name of the key", MAX_NAME, word
}
name! {
    /// A worker's name in legacy queues (`worker_id`, later `actor_id`).
    ActorId, "actor id", MAX_JOB_ID, |c| word(c) || c == '.'
}
name! {
    /// Id of a job. Meshwork creates a UUID v4; other programs use any word.
    JobId, "job id", MAX_JOB_ID, |c| word(c) || c == '.', check_step
}

impl ScriptType {
    /// Rhai, one script at a time on its thread (Hero's OSIS actor).
    pub const OSIS: &'static str = "osis";
    /// Rhai with access to the system (Hero's SAL actor).
    pub const SAL: &'static str = "sal";
    /// The V language.
    pub const V: &'static str = "v";
    /// Python.
    pub const PYTHON: &'static str = "python";
    /// Programs: scripts with a `#!` line, and commands of the worker's host. Not among [`Self::KNOWN`].
    pub const EXEC: &'static str = "exec";
    /// Flows, as the type of schedules and of nested flows.
    pub const FLOW: &'static str = "flow";
    /// Hero's types.
    pub const KNOWN: [&'static str; 4] = [Self::OSIS, Self::SAL, Self::V, Self::PYTHON];
}

impl Default for Group {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self("hero".to_owned())
    }
}

impl From<&RoutingKey> for Group {
    /// Returns the group of the workers of a routing key.
    fn from(key: &RoutingKey) -> Self {
        Self(key.0.clone())
    }
}

impl Default for RoutingKey {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl RoutingKey {
    /// Returns whether this is the key of jobs without a routing key.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.0 == "default"
    }
}

impl Namespace {
    /// Returns the first part of every key of Bananas.
    #[must_use]
    pub fn bananas() -> Self {
        Self("bananas".to_owned())
    }

    /// Returns the first part of every key of Nooble4.
    #[must_use]
    pub fn nooble() -> Self {
        Self("nooble4".to_owned())
    }

    /// Returns an internal name, which may have any characters.
    pub(crate) fn internal(text: String) -> Self {
        Self(text)
    }

    /// Returns the text in the braces, if there are any. All keys of the namespace are then in one slot of a Redis
    /// Cluster.
    #[must_use]
    pub fn hash_tag(&self) -> Option<&str> {
        let (_, rest) = self.0.split_once('{')?;
        Some(rest.split_once('}')?.0)
    }
}

macro_rules! foreign {
    ($type:ident) => {
        impl $type {
            /// Returns a name that another program wrote, unchecked.
            #[must_use]
            pub fn foreign(text: String) -> Self {
                Self(text)
            }
        }
    };
}

foreign!(JobId);
foreign!(BatchId);
foreign!(ActorId);
foreign!(ScriptType);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_names() {
        for good in ["a", "osis", "io-3", "A_9", &"x".repeat(64)] {
            assert_eq!(good.parse::<Group>().unwrap().as_str(), good);
        }
    }

    #[test]
    fn what_would_collide_is_refused_by_name() {
        for bad in ["a:b", "a b", "ä", "a\n", "{a}", "a/b"] {
            let said = bad.parse::<Instance>().unwrap_err().to_string();
            assert!(said.contains("instance"), "{said}");
        }
        assert!(matches!("".parse::<Group>(), Err(NameError::Empty { .. })));
        assert!(matches!(
            "x".repeat(65).parse::<Group>(),
            Err(NameError::TooLong { len: 65, .. })
        ));
    }

    #[test]
    fn a_namespace_may_carry_a_hash_tag() {
        let tag = |text: &str| {
            let namespace = text.parse::<Namespace>().unwrap();
            namespace.hash_tag().map(str::to_owned)
        };
        assert_eq!(tag("{hero}").as_deref(), Some("hero"));
        assert_eq!(tag("a-{hero}_b").as_deref(), Some("hero"));
        assert_eq!(tag("hero"), None);
        assert!("he:ro".parse::<Namespace>().is_err());
    }

    #[test]
    fn braces_that_make_no_hash_tag_are_refused_by_name() {
        for bad in [
            "{}", "{}hero", "{hero", "hero}", "}hero{", "{{hero}}", "{a}{b}", "{a}}",
        ] {
            let error = bad.parse::<Namespace>().unwrap_err();
            assert!(matches!(error, NameError::HashTag { .. }), "{bad}: {error}");
            let said = error.to_string();
            assert!(said.contains(bad) && said.contains("`{hero}`"), "{said}");
        }
    }
}
