//! Printed form of a schedule, the same for all commands.

use meshwork::view::{ScheduleJobView, ScheduleView, ScheduledJobView};
use meshwork_model::time::duration;

use crate::out::job_view::line;
use crate::out::{Out, OutError};

/// Returns the state in a word or two.
pub(super) fn state(view: &ScheduleView) -> &str {
    match &view.trouble {
        _ if view.paused => "paused",
        Some(trouble) => trouble,
        None if view.next_at.is_none() => "over",
        None => "",
    }
}

/// Returns the next slot in the time zone of the schedule.
pub(super) fn next(view: &ScheduleView) -> Option<&String> {
    view.upcoming.first().filter(|_| view.next_at.is_some())
}

/// Prints a schedule for people, a line per field that is set.
pub(super) fn describe(of: &ScheduleJobView<'_>, out: &mut Out) -> Result<(), OutError> {
    let view = &of.schedule;
    let (runs, skipped) = (view.runs.to_string(), view.skipped.to_string());
    let refused = view.refusal.as_ref();
    let refused = refused.map(|why| format!("{}, the last one since {why}", view.refused));
    for (name, value) in [
        ("name", Some(&view.name)),
        ("state", Some(&state(view).to_owned())),
        ("rhythm", view.rhythm.as_ref()),
        ("zone", view.zone.as_ref()),
        ("start", view.start_at.as_ref()),
        ("end", view.end_at.as_ref()),
        ("catch up", view.catch_up.as_ref()),
        ("overlap", view.overlap.as_ref()),
        ("next", next(view)),
        ("last job", view.last_job.as_ref()),
        ("runs", Some(&runs)),
        ("skipped", Some(&skipped)),
        ("refused", refused.as_ref()),
        ("type", view.script_type.as_ref()),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            line(name, value, out)?;
        }
    }
    if let Some(job) = &of.job {
        describe_job(job, out)?;
    }
    line("created", &view.created_at, out)?;
    line("updated", &view.updated_at, out)
}

fn describe_job(job: &ScheduledJobView<'_>, out: &mut Out) -> Result<(), OutError> {
    let env: Vec<_> = job
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let (input, timeout) = (
        job.input_bytes.map(|bytes| format!("{bytes} bytes")),
        duration(job.timeout.saturating_mul(1000)),
    );
    let start = job.start_timeout_ms;
    let start = start.map_or_else(String::new, duration);
    let unique = job.unique.as_ref().map(|it| {
        let (name, policy) = (&it.name, &it.on_duplicate);
        let ms = it.until.strip_suffix(" ms").and_then(|ms| ms.parse().ok());
        let until = ms.map_or_else(|| it.until.clone(), duration);
        format!("{name}, until {until}, on duplicate {policy}")
    });
    for (name, value) in [
        ("group", job.group.as_deref().unwrap_or_default()),
        ("instance", job.instance.as_deref().unwrap_or_default()),
        ("priority", &job.priority),
        ("exclusive", if job.concurrent { "" } else { "yes" }),
        ("key", job.key.as_deref().unwrap_or_default()),
        ("tags", &job.tags.join(", ")),
        ("unique", unique.as_deref().unwrap_or_default()),
        ("input", input.as_deref().unwrap_or_default()),
        ("caller", &job.caller),
        ("context id", &job.caller_context),
        ("environment", &env.join(", ")),
        ("timeout", &timeout),
        ("start within", &start),
        ("retries", &job.retries.to_string()),
        ("log file", job.log_path.as_deref().unwrap_or_default()),
    ] {
        if !value.is_empty() {
            line(name, value, out)?;
        }
    }
    Ok(())
}
