//! A child: a job that a running job submits. Its id consists of its parent's id and the number of the call, so that
//! a second run of the parent finds the children of the first one.

use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::{Invalid, Job, NewJob, When, limits};
use crate::name::{Group, JobId, MAX_JOB_ID, NameError, ScriptType};
use crate::route::{Priority, Route};
use crate::sandbox::{InvalidSandbox, Profile, TooLax, of_child};
use crate::secret::EnvVars;
use crate::trace::TraceContext;

/// A child as its parent's run submits it. Options that are not set have the defaults of any job. Caller, context, tags
/// and trace are the parent's; the environment is not inherited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewChild {
    /// Text of the script, or the text for a handler in Rust.
    pub script: String,
    /// Type of the script. Default: the parent's.
    pub script_type: Option<ScriptType>,
    /// Bytes for the script, at most [`limits::MAX_INPUT`].
    pub input: Option<Vec<u8>>,
    /// Priority. Default: normal.
    pub priority: Option<Priority>,
    /// Milliseconds before it runs, by the server's clock, at most [`limits::MAX_DELAY_MS`]. Default: none.
    pub delay_ms: Option<u64>,
    /// Number of retries, at most [`limits::MAX_RETRIES`]. Default: 0.
    pub retries: Option<u32>,
    /// Timeout of one run in seconds, at most [`limits::MAX_TIMEOUT`]. Default: [`limits::DEFAULT_TIMEOUT`].
    pub timeout: Option<u64>,
    /// Concurrency key in a fair queue, at most [`limits::MAX_KEY`] bytes. Default: none.
    pub key: Option<String>,
    /// Group of workers. Default: any worker of its type.
    pub group: Option<Group>,
    /// Profile of the sandbox, not laxer than that of the parent's run. Default: nothing is requested.
    pub sandbox: Option<Profile>,
    /// Environment of the script. Default: empty.
    pub env_vars: EnvVars,
}

