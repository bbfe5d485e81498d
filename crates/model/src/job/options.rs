//! Options of a job beyond its route: delay, concurrency key and unique name. The broker's scripts apply them.

use std::str::FromStr;

use super::limits;
use crate::time::duration;

/// Earliest start of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// A time in milliseconds since 1970. A past time means at once.
    At(u64),
    /// A number of milliseconds from now, by the server's clock.
    In(u64),
}

/// Unique name: no other job of the same type and name is accepted for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    /// The name: at most [`limits::MAX_KEY`] bytes.
    pub name: String,
    /// Time for which the name is taken.
    pub until: Until,
    /// Rule for a later job of the same name.
    pub policy: OnDuplicate,
}

/// Time for which a unique name is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Until {
    /// Until the job has ended, with its retries.
    #[default]
    Done,
    /// Until the first start of the job.
    Started,
    /// For this number of milliseconds, whatever happens to the job.
    For(u64),
}

/// Rule for a job whose unique name is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// The earlier job stays, and the submitter gets its id.
    #[default]
    Keep,
    /// The later job is refused with an error.
    Refuse,
    /// The later job replaces the earlier one. The earlier one is cancelled if it waits; if it runs, it continues.
    Replace,
}

impl OnDuplicate {
    /// Returns the word for the rule.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Refuse => "refuse",
            Self::Replace => "replace",
        }
    }
}

/// An unknown word for the rule.
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

/// An unknown event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not known: done or started")]
pub struct UnknownEnd(String);

impl FromStr for Until {
    type Err = UnknownEnd;

    fn from_str(text: &str) -> Result<Self, UnknownEnd> {
        match text {
            "done" => Ok(Self::Done),
            "started" => Ok(Self::Started),
            _ => Err(UnknownEnd(text.to_owned())),
        }
    }
}

impl Unique {
    /// Debounce: of all jobs of one name, only the last one runs, after a pause without another one. Set [`When::In`]
    /// to that pause.
    #[must_use]
    pub fn debounce(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            until: Until::Started,
            policy: OnDuplicate::Replace,
        }
    }

    /// Throttle: of all jobs of one name in a window of this many milliseconds, only the first one runs.
    #[must_use]
    pub fn throttle(name: impl Into<String>, window_ms: u64) -> Self {
        Self {
            name: name.into(),
            until: Until::For(window_ms),
            policy: OnDuplicate::Keep,
        }
    }

    /// Returns the value for the record. The scripts release the name at the event that a word names; the server
    /// expires a time.
    pub(super) fn field(&self, scope: &str) -> String {
        let until = match self.until {
            Until::Done => "done".to_owned(),
            Until::Started => "started".to_owned(),
            Until::For(ms) => ms.to_string(),
        };
        format!("{until} {}", self.scoped(scope))
    }

    /// Returns the name with its type before it.
    #[must_use]
    pub fn scoped(&self, script_type: &str) -> String {
        format!("{script_type}:{}", self.name)
    }
}

/// Returns the fault of these options, if there is one.
pub(super) fn fault(
    when: Option<When>,
    key: Option<&str>,
    unique: Option<&Unique>,
) -> Option<String> {
    if let Some(When::In(ms)) = when
        && ms > limits::MAX_DELAY_MS
    {
        let [delay, most] = [ms, limits::MAX_DELAY_MS].map(duration);
        return Some(format!("a delay of {delay} is too long: at most {most}"));
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
            let [window, most] = [ms, limits::MAX_DELAY_MS].map(duration);
            Some(format!(
                "a window of {window} is not possible: give 1 ms to {most}"
            ))
        }
        _ => None,
    }
}

/// Returns the fault of a start timeout, if there is one.
pub(super) fn start_fault(ms: Option<u64>) -> Option<String> {
    let max = limits::MAX_DELAY_MS;
    let ms = ms.filter(|ms| !(1..=max).contains(ms))?;
    let [timeout, most] = [ms, max].map(duration);
    Some(format!(
        "a start timeout of {timeout} is not possible: give 1 ms to {most}"
    ))
}

/// Returns the fault of a key or a unique name, if there is one.
pub(crate) fn name_fault(what: &str, name: &str) -> Option<String> {
    let max = limits::MAX_KEY;
    let sound = (1..=max).contains(&name.len()) && !name.contains(char::is_control);
    (!sound).then(|| {
        format!("the {what} {name:?} is not possible: 1 to {max} bytes, no control characters")
    })
}
