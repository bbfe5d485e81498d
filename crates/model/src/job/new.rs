//! What a client asks for, checked before anything is written.

use super::wish::{self, Unique, When};
use super::{Membership, field, limits, log_path_fault};
use crate::name::JobId;
use crate::route::{Fallback, Priority, Route};
use crate::secret::EnvVars;
use crate::trace::TraceContext;

/// A job to be enqueued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Its id; enqueuing the same id again changes nothing.
    pub id: JobId,
    /// Where it goes.
    pub route: Route,
    /// What to execute: script text, or whatever a handler in Rust takes.
    pub script: String,
    /// Bytes for the script (at most [`limits::MAX_INPUT`]).
    pub input: Option<Vec<u8>>,
    /// Who asks.
    pub caller_id: String,
    /// In which context.
    pub context_id: String,
    /// Seconds that one run may take, from 1 to [`limits::MAX_TIMEOUT`].
    pub timeout: u64,
    /// Runs after the first, should it fail: `retries` N means at most N + 1 runs.
    pub retries: u32,
    /// Whether it may run beside others on its worker.
    pub concurrent: bool,
    /// Environment of the script.
    pub env_vars: EnvVars,
    /// A file on the worker's host that its lines are appended to, inside a folder that the worker allows;
    /// a relative path is relative to the first of these.
    pub log_path: Option<String>,
    /// Whether the result is to be pushed to the reply list, for a client that blocks on it.
    pub reply: bool,
    /// Jobs that must finish before it runs (Hero: `prerequisites`, `dependencies`); they must be there.
    pub depends_on: Vec<JobId>,
    /// What it means for this job if one of them does not finish.
    pub on_failure: OnFailure,
    /// Seconds that it waits for them, from 1 to [`limits::MAX_TIMEOUT`]: then it ends in error. Default: no bound.
    pub prerequisite_timeout: Option<u64>,
    /// Where it goes if the worker it is for is not there; it waits for that worker otherwise.
    pub fallback: Option<Fallback>,
    /// The first pause before a retry, in milliseconds; the worker's own rule otherwise.
    pub backoff_ms: Option<u64>,
    /// When it is to run; at once, if it does not say.
    pub when: Option<When>,
    /// Whose turn it takes in a fair queue, and for whose limits it counts: a tenant, say.
    pub key: Option<String>,
    /// That there is to be only one of it.
    pub unique: Option<Unique>,
    /// The trace that it belongs to, and the span that asks for it.
    pub trace: Option<TraceContext>,
    /// The batch that it belongs to.
    pub batch: Option<Membership>,
}

/// What the failure of a prerequisite means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The job ends in error at once.
    #[default]
    Fail,
    /// The job runs all the same.
    Continue,
}

impl OnFailure {
    /// The word in the record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Continue => "continue",
        }
    }
}

/// A word that says nothing of failures.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not known: fail or continue")]
pub struct UnknownOnFailure(String);

impl std::str::FromStr for OnFailure {
    type Err = UnknownOnFailure;

    fn from_str(text: &str) -> Result<Self, UnknownOnFailure> {
        [Self::Fail, Self::Continue]
            .into_iter()
            .find(|word| word.as_str() == text)
            .ok_or_else(|| UnknownOnFailure(text.to_owned()))
    }
}

