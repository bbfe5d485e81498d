//! A job of a context: a script, its prerequisites, and its result.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::reader::{
    Fields, RecordError, count_fault, fields_of, first_fault, length_fault, read_some_word,
    read_word, seconds_fault, some_word, word,
};
use super::{FieldFault, field};
use crate::job::{EnvTooLarge, limits};
use crate::keys::context::{ActorId, ContextId, JobKey};
use crate::name::ScriptType;
use crate::secret::EnvVars;
use crate::state::Status;

/// The record `job:{caller_id}:{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextJob {
    /// Number among the jobs of its caller, as in its key.
    pub id: u32,
    /// Creator of the job: the number in its key.
    pub caller_id: ActorId,
    /// Context that stores the job; the record's own field is ignored.
    pub context_id: ContextId,
    /// Text of the script, at most [`limits::MAX_SCRIPT`] bytes.
    pub script: String,
    /// Type of the script; absent where only the queue names it.
    #[serde(
        default,
        serialize_with = "some_word",
        deserialize_with = "read_some_word"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script_type: Option<ScriptType>,
    /// Timeout of one run in seconds, from 1 to [`limits::MAX_TIMEOUT`].
    pub timeout: u32,
    /// Number of retries, at most [`limits::MAX_RETRIES`].
    pub retries: u8,
    /// Environment of the script.
    #[serde(serialize_with = "environment", deserialize_with = "read_environment")]
    pub env_vars: EnvVars,
    /// Result of the job. A plain value is the item `result`.
    pub result: BTreeMap<String, String>,
    /// Reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Keys of jobs that must end first, and names of gates; see
    /// [`ContextKeys::parse_prerequisite`](crate::keys::context::ContextKeys::parse_prerequisite).
    pub prerequisites: Vec<String>,
    /// Jobs of the same caller that must finish first.
    pub dependends: Vec<u32>,
    /// Seconds since 1970.
    pub created_at: u32,
    /// Seconds since 1970.
    pub updated_at: u32,
    /// Status of the job. [`next_of_job`](super::next_of_job) has the allowed changes.
    #[serde(serialize_with = "word", deserialize_with = "read_word")]
    pub status: Status,
}

/// Serializes an environment as an object.
pub(super) fn environment<S: Serializer>(env: &EnvVars, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(env)
}

/// Reads an environment from an object.
fn read_environment<'de, D: Deserializer<'de>>(from: D) -> Result<EnvVars, D::Error> {
    BTreeMap::deserialize(from).map(EnvVars::from)
}

/// Returns the fault of an environment that is too large.
pub(super) fn env_fault(env: &EnvVars) -> Option<FieldFault> {
    EnvTooLarge::check(env).err().map(FieldFault::Environment)
}

impl ContextJob {
    /// Returns a job without an environment and prerequisites.
    #[must_use]
    pub fn new(
        context_id: ContextId,
        key: JobKey,
        script_type: ScriptType,
        script: impl Into<String>,
        now: u32,
    ) -> Self {
        Self {
            id: key.id,
            caller_id: key.caller,
            context_id,
            script: script.into(),
            script_type: Some(script_type),
            timeout: default_timeout(),
            retries: 0,
            env_vars: EnvVars::default(),
            result: BTreeMap::new(),
            error: None,
            prerequisites: Vec::new(),
            dependends: Vec::new(),
            created_at: now,
            updated_at: now,
            status: Status::Dispatched,
        }
    }

    /// Returns the job's key without the prefix of a layout.
    #[must_use]
    pub const fn key(&self) -> JobKey {
        JobKey {
            caller: self.caller_id,
            id: self.id,
        }
    }

    /// Returns the keys of the jobs that must finish first.
    pub fn dependencies(&self) -> impl Iterator<Item = JobKey> {
        let caller = self.caller_id;
        self.dependends
            .iter()
            .map(move |id| JobKey { caller, id: *id })
    }