/// The reason why a child was refused. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidChild {
    /// The parent has the greatest number of children.
    #[error("a job has at most {max} children", max = limits::MAX_CHILDREN)]
    TooMany,
    /// The parent is at the greatest depth.
    #[error(
        "job {parent} is {max} levels below the first job: children go no deeper than {max} levels",
        max = limits::MAX_DEPTH
    )]
    TooDeep {
        /// The parent.
        parent: String,
    },
    /// The child's id would not be valid.
    #[error(
        "the child's id would be `{parent}.{number}`: {source}; a parent's id takes at most {MAX_JOB_ID} bytes less its \
         child's number and a dot"
    )]
    Id {
        /// The parent.
        parent: String,
        /// Number of the call.
        number: u32,
        /// The fault.
        source: NameError,
    },
    /// The sandbox is laxer than that of the parent.
    #[error(transparent)]
    Sandbox(#[from] TooLax),
    /// The sandbox of the parent cannot be read.
    #[error("the sandbox of job {parent}: {source}")]
    ParentSandbox {
        /// The parent.
        parent: String,
        /// The fault.
        source: InvalidSandbox,
    },
    /// The job is invalid.
    #[error(transparent)]
    Job(#[from] Invalid),
}

impl NewChild {
    /// Returns a child with the defaults.
    #[must_use]
    pub fn new(script: impl Into<String>) -> Self {
        let script = script.into();
        Self {
            script,
            ..Self::default()
        }
    }

    /// Returns the job for the call of this number (from 1) in a run of `parent`, whose type is `script_type`, in the
    /// sandbox `ran`.
    ///
    /// # Errors
    /// The first fault.
    pub fn job(
        &self,
        (parent, script_type, ran): (&Job, &ScriptType, Profile),
        number: u32,
        trace: Option<TraceContext>,
    ) -> Result<NewJob, InvalidChild> {
        if number == 0 || number > limits::MAX_CHILDREN {
            return Err(InvalidChild::TooMany);
        }
        let parent_id = || parent.id.clone();
        if parent.depth >= limits::MAX_DEPTH {
            return Err(InvalidChild::TooDeep {
                parent: parent_id(),
            });
        }
        let id = child_id(&parent.id, number).map_err(|source| InvalidChild::Id {
            parent: parent_id(),
            number,
            source,
        })?;
        let mut route = Route::to(self.type_in(script_type).clone());
        route.group.clone_from(&self.group);
        route.priority = self.priority.unwrap_or_default();
        let mut job = NewJob::new(id, route, self.script.as_str());
        job.input.clone_from(&self.input);
        job.caller_id.clone_from(&parent.caller_id);
        job.context_id.clone_from(&parent.context_id);
        job.when = self.delay_ms.map(When::In);
        job.retries = self.retries.unwrap_or(job.retries);
        job.timeout = self.timeout.unwrap_or(job.timeout);
        job.key.clone_from(&self.key);
        // Another program may have written more, or other texts.
        let tags = parent.tags.iter().filter_map(|tag| tag.parse().ok());
        job.tags = tags.take(limits::MAX_TAGS).collect();
        let requested = parent.sandbox();
        let requested = requested.map_err(|source| InvalidChild::ParentSandbox {
            parent: parent_id(),
            source,
        })?;
        job.sandbox = of_child(&requested, ran, self.sandbox)?;
        job.env_vars = self.env_vars.clone();
        job.trace = trace;
        job.check()?;
        Ok(job)
    }

    fn type_in<'a>(&'a self, parents: &'a ScriptType) -> &'a ScriptType {
        self.script_type.as_ref().unwrap_or(parents)
    }

    /// Returns a digest of the options that were set, for a parent of type `script_type`. Defaults are not part of
    /// it, so that another default in a later release does not change the digest.
    #[must_use]
    pub fn digest(&self, script_type: &ScriptType) -> ChildDigest {
        let number = |given: Option<u64>| given.map(|number| number.to_string());
        let mut options = vec![
            self.priority.map(|level| level.as_str().to_owned()),
            number(self.delay_ms),
            number(self.retries.map(u64::from)),
            number(self.timeout),
            self.key.clone(),
            self.group.as_ref().map(ToString::to_string),
        ];
        // Absent in the digests of earlier releases.
        options.extend(self.sandbox.map(|profile| Some(profile.to_string())));
        for (name, value) in &*self.env_vars {
            options.extend([Some(name.clone()), Some(value.clone())]);
        }
        let options = options
            .iter()
            .map(|value| value.as_deref().map(str::as_bytes));
        let parts = [
            part([Some(self.type_in(script_type).as_str().as_bytes())]),
            part([Some(self.script.as_bytes())]),
            part([self.input.as_deref()]),
            part(options),
        ];
        ChildDigest(parts.concat())
    }
}

/// Returns the id of a job's child.
///
/// # Errors
/// The id is too long, or has characters that are not allowed.
pub fn child_id(parent: &str, number: u32) -> Result<JobId, NameError> {
    format!("{parent}.{number}").parse()
}

/// Hexadecimal digits of each part of a [`ChildDigest`]: two different scripts have equal ones once in 10^12.
const DIGITS: usize = 10;
/// Names of the parts.
const PARTS: [&str; 4] = ["type", "script", "input", "options"];

/// Hashes values, each with its length, so that different lists of values never make the same bytes.
fn part<'a>(values: impl IntoIterator<Item = Option<&'a [u8]>>) -> String {
    let mut hash = Sha256::new();
    for value in values {
        let length = value.map_or(0, |value| value.len() as u64 + 1);
        hash.update(length.to_be_bytes());
        hash.update(value.unwrap_or_default());
    }
    HEXLOWER.encode(&hash.finalize())[..DIGITS].to_owned()
}

/// A short digest of a child's type, script, input and options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildDigest(String);

impl ChildDigest {
    /// Returns the digest as stored in records.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the names of the parts in which a stored digest differs from this one.
    #[must_use]
    pub fn differences(&self, other: &str) -> Vec<&'static str> {
        let parts = PARTS.iter().enumerate();
        let differs = |at: usize| {
            let digits = at * DIGITS..(at + 1) * DIGITS;
            self.0.get(digits.clone()) != other.get(digits)
        };
        parts
            .filter(|(at, _)| differs(*at))
            .map(|(_, part)| *part)
            .collect()
    }
}

impl fmt::Display for ChildDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(id: &str) -> Job {
        let text = |text: &str| text.as_bytes().to_vec();
        let fields = [
            ("caller_id", "me"),
            ("context_id", "here"),
            ("env_vars", r#"{"A":"b"}"#),
            ("mw_tags", "nightly ä team:a"),
        ];
        Job::from_fields(
            id,
            fields.map(|(name, value)| (name.to_owned(), text(value))),
        )
    }

    fn osis() -> ScriptType {
        "osis".parse().unwrap()
    }

    fn job(child: &NewChild, parent: &Job, number: u32) -> Result<NewJob, InvalidChild> {
        child.job((parent, &osis(), Profile::Open), number, None)
    }

