//! A job as a client submits it, checked before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use super::options::{self, Unique, When};
use super::prerequisite::{OnFailure, is_input_name};
use super::{EnvTooLarge, Invalid, Membership, Tag, field, limits, log_path_fault};
use crate::name::JobId;
use crate::route::{Fallback, Priority, Route};
use crate::sandbox::SandboxSettings;
use crate::secret::EnvVars;
use crate::spread::SpreadTicket;
use crate::trace::TraceContext;

/// A job to be enqueued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Id of the job. Enqueuing the same id again changes nothing.
    pub id: JobId,
    /// Route of the job.
    pub route: Route,
    /// Text of the script, or the text for a handler in Rust.
    pub script: String,
    /// Input of the script (at most [`limits::MAX_INPUT`] bytes).
    pub input: Option<Vec<u8>>,
    /// Id of the caller.
    pub caller_id: String,
    /// Id of the context.
    pub context_id: String,
    /// Timeout of one run in seconds, from 1 to [`limits::MAX_TIMEOUT`].
    pub timeout: u64,
    /// Number of retries: `retries` N means at most N + 1 runs.
    pub retries: u32,
    /// False if the job must run alone on its worker.
    pub concurrent: bool,
    /// Environment of the script.
    pub env_vars: EnvVars,
    /// A file on the worker's host to which output is appended, inside a folder that the worker allows. A relative
    /// path is relative to the first allowed folder.
    pub log_path: Option<String>,
    /// True if the result is pushed to the reply list, for a client that waits for it.
    pub reply: bool,
    /// Jobs that must finish first (Hero: `prerequisites`, `dependencies`). They must exist.
    pub depends_on: Vec<JobId>,
    /// Names of the results of some of [`Self::depends_on`], for the runs.
    pub input_names: BTreeMap<String, JobId>,
    /// Rule for the case that one of them fails.
    pub on_failure: OnFailure,
    /// Time that the job waits for them, in seconds, from 1 to [`limits::MAX_TIMEOUT`]; after that it fails. Default:
    /// no limit.
    pub prerequisite_timeout: Option<u64>,
    /// Queue to use if the target worker is not alive. Default: the job waits for that worker.
    pub fallback: Option<Fallback>,
    /// First backoff, in milliseconds. Default: the worker's.
    pub backoff_ms: Option<u64>,
    /// Time within which a worker has to begin the job, in milliseconds, from 1 to [`limits::MAX_DELAY_MS`]; after that it
    /// fails. It counts from the start time of a delayed job, else from its submission. Default: no limit.
    pub start_timeout_ms: Option<u64>,
    /// Start time of a delayed job. Default: at once.
    pub when: Option<When>,
    /// Concurrency key, for fair queues and limits: a tenant, for example.
    pub key: Option<String>,
    /// Requested sandbox: it can only narrow what the queue and the worker give. Default: nothing is requested.
    pub sandbox: SandboxSettings,
    /// Labels for lists, at most [`limits::MAX_TAGS`].
    pub tags: BTreeSet<Tag>,
    /// Unique name, which only one open job may have.
    pub unique: Option<Unique>,
    /// Trace of the job, and span of its submission.
    pub trace: Option<TraceContext>,
    /// Digest of the request that creates the job, by which a repeated request is recognized.
    pub request_digest: Option<String>,
    /// Batch of the job.
    pub batch: Option<Membership>,
    /// Its spread queue, if the job is in a part of one.
    pub spread: Option<SpreadTicket>,
}

