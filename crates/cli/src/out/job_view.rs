//! Printed form of a job, the same for all commands.

use indicatif::HumanBytes;
use meshwork::host_ms;
use meshwork::view::{FailedAttemptView, JobSourceView, JobSummary, JobView, RunUsageView};
use meshwork_model::sandbox::Limit;
use meshwork_model::time::{self, duration};

use crate::out::{Column, Out, OutError, Row};

impl Row for JobSummary<'_> {
    fn columns() -> Vec<Column> {
        let names = [
            "id", "state", "runs in", "type", "created", "attempts", "error",
        ];
        Column::named(names, &["attempts"])
    }

    fn optional() -> &'static [&'static str] {
        &["created", "attempts", "type"]
    }

    fn cells(&self) -> Vec<String> {
        let about = &self.about;
        vec![
            self.id.to_string(),
            self.state.to_string(),
            runs_in(self),
            about.script_type.as_deref().unwrap_or_default().to_owned(),
            about.created_at.to_string(),
            about.attempts.to_string(),
            self.error.as_deref().unwrap_or_default().to_owned(),
        ]
    }
}

/// Returns the time until the next run of a delayed job.
fn runs_in(job: &JobSummary<'_>) -> String {
    let next = job.next_run_at.as_deref().and_then(time::parse_iso);
    match next.map(|at| at.saturating_sub(host_ms())) {
        Some(0) => "now".to_owned(),
        Some(left) => duration(left),
        None => String::new(),
    }
}

/// Returns the prerequisites, each with the names of its result.
fn depends_on(source: &JobSourceView<'_>) -> String {
    let each = |id: &String| {
        let names = source.input_names.iter().filter(|(_, of)| *of == id);
        let names: String = names.map(|(name, _)| format!("{name}=")).collect();
        names + id.as_str()
    };
    let each: Vec<_> = source.depends_on.iter().map(each).collect();
    each.join(", ")
}

/// Returns the sandbox of the last run, else the one that the job asks for.
fn sandbox(job: &JobView<'_>) -> Option<String> {
    let Some(run) = &job.usage else {
        let requested = job.requested_sandbox.as_ref()?;
        return Some(format!("{requested} (requested)"));
    };
    let limits = Limit::ALL.into_iter().filter_map(|limit| {
        let value = run.limits.get(limit.as_str())?;
        Some(format!(", {limit} {}", limit.value(*value)))
    });
    Some(format!("{}{}", run.sandbox, limits.collect::<String>()))
}

/// Returns the resources of a run as text.
fn used(run: &RunUsageView) -> String {
    let cpu = |ms| Limit::Cpu.value(ms);
    format!(
        "{} user, {} system, {} memory, {} written",
        cpu(run.user_ms),
        cpu(run.system_ms),
        HumanBytes(run.peak_memory),
        HumanBytes(run.written)
    )
}

/// Returns the failed attempts as text, each with a name. The only one of a failed job is left out: the error shows it.
fn failed_attempts(job: &JobView<'_>) -> Vec<(String, String)> {
    if job.failed_attempts.len() < 2 && job.error.is_some() {
        return Vec::new();
    }
    let text = |view: &FailedAttemptView<'_>| {
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
    job.failed_attempts.iter().map(text).collect()
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

/// Prints a job for people, a line per field that is set. `queue`: the name of its queue.
pub(crate) fn describe(
    job: &JobView<'_>,
    source: &JobSourceView<'_>,
    queue: Option<&str>,
    out: &mut Out,
) -> Result<(), OutError> {
    let about = &job.about;
    let (attempts, lost) = (about.attempts.to_string(), about.lost.to_string());
    let snoozes = about.snoozes.to_string();
    let (timeout, children) = (
        duration(about.timeout.saturating_mul(1000)),
        about.children.to_string(),
    );
    let trace = job.traceparent.as_deref();
    let until = about.unique.as_deref();
    let window = until.and_then(window);
    let env = job.env.iter();
    let env: Vec<_> = env.map(|(name, value)| format!("{name}={value}")).collect();
    let sandbox = sandbox(job);
    let used = job.usage.as_ref().map(used);
    for (name, value) in [
        ("id", Some(&*job.id)),
        ("state", Some(&*job.state)),
        ("error", job.error.as_deref()),
        ("dead letter", about.dead.as_deref()),
        ("progress", about.progress.as_deref()),
        ("to be stopped", source.stop.as_deref()),
        ("type", about.script_type.as_deref()),
        ("group", about.group.as_deref()),
        ("instance", about.instance.as_deref()),
        ("priority", Some(&*about.priority)),
        ("key", about.key.as_deref()),
        ("tags", Some(about.tags.join(", ").as_str())),
        ("unique until", until.filter(|_| window.is_none())),
        ("unique for", window.as_deref()),
        ("not before", about.run_at.as_deref()),
        ("start by", about.start_by.as_deref()),
        ("exclusive", (!about.concurrent).then_some("yes")),
        ("depends on", Some(depends_on(source).as_str())),
        ("on failure", source.on_failure.as_deref()),
        ("dependents", Some(source.dependents.join(", ").as_str())),
        ("batch", about.batch.as_deref()),
        ("parent", about.parent.as_deref()),
        (
            "children",
            (about.children > 0).then_some(children.as_str()),
        ),
        ("caller", Some(&*about.caller)),
        ("context id", Some(&*about.caller_context)),
        ("environment", Some(env.join(", ").as_str())),
        // The id of the trace is its second part.
        ("trace", trace.and_then(|parent| parent.split('-').nth(1))),
        ("timeout", Some(timeout.as_str())),
        ("retries", Some(about.retries.to_string().as_str())),
        ("attempts", Some(attempts.as_str())),
        ("lost", (about.lost > 0).then_some(lost.as_str())),
        ("snoozes", (about.snoozes > 0).then_some(snoozes.as_str())),
        ("sandbox", sandbox.as_deref()),
        ("used", used.as_deref()),
        ("worker", about.worker.as_deref()),
        ("queue", queue),
        ("old list", source.lock.as_deref()),
        ("created", Some(&*about.created_at)),
        ("started", about.started_at.as_deref()),
        ("ended", about.ended_at.as_deref()),
        ("updated", Some(&*about.updated_at)),
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
