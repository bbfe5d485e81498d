//! Printed form of a job's record, the same for all commands.

use indicatif::HumanBytes;
use meshwork::view::{FailedAttemptView, JobAbout, JobSummary, state_of};
use meshwork_model::job::Job;
use meshwork_model::sandbox::{Limit, RunUsage};
use meshwork_model::state::State;
use meshwork_model::time::duration;
use meshwork_model::trace::TraceContext;

use crate::out::{Column, Out, OutError, Row};

impl Row for JobSummary<'_> {
    fn columns() -> Vec<Column> {
        let names = ["id", "state", "type", "created", "attempts", "error"];
        Column::named(names, &["attempts"])
    }

    fn optional() -> &'static [&'static str] {
        &["created", "attempts", "type"]
    }

    fn cells(&self) -> Vec<String> {
        let about = &self.about;
        vec![
            self.id.to_owned(),
            self.state.to_owned(),
            about.script_type.unwrap_or_default().to_owned(),
            about.created_at.to_owned(),
            about.attempts.to_string(),
            self.error.as_deref().unwrap_or_default().to_owned(),
        ]
    }
}

/// Returns the prerequisites, each with the names of its result.
fn depends_on(job: &Job) -> String {
    let each = |id: &String| {
        let names = job.input_names.iter().filter(|(_, of)| *of == id);
        let names: String = names.map(|(name, _)| format!("{name}=")).collect();
        names + id.as_str()
    };
    job.depends_on
        .iter()
        .map(each)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns the sandbox of the last run, else the one that the job asks for.
fn sandbox(job: &Job) -> Option<String> {
    let Some(run) = &job.usage else {
        let requested = job.requested_sandbox.as_ref()?;
        return Some(format!("{requested} (requested)"));
    };
    let limits = run.sandbox.limits.iter();
    let limits = limits.map(|(limit, value)| format!(", {limit} {}", limit.value(value)));
    Some(format!(
        "{}{}",
        run.sandbox.profile,
        limits.collect::<String>()
    ))
}

/// Returns the resources of a run as text.
fn used(run: &RunUsage) -> String {
    let usage = &run.usage;
    let cpu = |ms| Limit::Cpu.value(ms);
    format!(
        "{} user, {} system, {} memory, {} written",
        cpu(usage.user_ms),
        cpu(usage.system_ms),
        HumanBytes(usage.peak_memory),
        HumanBytes(usage.written)
    )
}

/// Returns the failed attempts as text, each with a name. The only one of a failed job is left out: the error shows it.
fn failed_attempts(job: &Job) -> Vec<(String, String)> {
    if job.failed_attempts.len() < 2 && job.error.is_some() {
        return Vec::new();
    }
    let text = |view: FailedAttemptView<'_>| {
        let name = view.number.map_or_else(
            || "attempt".to_owned(),
            |number| format!("attempt {number}"),
        );
        let from = view.started_at.as_deref().unwrap_or("?");
        let error = view.error.lines().next().unwrap_or_default();
        let until = format!("{from} to {}", view.ended_at);
        (
            name,
            format!("{} on {}, {until}: {error}", view.outcome, view.worker)
                .trim_end_matches(": ")
                .to_owned(),
        )
    };
    FailedAttemptView::all(job).into_iter().map(text).collect()
}

/// Prints one line of a job's description.
pub(crate) fn line(name: &str, value: &str, out: &mut Out) -> Result<(), OutError> {
    out.line(format_args!("{name:12} {}", crate::out::indented(value)))
}

/// Returns the time for which a unique name is taken, and the name.
fn window(unique: &str) -> Option<String> {
    let (ms, name) = unique.split_once(' ')?;
    Some(format!("{} {name}", duration(ms.parse().ok()?)))
}

/// Prints a job in a state for people, a line per field that is set. `queue`: the name of its queue.
pub(crate) fn describe(
    job: &Job,
    state: Option<State>,
    queue: Option<&str>,
    out: &mut Out,
) -> Result<(), OutError> {
    let about = JobAbout::new(job, None);
    let (attempts, lost) = (about.attempts.to_string(), about.lost.to_string());
    let snoozes = about.snoozes.to_string();
    let (timeout, children) = (
        duration(about.timeout.saturating_mul(1000)),
        about.children.to_string(),
    );
    let (trace, _) = job.trace();
    let until = about.unique;
    let window = until.and_then(window);
    let env = job.env_vars.shown();
    let env: Vec<_> = env.map(|(name, value)| format!("{name}={value}")).collect();
    let sandbox = sandbox(job);
    let used = job.usage.as_ref().map(used);
    let error = job.error.as_deref();
    let error = error.map(|text| job.env_vars.secrets().mask(text).into_owned());
    for (name, value) in [
        ("id", Some(job.id.as_str())),
        ("state", Some(state_of(job, state))),
        ("error", error.as_deref()),
        ("dead letter", about.dead),
        ("progress", about.progress),
        ("to be stopped", job.stop.as_deref()),
        ("type", about.script_type),
        ("group", about.group),
        ("instance", about.instance),
        ("priority", Some(about.priority)),
        ("key", about.key),
        ("tags", Some(about.tags.join(", ").as_str())),
        ("unique until", until.filter(|_| window.is_none())),
        ("unique for", window.as_deref()),
        ("not before", about.run_at.as_deref()),
        ("start by", about.start_by.as_deref()),
        ("exclusive", (!about.concurrent).then_some("yes")),
        ("depends on", Some(depends_on(job).as_str())),
        ("on failure", job.on_failure.as_deref()),
        ("dependents", Some(job.dependents.join(", ").as_str())),
        ("batch", job.batch.as_deref()),
        ("parent", about.parent),
        (
            "children",
            (about.children > 0).then_some(children.as_str()),
        ),
        ("caller", Some(about.caller)),
        ("context id", Some(about.caller_context)),
        ("environment", Some(env.join(", ").as_str())),
        ("trace", trace.as_ref().map(TraceContext::trace_id)),
        ("timeout", Some(timeout.as_str())),
        ("retries", Some(about.retries.to_string().as_str())),
        ("attempts", Some(attempts.as_str())),
        ("lost", (about.lost > 0).then_some(lost.as_str())),
        ("snoozes", (about.snoozes > 0).then_some(snoozes.as_str())),
        ("sandbox", sandbox.as_deref()),
        ("used", used.as_deref()),
        ("worker", about.worker),
        ("queue", queue),
        ("old list", job.lock.as_deref()),
        ("created", Some(about.created_at)),
        ("started", about.started_at.as_deref()),
        ("ended", about.ended_at),
        ("updated", Some(about.updated_at)),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            line(name, value, out)?;
        }
    }
    for (name, text) in failed_attempts(job) {
        line(&name, &text, out)?;
    }
    Ok(())
}
