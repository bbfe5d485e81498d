//! Jobs as Hero's APIs have them. Fields of all generations are read; unknown ones are ignored.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork::JobRequest;
use meshwork_model::job::Job;
use meshwork_model::name::ScriptType;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::api::error::ApiError;
use meshwork_ops::params::parse;

/// Time for which a job is held that is created without being started: the longest delay.
const HELD_FOR: Duration = Duration::from_millis(meshwork_model::job::limits::MAX_DELAY_MS);

/// A new job.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct HeroJob {
    id: Option<String>,
    caller_id: Option<Value>,
    context_id: Option<Value>,
    #[serde(alias = "payload")]
    script: Option<String>,
    #[serde(alias = "executor")]
    script_type: Option<String>,
    group: Option<String>,
    instance: Option<Value>,
    priority: Option<String>,
    timeout: Option<f64>,
    retries: Option<u32>,
    concurrent: Option<bool>,
    log_path: Option<String>,
    env_vars: BTreeMap<String, String>,
    #[serde(alias = "dependencies", deserialize_with = "some_or_none")]
    prerequisites: Vec<String>,
    /// Runner of the third generation, whose jobs are queued when they are created.
    pub(super) runner_id: Option<Value>,
}

/// Reads a list that may be null.
fn some_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A number or a text.
fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::String(text)) => text,
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

impl HeroJob {
    /// Gives it the type of OSIS if it has none.
    pub(super) fn or_osis(mut self) -> Self {
        self.script_type
            .get_or_insert_with(|| ScriptType::OSIS.to_owned());
        self
    }

    /// Returns the time that a caller waits for the job: its timeout and a little more.
    pub(super) fn patience(&self) -> Duration {
        let seconds = self.timeout.unwrap_or(300.0).clamp(0.0, 300.0);
        Duration::from_secs_f64(seconds) + Duration::from_secs(5)
    }

    /// Returns the job; with `held` it waits until it is started.
    pub(super) fn request(self, held: bool) -> Result<JobRequest, ApiError> {
        let script = self
            .script
            .ok_or_else(|| ApiError::invalid("script: give one"))?;
        // Rhai is the language of OSIS, as which no queue is named.
        let kind = self.script_type.unwrap_or_default().to_ascii_lowercase();
        let kind = match kind.as_str() {
            // Jobs of the third generation name a runner instead of a type.
            "" if self.runner_id.is_some() => ScriptType::OSIS,
            "" => {
                let message = "script_type: give one: osis, sal, v or python";
                return Err(ApiError::invalid(message));
            }
            "rhai" => ScriptType::OSIS,
            kind => kind,
        };
        let mut request = JobRequest::new(parse("script_type", kind)?, script);
        if let Some(id) = self.id.filter(|id| !id.is_empty()) {
            request = request.id(parse("id", &id)?);
        }
        let (caller, context) = (text(self.caller_id), text(self.context_id));
        if !caller.is_empty() || !context.is_empty() {
            request = request.caller(caller, context);
        }
        if let Some(group) = self.group {
            request = request.group(parse("group", &group)?);
            let instance = text(self.instance);
            if !instance.is_empty() {
                request = request.instance(parse("instance", &instance)?);
            }
        }
        if let Some(priority) = self.priority {
            request = request.priority(parse("priority", &priority)?);
        }
        if let Some(timeout) = self.timeout.filter(|seconds| *seconds > 0.0) {
            let timeout = Duration::try_from_secs_f64(timeout);
            request =
                request.timeout(timeout.map_err(|_| ApiError::invalid("timeout: give seconds"))?);
        }
        if let Some(retries) = self.retries {
            request = request.retries(retries);
        }
        if let Some(concurrent) = self.concurrent {
            request = request.concurrent(concurrent);
        }
        if let Some(path) = self.log_path.filter(|path| !path.is_empty()) {
            request = request.log_path(path);
        }
        if !self.env_vars.is_empty() {
            request = request.env(self.env_vars);
        }
        for id in &self.prerequisites {
            request = request.depends_on(parse("prerequisites", id)?);
        }
        Ok(if held {
            request.delay(HELD_FOR)
        } else {
            request
        })
    }
}

/// A stored job, with the fields of the second and third generation.
#[derive(Debug, Serialize)]
pub(super) struct StoredJob {
    id: String,
    caller_id: String,
    context_id: String,
    payload: String,
    runner: String,
    executor: String,
    timeout: u64,
    env_vars: BTreeMap<String, String>,
    created_at: String,
    updated_at: String,
    status: String,
}

impl From<&Job> for StoredJob {
    fn from(job: &Job) -> Self {
        let shown = job.env_vars.shown();
        Self {
            id: job.id.clone(),
            caller_id: job.caller_id.clone(),
            context_id: job.context_id.clone(),
            payload: String::from_utf8_lossy(&job.script).into_owned(),
            runner: job.worker.clone().unwrap_or_default(),
            executor: job.script_type.clone().unwrap_or_default(),
            timeout: job.timeout,
            env_vars: shown
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            created_at: job.created_at.clone(),
            updated_at: job.updated_at.clone(),
            status: meshwork::view::status_of(job).to_owned(),
        }
    }
}
