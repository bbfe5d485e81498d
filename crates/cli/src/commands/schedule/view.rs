//! Printed form of a schedule, the same for all commands.

use std::collections::BTreeMap;

use meshwork::Scheduled;
use meshwork::view::ScheduleView;
use meshwork_model::job::{NewJob, Tag, Unique, Until};
use meshwork_model::time::duration;
use serde::Serialize;

use crate::out::job_view::line;
use crate::out::{Out, OutError};

/// The schedule's job. Secrets of its environment are masked.
#[derive(Debug, Serialize)]
pub(super) struct JobView<'a> {
    group: Option<&'a str>,
    instance: Option<&'a str>,
    priority: &'a str,
    script: &'a str,
    input_bytes: Option<usize>,
    caller: &'a str,
    caller_context: &'a str,
    timeout: u64,
    start_timeout_ms: Option<u64>,
    retries: u32,
    concurrent: bool,
    key: Option<&'a str>,
    tags: Vec<&'a str>,
    unique: Option<UniqueView<'a>>,
    env: BTreeMap<&'a str, &'a str>,
    log_path: Option<&'a str>,
}

/// Unique name of the jobs.
#[derive(Debug, Serialize)]
struct UniqueView<'a> {
    name: &'a str,
    /// `done`, `started`, or a time as `600000 ms`.
    until: String,
    /// The same for people, with a time as `10 min`.
    #[serde(skip)]
    until_text: String,
    on_duplicate: &'a str,
}

impl<'a> From<&'a Unique> for UniqueView<'a> {
    fn from(unique: &'a Unique) -> Self {
        Self {
            name: &unique.name,
            until: until(unique.until, |ms| format!("{ms} ms")),
            until_text: until(unique.until, duration),
            on_duplicate: unique.policy.as_str(),
        }
    }
}

/// Returns the time until which a name is taken, as text.
fn until(until: Until, time: fn(u64) -> String) -> String {
    match until {
        Until::Done => "done".to_owned(),
        Until::Started => "started".to_owned(),
        Until::For(ms) => time(ms),
    }
}

/// Returns the state in a word or two.
pub(super) fn state(view: &ScheduleView) -> &str {
    match &view.trouble {
        _ if view.paused => "paused",
        Some(trouble) => trouble,
        None if view.next_at.is_none() => "over",
        None => "",
    }
}

/// Prints a schedule for people, a line per field that is set.
pub(super) fn describe(
    view: &ScheduleView,
    there: &Scheduled,
    out: &mut Out,
) -> Result<(), OutError> {
    let local = there.schedule.as_ref().ok().zip(there.next);
    let local = local.map(|(schedule, next)| schedule.timing.zone.show(next));
    let (runs, skipped) = (view.runs.to_string(), view.skipped.to_string());
    for (name, value) in [
        ("name", Some(&view.name)),
        ("state", Some(&state(view).to_owned())),
        ("rhythm", view.rhythm.as_ref()),
        ("zone", view.zone.as_ref()),
        ("start", view.start_at.as_ref()),
        ("end", view.end_at.as_ref()),
        ("catch up", view.catch_up.as_ref()),
        ("overlap", view.overlap.as_ref()),
        ("next", local.as_ref()),
        ("last job", view.last_job.as_ref()),
        ("runs", Some(&runs)),
        ("skipped", Some(&skipped)),
        ("refused", refused(there).as_ref()),
        ("type", view.script_type.as_ref()),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            line(name, value, out)?;
        }
    }
    if let Ok(schedule) = &there.schedule {
        JobView::from(schedule.template()).describe(out)?;
    }
    line("created", &view.created_at, out)?;
    line("updated", &view.updated_at, out)
}

/// Returns the number of refused slots, with the reason of the last one; `None` without any.
fn refused(there: &Scheduled) -> Option<String> {
    let (count, refusal) = (there.refused, there.refusal.as_deref()?);
    let why = match (there.refused_by(), refusal.strip_prefix("large ")) {
        (Some(id), _) => format!("job {id} has the unique name"),
        (None, Some(bytes)) => format!("the payload of {bytes} bytes is too large for the queue"),
        (None, None) => refusal.to_owned(),
    };
    Some(format!("{count}, the last one since {why}"))
}

impl<'a> From<&'a NewJob> for JobView<'a> {
    fn from(job: &'a NewJob) -> Self {
        Self {
            group: job.route.group.as_ref().map(AsRef::as_ref),
            instance: job.route.instance.as_ref().map(AsRef::as_ref),
            priority: job.route.priority.as_str(),
            script: &job.script,
            input_bytes: job.input.as_ref().map(Vec::len),
            caller: &job.caller_id,
            caller_context: &job.context_id,
            timeout: job.timeout,
            start_timeout_ms: job.start_timeout_ms,
            retries: job.retries,
            concurrent: job.concurrent,
            key: job.key.as_deref(),
            tags: job.tags.iter().map(Tag::as_str).collect(),
            unique: job.unique.as_ref().map(UniqueView::from),
            env: job.env_vars.shown().collect(),
            log_path: job.log_path.as_deref(),
        }
    }
}

impl JobView<'_> {
    fn describe(&self, out: &mut Out) -> Result<(), OutError> {
        let env: Vec<_> = self
            .env
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let (input, timeout) = (
            self.input_bytes.map(|bytes| format!("{bytes} bytes")),
            duration(self.timeout.saturating_mul(1000)),
        );
        let start = self.start_timeout_ms;
        let start = start.map_or_else(String::new, duration);
        let unique = self.unique.as_ref().map(|it| {
            let (name, until, policy) = (it.name, &it.until_text, it.on_duplicate);
            format!("{name}, until {until}, on duplicate {policy}")
        });
        for (name, value) in [
            ("group", self.group.unwrap_or_default()),
            ("instance", self.instance.unwrap_or_default()),
            ("priority", self.priority),
            ("exclusive", if self.concurrent { "" } else { "yes" }),
            ("key", self.key.unwrap_or_default()),
            ("tags", &self.tags.join(", ")),
            ("unique", unique.as_deref().unwrap_or_default()),
            ("input", input.as_deref().unwrap_or_default()),
            ("caller", self.caller),
            ("context id", self.caller_context),
            ("environment", &env.join(", ")),
            ("timeout", &timeout),
            ("start within", &start),
            ("retries", &self.retries.to_string()),
            ("log file", self.log_path.unwrap_or_default()),
        ] {
            if !value.is_empty() {
                line(name, value, out)?;
            }
        }
        Ok(())
    }
}
