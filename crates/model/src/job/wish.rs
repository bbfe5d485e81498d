//! What a job may wish beyond where it goes: when it runs, whose turn it takes, and of what there is to be
//! only one. How the wishes are granted is the scripts' business.

use std::str::FromStr;

use super::limits;

/// When a job is to run, at the earliest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At a time, in milliseconds since 1970; one that is over means at once.
    At(u64),
    /// After so many milliseconds on the server's clock.
    In(u64),
}

/// That no other job of the same type and name is accepted for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    /// What has to differ: at most [`limits::MAX_KEY`] bytes.
    pub name: String,
    /// For how long.
    pub until: Until,
    /// What becomes of a later one.
    pub policy: OnDuplicate,
}

/// For how long a job keeps others of its unique name away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Until {
    /// Until it has ended, its retries included.
    #[default]
    Done,
    /// Until it is first started.
    Started,
    /// For so many milliseconds, whatever becomes of it.
    For(u64),
}

/// What becomes of a job whose unique name another has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// The other stays, and its id is what the submitter gets.
    #[default]
    Keep,
    /// The later one is refused with an error.
    Refuse,
    /// The later one takes its place: the other is stopped if it still waits; if it runs, it goes on.
    Replace,
}

impl OnDuplicate {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Refuse => "refuse",
            Self::Replace => "replace",
        }
    }
}

/// A word that is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not known: keep, refuse or replace")]
pub struct UnknownPolicy(String);

impl FromStr for OnDuplicate {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        [Self::Keep, Self::Refuse, Self::Replace]
            .into_iter()
            .find(|policy| policy.as_str() == text)
            .ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}

impl Unique {
    /// Debounce: of all jobs of a name that are submitted one after the other, only the last runs, when
    /// nothing new has come for the pause. To be used with [`When::In`] of that pause.
    #[must_use]
    pub fn debounce(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            until: Until::Started,
            policy: OnDuplicate::Replace,
        }
    }

    /// Throttle: of all jobs of a name in a window of so many milliseconds, only the first runs.
    #[must_use]
    pub fn throttle(name: impl Into<String>, window_ms: u64) -> Self {
        Self {
            name: name.into(),
            until: Until::For(window_ms),
            policy: OnDuplicate::Keep,
        }
    }

    /// What the record says of it. The scripts free the name at the end that a word stands for, and leave a
    /// time to the server.
    pub(super) fn field(&self, scope: &str) -> String {
        let until = match self.until {
            Until::Done => "done".to_owned(),
            Until::Started => "started".to_owned(),
            Until::For(ms) => ms.to_string(),
        };
        format!("{until} {}", self.scoped(scope))
    }

    /// The name among those of all types.
    #[must_use]
    pub fn scoped(&self, script_type: &str) -> String {
        format!("{script_type}:{}", self.name)
    }
}

/// What is wrong with a wish.
pub(super) fn fault(
    when: Option<When>,
    key: Option<&str>,
    unique: Option<&Unique>,
) -> Option<String> {
    if let Some(When::In(ms)) = when
        && ms > limits::MAX_DELAY_MS
    {
        let max = limits::MAX_DELAY_MS;
        return Some(format!("a delay of {ms} ms is too long: at most {max}"));
    }
    let names = [
        ("key", key),
        ("unique name", unique.map(|unique| unique.name.as_str())),
    ];
    let name = names
        .into_iter()
        .find_map(|(what, name)| name_fault(what, name?));
    if name.is_some() {
        return name;
    }
    match unique?.until {
        Until::For(ms) if ms == 0 || ms > limits::MAX_DELAY_MS => {
            let max = limits::MAX_DELAY_MS;
            Some(format!(
                "a window of {ms} ms is not possible: give 1 to {max}"
            ))
        }
        _ => None,
    }
}

/// What is wrong with a key or a unique name, if anything is.
pub(crate) fn name_fault(what: &str, name: &str) -> Option<String> {
    let max = limits::MAX_KEY;
    let sound = (1..=max).contains(&name.len()) && !name.contains(char::is_control);
    (!sound).then(|| {
        format!("the {what} {name:?} is not possible: 1 to {max} bytes, no control characters")
    })
}