/// Why a job was refused; nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// No script.
    #[error("job {id}: the script is empty")]
    EmptyScript {
        /// The job.
        id: JobId,
    },
    /// A part of the job is over its limit.
    #[error("job {id}: the {what} takes {size} bytes, the limit is {limit}")]
    TooLarge {
        /// The job.
        id: JobId,
        /// Which part.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The most allowed.
        limit: usize,
    },
    /// A NUL byte, which neither an environment nor a language takes.
    #[error("job {id}: the {what} contains a NUL byte")]
    Nul {
        /// The job.
        id: JobId,
        /// Which part.
        what: &'static str,
    },
    /// A path that no log file can have.
    #[error("job {id}: the log_path {path:?} is not possible: {fault}")]
    LogPath {
        /// The job.
        id: JobId,
        /// The path.
        path: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// A timeout that cannot be meant.
    #[error("job {id}: a timeout of {seconds} s is not possible: give 1 to {max}", max = limits::MAX_TIMEOUT)]
    Timeout {
        /// The job.
        id: JobId,
        /// What was asked for.
        seconds: u64,
    },
    /// Too many retries.
    #[error("job {id}: {retries} retries are too many: at most {max}", max = limits::MAX_RETRIES)]
    Retries {
        /// The job.
        id: JobId,
        /// What was asked for.
        retries: u32,
    },
    /// Too many prerequisites.
    #[error("job {id}: {count} prerequisites are too many: at most {max}", max = limits::MAX_PREREQUISITES)]
    Prerequisites {
        /// The job.
        id: JobId,
        /// How many were given.
        count: usize,
    },
    /// It would wait for itself.
    #[error("job {id} cannot be its own prerequisite")]
    OwnPrerequisite {
        /// The job.
        id: JobId,
    },
    /// A time, a key or a unique name that cannot be.
    #[error("job {id}: {fault}")]
    Wish {
        /// The job.
        id: JobId,
        /// What is wrong.
        fault: String,
    },
    /// A fallback without a worker to fall back from.
    #[error("job {id}: a fallback is for a job that is sent to one instance; name the instance")]
    Fallback {
        /// The job.
        id: JobId,
    },
    /// Too long a pause.
    #[error("job {id}: a pause of {ms} ms before a retry is too long: at most {max}", max = limits::MAX_BACKOFF_MS)]
    Backoff {
        /// The job.
        id: JobId,
        /// What was asked for.
        ms: u64,
    },
    /// A name that no environment can hold.
    #[error("job {id}: {name:?} cannot be the name of an environment variable")]
    EnvName {
        /// The job.
        id: JobId,
        /// The name.
        name: String,
    },
    /// A value that no environment can hold.
    #[error("job {id}: the value of environment variable {name} contains a NUL byte")]
    EnvValue {
        /// The job.
        id: JobId,
        /// The variable.
        name: String,
    },
}

impl NewJob {
    /// A job with the defaults: no input, no caller, [`limits::DEFAULT_TIMEOUT`], no retry.
    #[must_use]
    pub fn new(id: JobId, route: Route, script: impl Into<String>) -> Self {
        Self {
            id,
            route,
            script: script.into(),
            input: None,
            caller_id: String::new(),
            context_id: String::new(),
            timeout: limits::DEFAULT_TIMEOUT,
            retries: 0,
            concurrent: true,
            env_vars: EnvVars::default(),
            log_path: None,
            reply: false,
            depends_on: Vec::new(),
            on_failure: OnFailure::Fail,
            prerequisite_timeout: None,
            fallback: None,
            backoff_ms: None,
            when: None,
            key: None,
            unique: None,
            trace: None,
            batch: None,
        }
    }

