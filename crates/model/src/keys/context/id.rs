//! Numbers of actors, contexts, flows and runners, and the two-part names of jobs and messages.
//!
//! Each number is a `u32`. In text it is decimal digits without a sign and without leading zeros, so that two texts
//! never name one object.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::shown;

/// The reason why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} {text:?} {fault}")]
pub struct InvalidId {
    /// Kind of the id.
    pub what: &'static str,
    /// The text, shortened.
    pub text: String,
    /// The fault.
    pub fault: IdFault,
}

/// The fault of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdFault {
    /// There are characters that are not digits, or none at all.
    #[error("is no number: write it in decimal digits")]
    NotDigits,
    /// The number has leading zeros, so that it would have two forms.
    #[error("begins with 0: write it without leading zeros")]
    LeadingZero,
    /// The number is 0, which is reserved for the node.
    #[error("is reserved for the node: ids of contexts begin at 1")]
    Zero,
    /// The number is beyond `u32`.
    #[error("is too large: the highest is {}", u32::MAX)]
    TooLarge,
}

/// Parses a `u32` of digits in canonical form.
fn number(text: &str) -> Result<u32, IdFault> {
    if text.is_empty() || !text.bytes().all(|c| c.is_ascii_digit()) {
        return Err(IdFault::NotDigits);
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(IdFault::LeadingZero);
    }
    // The text consists of digits: a failure means that the number is too large.
    text.parse().map_err(|_| IdFault::TooLarge)
}

fn named(what: &'static str, text: &str) -> Result<u32, InvalidId> {
    number(text).map_err(|fault| invalid(what, text, fault))
}

fn invalid(what: &'static str, text: &str, fault: IdFault) -> InvalidId {
    InvalidId {
        what,
        text: shown(text.as_bytes()),
        fault,
    }
}

/// A context, from 1. In the layout `db` the number is also that of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContextId(NonZeroU32);

impl ContextId {
    /// Returns the context of this number; `None` for 0.
    #[must_use]
    pub const fn new(id: u32) -> Option<Self> {
        match NonZeroU32::new(id) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl FromStr for ContextId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let what = "context id";
        Self::new(named(what, text)?).ok_or_else(|| invalid(what, text, IdFault::Zero))
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $type(pub u32);

        impl FromStr for $type {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                named($what, text).map(Self)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// An actor of this node. Meshwork's counter begins at 1. The caller of a job of a plain client may be no actor.
    ActorId, "actor id"
}
id! {
    /// A flow of a context.
    FlowId, "flow id"
}
id! {
    /// A runner of a context.
    RunnerId, "runner id"
}

/// The reason why a text is not a name of two numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKey {
    /// The parts are not as expected.
    #[error("{text:?} is no {what}: write {what}:CALLER:ID")]
    Parts {
        /// The expected first part: `job` or `message`.
        what: &'static str,
        /// The text, shortened.
        text: String,
    },
    /// One of the numbers is not valid.
    #[error(transparent)]
    Number(#[from] InvalidId),
}

macro_rules! key_of_two {
    ($(#[$doc:meta])* $type:ident, $word:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type {
            /// Creator.
            pub caller: ActorId,
            /// Number among those of the creator.
            pub id: u32,
        }

        impl $type {
            /// Builds the name from its two numbers.
            #[must_use]
            pub const fn new(caller: u32, id: u32) -> Self {
                Self { caller: ActorId(caller), id }
            }

            /// Returns the two numbers with a colon between them, as `12:101`.
            #[must_use]
            pub fn numbers(self) -> String {
                format!("{}:{}", self.caller, self.id)
            }

            /// Parses two numbers with a colon between them.
            ///
            /// # Errors
            /// One of the numbers is not valid.
            pub fn of_numbers(text: &str) -> Result<Self, InvalidKey> {
                format!(concat!($word, ":{}"), text).parse()
            }
        }

        impl FromStr for $type {
            type Err = InvalidKey;

            fn from_str(text: &str) -> Result<Self, InvalidKey> {
                let parts = || {
                    let (caller, id) = text.strip_prefix(concat!($word, ":"))?.split_once(':')?;
                    (!id.contains(':')).then_some((caller, id))
                };
                let (caller, id) = parts().ok_or_else(|| InvalidKey::Parts {
                    what: $word,
                    text: shown(text.as_bytes()),
                })?;
                let caller = caller.parse()?;
                Ok(Self { caller, id: named($what, id)? })
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($word, ":{}:{}"), self.caller, self.id)
            }
        }
    };
}

key_of_two! {
    /// A job of a context: `job:{caller}:{id}`. The prefix of the layout is not part of it.
    JobKey, "job", "job id"
}
key_of_two! {
    /// A message of a context: `message:{caller}:{id}`. The prefix of the layout is not part of it.
    MessageKey, "message", "message id"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_form() {
        for (text, fault) in [
            ("", IdFault::NotDigits),
            ("x", IdFault::NotDigits),
            ("+1", IdFault::NotDigits),
            ("-1", IdFault::NotDigits),
            ("1 ", IdFault::NotDigits),
            ("١", IdFault::NotDigits),
            ("01", IdFault::LeadingZero),
            ("00", IdFault::LeadingZero),
            ("4294967296", IdFault::TooLarge),
            ("99999999999999999999999", IdFault::TooLarge),
        ] {
            let error = text.parse::<ActorId>().unwrap_err();
            assert_eq!((error.what, error.fault), ("actor id", fault), "{text}");
        }
        assert_eq!("0".parse(), Ok(ActorId(0)));
        assert_eq!("4294967295".parse(), Ok(RunnerId(u32::MAX)));
    }

    #[test]
    fn contexts_begin_at_1() {
        let error = "0".parse::<ContextId>().unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"the context id "0" is reserved for the node: ids of contexts begin at 1"#
        );
        assert_eq!(ContextId::new(0), None);
        assert_eq!("7".parse(), Ok(ContextId::new(7).unwrap()));
        assert!(serde_json::from_str::<ContextId>("0").is_err());
    }

    #[test]
    fn names_of_two_numbers() {
        let job = JobKey::new(12, 2001);
        assert_eq!(job.to_string(), "job:12:2001");
        assert_eq!("job:12:2001".parse(), Ok(job));
        let message = MessageKey::new(12, 101);
        assert_eq!("message:12:101".parse(), Ok(message));
        assert_eq!(message.numbers(), "12:101");
        assert_eq!(MessageKey::of_numbers("12:101"), Ok(message));
        assert!(MessageKey::of_numbers("12").is_err());
        for bad in [
            "job:12",
            "job:1:2:3",
            "job",
            "jobs:1:2",
            "message:1:2",
            "1:2",
            "",
        ] {
            let error = bad.parse::<JobKey>().unwrap_err();
            assert!(
                matches!(error, InvalidKey::Parts { what: "job", .. }),
                "{bad}"
            );
        }
        for bad in [
            "job:012:1",
            "job:1:4294967296",
            "job::1",
            "job:1:",
            "job: 1:2",
        ] {
            let error = bad.parse::<JobKey>().unwrap_err();
            assert!(matches!(error, InvalidKey::Number(_)), "{bad}");
        }
    }
}