    /// Reads the fields of the hash. A timeout that is missing, 0 or no number becomes the default, and one that is
    /// too long becomes the longest. Retries that are no number become 0.
    ///
    /// # Errors
    /// The first field that cannot be read: a job must not run without its environment or prerequisites.
    pub fn from_fields(
        context: ContextId,
        key: JobKey,
        fields: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, RecordError> {
        Self::read(context, key, Fields::new(key, fields))
    }

    /// Reads a job in a message to `context`.
    pub(crate) fn from_json(
        context: ContextId,
        json: serde_json::Map<String, Value>,
    ) -> Result<Self, RecordError> {
        let mut fields = Fields::of_json("the job of a message", json);
        let id = fields.number(field::ID)?;
        let id = id.ok_or_else(|| fields.fault(field::ID, FieldFault::Missing))?;
        let caller = fields.number(field::CALLER_ID)?;
        let caller = caller.ok_or_else(|| fields.fault(field::CALLER_ID, FieldFault::Missing))?;
        Self::read(context, JobKey::new(caller, id), fields)
    }

    fn read(context_id: ContextId, key: JobKey, mut fields: Fields) -> Result<Self, RecordError> {
        let longest = u32::try_from(limits::MAX_TIMEOUT).unwrap_or(u32::MAX);
        let timeout = fields.number(field::TIMEOUT).ok().flatten();
        let retries = fields.number(field::RETRIES).ok().flatten();
        let retries = retries.unwrap_or_default().min(limits::MAX_RETRIES);
        let script_type = fields.text(field::SCRIPT_TYPE)?;
        let script_type = script_type.map(|text| text.to_lowercase());
        let job = Self {
            id: key.id,
            caller_id: key.caller,
            context_id,
            script: fields.text(field::SCRIPT)?.unwrap_or_default(),
            script_type: script_type
                .map(|text| text.parse::<ScriptType>())
                .transpose()
                .map_err(|error| {
                    let (shown, wanted) = (String::new(), error.to_string());
                    fields.fault(field::SCRIPT_TYPE, FieldFault::Word { shown, wanted })
                })?,
            timeout: timeout
                .filter(|seconds| *seconds > 0)
                .map_or_else(default_timeout, |seconds| seconds.min(longest)),
            retries: u8::try_from(retries).unwrap_or(u8::MAX),
            env_vars: fields.map(field::ENV_VARS)?.into(),
            result: fields.result(field::RESULT)?,
            error: fields.text(field::ERROR)?,
            prerequisites: fields.list(field::PREREQUISITES, "array of texts")?,
            dependends: fields.list(field::DEPENDENDS, "array of jobs' numbers")?,
            created_at: fields.seconds(field::CREATED_AT),
            updated_at: fields.seconds(field::UPDATED_AT),
            status: fields.parsed(field::STATUS)?.unwrap_or(Status::Dispatched),
        };
        job.check()?;
        Ok(job)
    }

    /// The fields of the hash.
    #[must_use]
    pub fn to_fields(&self) -> Vec<(String, String)> {
        fields_of(self)
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// The first field that is over its limit.
    pub fn check(&self) -> Result<(), RecordError> {
        let longest = u32::try_from(limits::MAX_TIMEOUT).unwrap_or(u32::MAX);
        let most = limits::MAX_PREREQUISITES;
        let retries = u32::from(self.retries);
        let retries = (retries > limits::MAX_RETRIES).then(|| FieldFault::Number {
            shown: retries.to_string(),
            least: 0,
            most: limits::MAX_RETRIES,
        });
        let checks = [
            (
                field::SCRIPT,
                length_fault(self.script.len(), limits::MAX_SCRIPT),
            ),
            (field::TIMEOUT, seconds_fault(self.timeout, longest)),
            (field::RETRIES, retries),
            (field::ENV_VARS, env_fault(&self.env_vars)),
            (field::PREREQUISITES, count_fault(&self.prerequisites, most)),
            (field::DEPENDENDS, count_fault(&self.dependends, most)),
        ];
        first_fault(self.key(), checks)
    }
}

fn default_timeout() -> u32 {
    u32::try_from(limits::DEFAULT_TIMEOUT).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::context::tests::{bytes, pairs};

    const KEY: JobKey = JobKey::new(12, 2001);

    fn read(record: &[(&str, &str)]) -> Result<ContextJob, RecordError> {
        ContextJob::from_fields(ContextId::new(7).unwrap(), KEY, bytes(record))
    }

    #[test]
    fn the_fields_of_the_catalogue() {
        let record = [
            ("id", "2001"),
            ("caller_id", "12"),
            ("context_id", "7"),
            ("script", "print(1)"),
            ("script_type", "python"),
            ("timeout", "60"),
            ("retries", "3"),
            ("env_vars", r#"{"A":"1"}"#),
            ("result", r#"{"sum":"3"}"#),
            ("prerequisites", r#"["job:12:1","approved"]"#),
            ("dependends", "[1,2]"),
            ("created_at", "1700000000"),
            ("updated_at", "1700000001"),
            ("status", "waiting_for_prerequisites"),
        ];
        let job = read(&record).unwrap();
        assert_eq!(job.status, Status::WaitingForPrerequisites);
        assert_eq!(job.dependencies().last(), Some(JobKey::new(12, 2)));
        assert_eq!(job.to_fields(), pairs(&record));
    }

    #[test]
    fn a_record_with_little_in_it_has_defaults() {
        let job = read(&[("script", "1"), ("context_id", "8"), ("id", "5")]).unwrap();
        assert_eq!(
            (job.key(), job.context_id.get()),
            (KEY, 7),
            "the place decides"
        );
        assert_eq!(job.status, Status::Dispatched);
        assert_eq!((job.timeout, job.retries), (1800, 0));
        assert_eq!(job.script_type, None);
        for (timeout, seconds) in [("0", 1800), ("soon", 1800), ("999999999", 604_800)] {
            assert_eq!(read(&[("timeout", timeout)]).unwrap().timeout, seconds);
        }
        assert_eq!(read(&[("retries", "200")]).unwrap().retries, 100);
    }

    #[test]
    fn a_plain_result_is_an_item() {
        let result = |value| read(&[("result", value)]).unwrap().result;
        for value in ["42", "done", "[1]", "null", "{broken"] {
            let expected = BTreeMap::from([("result".to_owned(), value.to_owned())]);
            assert_eq!(result(value), expected);
        }
        let mixed = result(r#"{"a":"x","b":2,"c":{"d":1},"e":null}"#);
        let mixed: Vec<_> = mixed
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(mixed, [("a", "x"), ("b", "2"), ("c", r#"{"d":1}"#)]);
        assert!(result("").is_empty());
    }

    #[test]
    fn what_no_default_is_safe_for_is_refused_by_name() {
        for (field, value) in [
            ("env_vars", "A=1"),
            ("env_vars", "[]"),
            ("prerequisites", "job:12:1"),
            ("prerequisites", "[1]"),
            ("dependends", r#"["1"]"#),
            ("dependends", "[4294967296]"),
            ("status", "running"),
            ("script_type", "a b"),
        ] {
            let error = read(&[(field, value)]).unwrap_err();
            assert_eq!((error.object.as_str(), error.field), ("job:12:2001", field));
            assert!(
                !error.to_string().contains("A=1"),
                "no value of an environment"
            );
        }
        let fields = [("script".to_owned(), vec![0xff])];
        let error = ContextJob::from_fields(ContextId::new(7).unwrap(), KEY, fields);
        assert_eq!(error.unwrap_err().fault, FieldFault::NotText);
    }

    #[test]
    fn limits_are_named() {
        let python = "python".parse().unwrap();
        let job = ContextJob::new(ContextId::new(7).unwrap(), KEY, python, "1", 5);
        assert_eq!(job.check(), Ok(()));
        let faults = [
            ContextJob {
                timeout: 0,
                ..job.clone()
            },
            ContextJob {
                timeout: 604_801,
                ..job.clone()
            },
            ContextJob {
                retries: 101,
                ..job.clone()
            },
            ContextJob {
                dependends: vec![1; 1001],
                ..job.clone()
            },
            ContextJob {
                script: "x".repeat(limits::MAX_SCRIPT + 1),
                ..job
            },
        ];
        let named = faults.map(|job| job.check().unwrap_err().field);
        assert_eq!(
            named,
            ["timeout", "timeout", "retries", "dependends", "script"]
        );
    }

    proptest! {
        #[test]
        fn what_is_written_comes_back(
            script in "\\PC{0,40}",
            env in proptest::collection::btree_map("[A-Z]{1,4}", "\\PC{0,8}", 0..4),
            result in proptest::collection::btree_map("\\PC{0,6}", "\\PC{0,8}", 0..4),
            prerequisites in proptest::collection::vec("\\PC{0,12}", 0..4),
            dependends in proptest::collection::vec(any::<u32>(), 0..4),
            numbers: (u32, u32, u32, u32),
            retries in 0..=100_u8,
            timeout in 1..=604_800_u32,
            status in 0..5_usize,
        ) {
            let (id, caller, created_at, updated_at) = numbers;
            let python: ScriptType = "python".parse().unwrap();
            let key = JobKey::new(caller, id);
            let context = ContextId::new(7).unwrap();
            let job = ContextJob {
                env_vars: env.into(),
                result,
                prerequisites,
                dependends,
                retries,
                timeout,
                created_at,
                updated_at,
                status: Status::ALL[status],
                ..ContextJob::new(context, key, python, script, 0)
            };
            let fields = job.to_fields().into_iter();
            let fields = fields.map(|(name, value)| (name, value.into_bytes()));
            prop_assert_eq!(ContextJob::from_fields(context, key, fields), Ok(job));
        }

        #[test]
        fn no_value_of_any_field_panics(
            field in "script|script_type|timeout|retries|env_vars|result|prerequisites|dependends|status|created_at",
            value in proptest::collection::vec(any::<u8>(), 0..30),
        ) {
            let read = ContextJob::from_fields(ContextId::new(7).unwrap(), KEY, [(field, value)]);
            if let Ok(job) = read {
                prop_assert_eq!(job.check(), Ok(()));
            }
        }
    }
}
