//! Validated names: script types, groups, instances, namespaces and job ids. No keys are built here.

use std::fmt;
use std::str::FromStr;

/// The longest script type, group or instance name, in bytes.
pub const MAX_NAME: usize = 64;
/// The longest job id that we create, in bytes.
pub const MAX_JOB_ID: usize = 128;

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing was given.
    #[error("the {what} is empty: give 1 to {max} of the characters A-Z a-z 0-9 _ -")]
    Empty {
        /// What the name is for.
        what: &'static str,
        /// The longest name allowed, in bytes.
        max: usize,
    },
    /// The name is too long.
    #[error("the {what} `{shown}…` is {len} bytes long: at most {max} are allowed")]
    TooLong {
        /// What the name is for.
        what: &'static str,
        /// Its first characters.
        shown: String,
        /// Its length in bytes.
        len: usize,
        /// The longest name allowed, in bytes.
        max: usize,
    },
    /// A character that would make two different names the same key, or a key unreadable.
    #[error(
        "the {what} {name:?} contains {found:?}: only A-Z a-z 0-9 _ - are allowed, \
         since `:` and its like separate the parts of a Redis key"
    )]
    Character {
        /// What the name is for.
        what: &'static str,
        /// The name as given, cut to a readable length.
        name: String,
        /// The first character that is not allowed.
        found: char,
    },
    /// Braces that make no hash tag: Redis Cluster would spread the keys over its nodes.
    #[error(
        "the braces of the {what} {name:?} make no hash tag: give one pair with a name in it, as `{{hero}}`"
    )]
    HashTag {
        /// What the name is for.
        what: &'static str,
        /// The name as given.
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

/// No braces, or one pair with something in it.
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

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $max:expr, $allowed:expr $(, $also:expr)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(String);

        impl $type {
            /// The name as text.
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
    /// What runs a job: one of the seeds' types (`osis`, `sal`, `v`, `python`) or the name of a handler in
    /// Rust. It names the queue `hero:q:work:type:{script_type}`.
    ScriptType, "script type", MAX_NAME, word
}
name! {
    /// A pool of workers of one type. A worker that is given none is in the group `default`.
    Group, "group", MAX_NAME, word
}
name! {
    /// One worker of a group; jobs can be pinned to it.
    Instance, "instance", MAX_NAME, word
}
name! {
    /// The first part of every key, `hero` by default. A hash tag (`{hero}`) keeps all keys in one slot of
    /// a Redis Cluster.
    Namespace, "namespace", MAX_NAME, |c| word(c) || c == '{' || c == '}', check_hash_tag
}
name! {
    /// Which workers take a job: those that were given the same key.
    RoutingKey, "routing key", MAX_NAME, word
}
name! {
    /// A batch: a UUID v4 where we make it.
    BatchId, "batch id", MAX_NAME, word
}
name! {
    /// A schedule; the ids of its jobs begin with it.
    ScheduleName, "schedule's name", MAX_NAME, word
}
name! {
    /// A worker as the old queues name it (`worker_id`, later `actor_id`).
    ActorId, "actor id", MAX_JOB_ID, |c| word(c) || c == '.'
}
name! {
    /// The id of a job: a UUID v4 where we make it, any word where somebody else does.
    JobId, "job id", MAX_JOB_ID, |c| word(c) || c == '.'
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
    /// The types that the seeds name.
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
    /// The pool of workers that takes what is routed so.
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
    /// Whether it is the one that jobs have which ask for none.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.0 == "default"
    }
}

impl Namespace {
    /// The first part of every key of Bananas.
    #[must_use]
    pub fn bananas() -> Self {
        Self("bananas".to_owned())
    }

    /// The first part of every name of Nooble4.
    #[must_use]
    pub fn nooble() -> Self {
        Self("nooble4".to_owned())
    }

    /// A name that no user gave, with whatever characters it needs.
    pub(crate) fn internal(text: String) -> Self {
        Self(text)
    }

    /// What is in its braces: all keys of the namespace lie in one slot of a Redis Cluster then.
    #[must_use]
    pub fn hash_tag(&self) -> Option<&str> {
        let (_, rest) = self.0.split_once('{')?;
        Some(rest.split_once('}')?.0)
    }
}

macro_rules! foreign {
    ($type:ident) => {
        impl $type {
            /// A name that somebody else wrote, taken as it is; whoever reads it must cope with it.
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