    #[test]
    fn it_has_what_it_is_given_and_its_parents_caller_context_and_tags() {
        let child = NewChild {
            delay_ms: Some(1500),
            retries: Some(2),
            timeout: Some(7),
            key: Some("k".to_owned()),
            group: Some("gpu".parse().unwrap()),
            priority: Some(Priority::High),
            input: Some(vec![0, 255]),
            ..NewChild::new("1")
        };
        let job = job(&child, &parent("p"), 3).unwrap();
        assert_eq!(
            (job.id.as_str(), job.route.script_type.as_str()),
            ("p.3", "osis")
        );
        assert_eq!(
            (job.caller_id.as_str(), job.context_id.as_str()),
            ("me", "here")
        );
        let tags: Vec<_> = job.tags.iter().map(super::super::Tag::as_str).collect();
        assert_eq!(tags, ["nightly", "team:a"]);
        assert!(job.env_vars.is_empty(), "{:?}", job.env_vars);
        assert_eq!(
            (job.when, job.retries, job.timeout),
            (Some(When::In(1500)), 2, 7)
        );
        assert_eq!(job.route.group.unwrap().as_str(), "gpu");
        assert_eq!(
            (job.route.priority, job.input),
            (Priority::High, Some(vec![0, 255]))
        );
    }

    #[test]
    fn each_bound_is_named() {
        let said = |parent: &Job, number| {
            job(&NewChild::new("1"), parent, number)
                .unwrap_err()
                .to_string()
        };
        assert!(job(&NewChild::new("1"), &parent("p"), limits::MAX_CHILDREN).is_ok());
        assert!(said(&parent("p"), limits::MAX_CHILDREN + 1).contains("at most 1000 children"));
        let mut deep = parent("p");
        deep.depth = limits::MAX_DEPTH - 1;
        assert!(job(&NewChild::new("1"), &deep, 1).is_ok());
        deep.depth += 1;
        assert!(
            said(&deep, 1).contains("no deeper than 8 levels"),
            "{}",
            said(&deep, 1)
        );
        let fits = "x".repeat(MAX_JOB_ID - 2);
        assert!(job(&NewChild::new("1"), &parent(&fits), 9).is_ok());
        let long = said(&parent(&fits), 10);
        assert!(long.contains("129 bytes long: at most 128"), "{long}");
        assert!(said(&parent("a:b"), 1).contains("contains ':'"));
        assert!(job(&NewChild::new(" "), &parent("p"), 1).is_err());
    }

    #[test]
    fn a_digest_tells_what_differs() {
        let one = NewChild::new("1");
        let of = |child: &NewChild| child.digest(&osis());
        let mut other = one.clone();
        other.script_type = Some(osis());
        assert_eq!(of(&one), of(&other), "the parent's type is the default");
        let differ = |change: fn(&mut NewChild)| {
            let mut other = one.clone();
            change(&mut other);
            of(&one).differences(of(&other).as_str())
        };
        assert_eq!(differ(|_| ()), [""; 0]);
        assert_eq!(
            differ(|c| c.script_type = Some("v".parse().unwrap())),
            ["type"]
        );
        assert_eq!(differ(|c| c.script = "2".into()), ["script"]);
        assert_eq!(differ(|c| c.input = Some(Vec::new())), ["input"]);
        assert_eq!(differ(|c| c.priority = Some(Priority::Normal)), ["options"]);
        assert_eq!(differ(|c| c.delay_ms = Some(1)), ["options"]);
        assert_eq!(differ(|c| c.retries = Some(0)), ["options"]);
        assert_eq!(differ(|c| c.timeout = Some(1)), ["options"]);
        assert_eq!(differ(|c| c.key = Some("1".into())), ["options"]);
        assert_eq!(
            differ(|c| c.group = Some("1".parse().unwrap())),
            ["options"]
        );
        assert_eq!(
            differ(|c| c.env_vars = [("A".into(), "1".into())].into_iter().collect()),
            ["options"]
        );
        // A digest of a later release or of another program.
        assert_eq!(of(&one).differences("x"), PARTS);
    }

    #[test]
    fn a_digest_is_the_same_in_every_release() {
        let child = NewChild {
            input: Some(b"in".to_vec()),
            retries: Some(1),
            ..NewChild::new("x = 1")
        };
        assert_eq!(
            child.digest(&osis()).as_str(),
            "2d02c55f8c8382a0224031f17496da02ba1f8350"
        );
    }
}
