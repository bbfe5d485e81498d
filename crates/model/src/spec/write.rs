//! A new job as its JSON.

use serde_json::{Map, Value, json};

use super::InvalidSpec;
use crate::job::{NewJob, OnFailure, Tag, Until, When};
use crate::name::JobId;
use crate::sandbox::{Limit, SandboxSettings};
use crate::time;

impl super::JobSpec {
    /// Writes a job as the fields of a spec. Without its trace, and its digest.
    ///
    /// # Errors
    /// Its input is no text.
    pub fn written(job: &NewJob) -> Result<Map<String, Value>, InvalidSpec> {
        let mut fields = Map::new();
        let mut add = |name: &str, value: Value| {
            if !value.is_null() {
                fields.insert(name.to_owned(), value);
            }
        };
        add("id", json!(job.id.as_str()));
        add("type", json!(job.route.script_type.as_str()));
        add("script", json!(job.script));
        add(
            "group",
            json!(job.route.group.as_ref().map(AsRef::<str>::as_ref)),
        );
        add(
            "instance",
            json!(job.route.instance.as_ref().map(AsRef::<str>::as_ref)),
        );
        add("priority", json!(job.route.priority.as_str()));
        add("fallback", json!(job.fallback.map(|it| it.as_str())));
        if let Some(input) = &job.input {
            let text = std::str::from_utf8(input);
            let fault = |_| InvalidSpec("input: it is no text".to_owned());
            add("input", json!(text.map_err(fault)?));
        }
        if !job.env_vars.is_empty() {
            add("env", json!(*job.env_vars));
        }
        add("timeout", json!(job.timeout));
        add("retries", json!(job.retries));
        add("backoff", span(job.backoff_ms));
        add("start_timeout", span(job.start_timeout_ms));
        add("sandbox", sandbox(&job.sandbox));
        let tags: Vec<_> = job.tags.iter().map(Tag::as_str).collect();
        add("tags", json!(tags));
        let awaited: Vec<_> = job.depends_on.iter().map(|id| awaited(job, id)).collect();
        add("depends_on", json!(awaited));
        if job.on_failure != OnFailure::Fail {
            add("on_failure", json!(job.on_failure.as_str()));
        }
        add("prerequisite_timeout", json!(job.prerequisite_timeout));
        add("exclusive", json!(!job.concurrent));
        add("caller", json!(job.caller_id));
        add("caller_context", json!(job.context_id));
        add("log_path", json!(job.log_path));
        let batch = job.batch.as_ref();
        add("batch", json!(batch.map(|it| it.batch.to_string())));
        match job.when {
            Some(When::At(ms)) => add("at", time::iso(ms).into()),
            Some(When::In(ms)) => add("delay", span(Some(ms))),
            None => {}
        }
        add("key", json!(job.key));
        if let Some(unique) = &job.unique {
            add("unique", json!(unique.name));
            match unique.until {
                Until::For(ms) => add("unique_for", span(Some(ms))),
                Until::Started => add("unique_until", "started".into()),
                Until::Done => {}
            }
            add("on_duplicate", json!(unique.policy.as_str()));
        }
        Ok(fields)
    }
}

/// Returns a prerequisite, with the name of its result if it has one.
fn awaited(job: &NewJob, id: &JobId) -> String {
    let named = job.input_names.iter().find(|(_, of)| *of == id);
    match named {
        Some((name, id)) => format!("{name}={id}"),
        None => id.to_string(),
    }
}

fn span(ms: Option<u64>) -> Value {
    json!(ms.map(|ms| format!("{ms}ms")))
}

fn sandbox(settings: &SandboxSettings) -> Value {
    let mut fields = Map::new();
    if let Some(profile) = settings.profile {
        fields.insert("profile".to_owned(), profile.as_str().into());
    }
    for (limit, value) in settings.limits.iter() {
        let value = match limit {
            Limit::Cpu => span(Some(value)),
            _ => value.into(),
        };
        fields.insert(limit.as_str().to_owned(), value);
    }
    match fields.is_empty() {
        true => Value::Null,
        false => fields.into(),
    }
}