impl NewJob {
    /// Returns a job with the defaults: no input, no caller, [`limits::DEFAULT_TIMEOUT`], no retry.
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
            input_names: BTreeMap::new(),
            on_failure: OnFailure::Fail,
            prerequisite_timeout: None,
            fallback: None,
            backoff_ms: None,
            start_timeout_ms: None,
            when: None,
            key: None,
            sandbox: SandboxSettings::default(),
            tags: BTreeSet::new(),
            unique: None,
            trace: None,
            request_digest: None,
            batch: None,
            spread: None,
        }
    }

    /// Checks the job against [`limits`].
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), Invalid> {
        let id = || self.id.clone();
        if self.script.trim().is_empty() {
            return Err(Invalid::EmptyScript { id: id() });
        }
        let input = self.input.as_ref().map_or(0, Vec::len);
        for (what, size, limit) in [
            ("script", self.script.len(), limits::MAX_SCRIPT),
            ("input", input, limits::MAX_INPUT),
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
        if let Err(source) = EnvTooLarge::check(&self.env_vars) {
            return Err(Invalid::EnvTooLarge { id: id(), source });
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
        if self.tags.len() > limits::MAX_TAGS {
            let count = self.tags.len();
            return Err(Invalid::Tags { id: id(), count });
        }
        if let Err(source) = self.sandbox.check() {
            return Err(Invalid::Sandbox { id: id(), source });
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

    /// Checks the parts that become environment variables or paths.
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

    /// Checks the options for the time and place of the run.
    fn check_order(&self) -> Result<(), Invalid> {
        let id = || self.id.clone();
        let count = self.depends_on.len();
        if count > limits::MAX_PREREQUISITES {
            return Err(Invalid::Prerequisites { id: id(), count });
        }
        if self.depends_on.contains(&self.id) {
            return Err(Invalid::OwnPrerequisite { id: id() });
        }
        self.check_names()?;
        if self.fallback.is_some() && self.route.instance.is_none() {
            return Err(Invalid::Fallback { id: id() });
        }
        let fault = options::fault(self.when, self.key.as_deref(), self.unique.as_ref());
        if let Some(fault) = fault.or_else(|| options::start_fault(self.start_timeout_ms)) {
            return Err(Invalid::Option { id: id(), fault });
        }
        match self.backoff_ms {
            Some(ms) if ms > limits::MAX_BACKOFF_MS => Err(Invalid::Backoff { id: id(), ms }),
            _ => Ok(()),
        }
    }

    /// Checks the names of results.
    fn check_names(&self) -> Result<(), Invalid> {
        for (name, of) in &self.input_names {
            let id = self.id.clone();
            if !is_input_name(name) {
                let name = name.clone();
                return Err(Invalid::InputName { id, name });
            }
            if !self.depends_on.contains(of) {
                let (name, of) = (name.clone(), of.clone());
                return Err(Invalid::InputOf { id, name, of });
            }
        }
        Ok(())
    }

    /// Returns the ids in [`Self::depends_on`], each once.
    #[must_use]
    pub fn prerequisites(&self) -> Vec<&JobId> {
        let mut seen = std::collections::HashSet::new();
        self.depends_on
            .iter()
            .filter(|id| seen.insert(id.as_str()))
            .collect()
    }

    /// Returns the fields that only some jobs have.
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
        if !self.input_names.is_empty() {
            let names = self.input_names.iter();
            let names: serde_json::Map<_, _> = names
                .map(|(name, id)| (name.clone(), id.as_str().into()))
                .collect();
            let json = serde_json::Value::from(names).to_string();
            fields.push((field::INPUT_NAMES, json.into()));
        }
        self.push_options(&mut fields);
        fields
    }

    /// Adds the fields of options for the scripts and the worker.
    fn push_options(&self, fields: &mut Vec<(&'static str, Vec<u8>)>) {
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
        if !self.sandbox.is_empty() {
            fields.push((field::SANDBOX, self.sandbox.to_string().into()));
        }
        if !self.tags.is_empty() {
            let tags: Vec<_> = self.tags.iter().map(Tag::as_str).collect();
            fields.push((field::TAGS, tags.join(" ").into()));
        }
        if let Some(unique) = &self.unique {
            let name = unique.field(self.route.script_type.as_str());
            fields.push((field::UNIQUE, name.into()));
        }
        if let Some(of) = &self.batch {
            fields.push((field::BATCH, of.batch.as_str().into()));
        }
        if let Some(digest) = &self.request_digest {
            fields.push((field::REQUEST, digest.as_str().into()));
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
