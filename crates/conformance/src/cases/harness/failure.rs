//! Results of cases as values instead of panics, so that the mutation test can count the cases that noticed a broken
//! script.

use std::fmt;
use std::panic::Location;

/// A difference that a case found, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(String);

/// Result of a case.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// Creates a failure at the caller's line.
    #[track_caller]
    pub fn new(what: impl fmt::Display) -> Self {
        let at = Location::caller();
        Self(format!("{}:{}: {what}", at.file(), at.line()))
    }

    /// Creates a failure for a line of a file.
    pub(crate) fn at(file: &str, line: usize, what: impl fmt::Display) -> Self {
        Self(format!("{file}:{line}: {what}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<meshwork_broker::Error> for Failure {
    #[track_caller]
    fn from(error: meshwork_broker::Error) -> Self {
        Self::new(error)
    }
}

impl From<meshwork_broker::MigrateError> for Failure {
    #[track_caller]
    fn from(error: meshwork_broker::MigrateError) -> Self {
        Self::new(error)
    }
}

impl From<redis::RedisError> for Failure {
    #[track_caller]
    fn from(error: redis::RedisError) -> Self {
        Self::new(error)
    }
}

impl From<meshwork_model::name::NameError> for Failure {
    #[track_caller]
    fn from(error: meshwork_model::name::NameError) -> Self {
        Self::new(error)
    }
}

impl From<meshwork_model::schedule::timing::RecurrenceError> for Failure {
    #[track_caller]
    fn from(error: meshwork_model::schedule::timing::RecurrenceError) -> Self {
        Self::new(error)
    }
}

impl From<meshwork_model::spread::InvalidSpreadName> for Failure {
    #[track_caller]
    fn from(error: meshwork_model::spread::InvalidSpreadName) -> Self {
        Self::new(error)
    }
}

/// Compares two texts, such as snapshots, and shows the lines that only one of them has.
#[track_caller]
pub(crate) fn same_text(is: &str, should: &str) -> Outcome {
    if is == should {
        return Ok(());
    }
    let only = |sign: char, one: &str, other: &str| {
        one.lines()
            .filter(|line| !other.lines().any(|l| l == *line))
            .map(|line| format!("\n{sign} {line}"))
            .collect::<String>()
    };
    let missing = only('-', should, is);
    let unexpected = only('+', is, should);
    let what = format!("the texts differ:{missing}{unexpected}\n--- whole:\n{is}");
    Err(Failure::new(what))
}

/// Fails the case unless the condition holds.
macro_rules! check {
    ($holds:expr) => {
        if !$holds {
            return Err($crate::cases::Failure::new(concat!(
                "does not hold: ",
                stringify!($holds)
            )));
        }
    };
}

/// Fails the case unless both are equal.
macro_rules! same {
    ($is:expr, $should:expr) => {
        match (&$is, &$should) {
            (is, should) => {
                if *is != *should {
                    let what = format!("{} is {is:?}, not {should:?}", stringify!($is));
                    return Err($crate::cases::Failure::new(what));
                }
            }
        }
    };
}

/// The list of a file's cases, by the names of their functions.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(in crate::cases) const CASES: &[$crate::cases::Case] = &[$(
            $crate::cases::Case {
                name: stringify!($name),
                run: |world| Box::pin($name(world)),
            }
        ),*];
    };
}

pub(crate) use {cases, check, same};