    /// Checks the job against [`limits`].
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), Invalid> {
        let id = || self.id.clone();
        if self.script.trim().is_empty() {
            return Err(Invalid::EmptyScript { id: id() });
        }
        let env = self
            .env_vars
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        let input = self.input.as_ref().map_or(0, Vec::len);
        for (what, size, limit) in [
            ("script", self.script.len(), limits::MAX_SCRIPT),
            ("input", input, limits::MAX_INPUT),
            ("environment", env, limits::MAX_ENV),
            ("caller's id", self.caller_id.len(), limits::MAX_CALLER),
            ("context's id", self.context_id.len(), limits::MAX_CALLER),
        ] {
            if size > limit {
                return Err(Invalid::TooLarge {
                    id: id(),
                    what,
                    size,
                    limit,
                });
            }
        }
        self.check_text()?;
        for seconds in [Some(self.timeout), self.prerequisite_timeout] {
            if let Some(seconds) = seconds.filter(|s| !(1..=limits::MAX_TIMEOUT).contains(s)) {
                return Err(Invalid::Timeout { id: id(), seconds });
            }
        }
        if self.retries > limits::MAX_RETRIES {
            return Err(Invalid::Retries {
                id: id(),
                retries: self.retries,
            });
        }
        self.check_order()?;
        for (name, value) in &self.env_vars {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(Invalid::EnvName {
                    id: id(),
                    name: name.clone(),
                });
            }
            if value.contains('\0') {
                return Err(Invalid::EnvValue {
                    id: id(),
                    name: name.clone(),
                });
            }
        }
        Ok(())
    }

    /// Checks what has to fit into an environment or a path.
    fn check_text(&self) -> Result<(), Invalid> {
        let id = || self.id.clone();
        for (what, text) in [
            ("script", &self.script),
            ("caller's id", &self.caller_id),
            ("context's id", &self.context_id),
        ] {
            if text.contains('\0') {
                return Err(Invalid::Nul { id: id(), what });
            }
        }
        if let Some(path) = &self.log_path
            && let Some(fault) = log_path_fault(path)
        {
            let path = path.clone();
            return Err(Invalid::LogPath {
                id: id(),
                path,
                fault,
            });
        }
        Ok(())
    }

    /// Checks what decides when and where it runs.
    fn check_order(&self) -> Result<(), Invalid> {
        let id = || self.id.clone();
        let count = self.depends_on.len();
        if count > limits::MAX_PREREQUISITES {
            return Err(Invalid::Prerequisites { id: id(), count });
        }
        if self.depends_on.contains(&self.id) {
            return Err(Invalid::OwnPrerequisite { id: id() });
        }
        if self.fallback.is_some() && self.route.instance.is_none() {
            return Err(Invalid::Fallback { id: id() });
        }
        let wish = wish::fault(self.when, self.key.as_deref(), self.unique.as_ref());
        if let Some(fault) = wish {
            return Err(Invalid::Wish { id: id(), fault });
        }
        match self.backoff_ms {
            Some(ms) if ms > limits::MAX_BACKOFF_MS => Err(Invalid::Backoff { id: id(), ms }),
            _ => Ok(()),
        }
    }

    /// What [`Self::depends_on`] names, each once.
    #[must_use]
    pub fn prerequisites(&self) -> Vec<&JobId> {
        let mut seen = std::collections::HashSet::new();
        self.depends_on
            .iter()
            .filter(|id| seen.insert(id.as_str()))
            .collect()
    }

    /// The record as it is first written, without status and times, which are the script's to set.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut fields = vec![
            (field::ID, self.id.as_str().into()),
            (field::SCRIPT_TYPE, self.route.script_type.as_str().into()),
        ];
        fields.extend(field::STORED.into_iter().skip(5).zip(self.values()));
        fields.append(&mut self.options());
        fields
    }

    /// The values of the last fields of [`field::STORED`], which each job has.
    #[must_use]
    pub fn values(&self) -> [Vec<u8>; 8] {
        let worker = self.route.instance.as_ref();
        [
            self.caller_id.clone().into(),
            worker.map_or("", |instance| instance.as_str()).into(),
            self.context_id.clone().into(),
            self.script.clone().into(),
            self.timeout.to_string().into(),
            self.retries.to_string().into(),
            self.concurrent.to_string().into(),
            u8::from(self.reply).to_string().into(),
        ]
    }

    /// What only some jobs say.
    #[must_use]
    pub fn options(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut fields = Vec::new();
        if !self.env_vars.is_empty() {
            let json: serde_json::Map<_, _> = self
                .env_vars
                .iter()
                .map(|(k, v)| (k.clone(), v.as_str().into()))
                .collect();
            fields.push((
                field::ENV_VARS,
                serde_json::Value::from(json).to_string().into(),
            ));
        }
        if !self.depends_on.is_empty() {
            let ids: Vec<_> = self
                .prerequisites()
                .into_iter()
                .map(JobId::as_str)
                .collect();
            let json = serde_json::Value::from(ids).to_string();
            fields.push((field::PREREQUISITES, json.clone().into()));
            fields.push((field::DEPENDENCIES, json.into()));
        }
        self.push_wishes(&mut fields);
        fields
    }

    /// What it wishes for, and what its worker is to know.
    fn push_wishes(&self, fields: &mut Vec<(&'static str, Vec<u8>)>) {
        if self.on_failure != OnFailure::Fail {
            fields.push((field::ON_FAILURE, self.on_failure.as_str().into()));
        }
        if self.route.priority != Priority::Normal {
            fields.push((field::PRIORITY, self.route.priority.as_str().into()));
        }
        if let Some(ms) = self.backoff_ms {
            fields.push((field::BACKOFF, ms.to_string().into()));
        }
        if let Some(key) = &self.key {
            fields.push((field::KEY, key.as_str().into()));
        }
        if let Some(unique) = &self.unique {
            let name = unique.field(self.route.script_type.as_str());
            fields.push((field::UNIQUE, name.into()));
        }
        if let Some(of) = &self.batch {
            fields.push((field::BATCH, of.batch.as_str().into()));
        }
        if let Some(trace) = &self.trace {
            fields.push((field::TRACEPARENT, trace.parent().into()));
            if let Some(state) = trace.state() {
                fields.push((field::TRACESTATE, state.into()));
            }
        }
        if let Some(group) = &self.route.group {
            fields.push((field::GROUP, group.as_str().into()));
        }
        if let Some(instance) = &self.route.instance {
            fields.push((field::INSTANCE, instance.as_str().into()));
        }
        if let Some(path) = &self.log_path {
            fields.push((field::LOG_PATH, path.as_str().into()));
        }
        if let Some(input) = &self.input {
            fields.push((field::INPUT, input.clone()));
        }
    }
}
