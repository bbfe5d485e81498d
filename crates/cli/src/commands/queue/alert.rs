//! `meshwork queue alert`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use meshwork::JobRequest;
use meshwork::view::QueueAlertView;
use meshwork_model::job::Tag;
use meshwork_model::name::{Group, ScriptType};
use meshwork_model::number::counted;
use meshwork_model::queue::MAX_ALERT_AFTER;
use meshwork_model::spec::JobSpec;
use serde_json::json;

use super::Queue;
use crate::app::App;
use crate::args::parsers;
use crate::args::script::Script;
use crate::error::CommandError;
use crate::exit::Exit;

/// Enqueue a job after some failures in a row of a queue, and another one after the next success
#[derive(Debug, Clone, clap::Subcommand)]
pub(crate) enum AlertCommand {
    /// Show the alert of a queue, and its failures in a row
    Show(Queue),
    Set(Box<Set>),
    /// Remove the alert of a queue
    Remove(Queue),
}

/// Set the alert of a queue; it replaces an earlier one, and counts anew
///
/// A failure is a job of the queue, of any priority, that becomes a dead letter. Retries, snoozes, cancelled and
/// discarded jobs do not count, and neither do alert jobs and jobs that run already. The input of the job is JSON with
/// kind (alert or recovery), queue, failures, job, at, error, failed_job, failed_at and first_failed_at.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Set {
    #[command(flatten)]
    queue: Queue,
    /// Failures in a row before the alert, 1 to 1000
    #[arg(long, value_name = "N", allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(1..=u64::from(MAX_ALERT_AFTER)))]
    after: u32,
    /// Script of the alert job; its text is stored with the alert
    #[arg(long = "job", value_name = "FILE")]
    file: PathBuf,
    /// Type of the script [default: by the file's extension]
    #[arg(long = "type", value_name = "TYPE")]
    script_type: Option<ScriptType>,
    /// Group of workers that run the alert job
    #[arg(long)]
    group: Option<Group>,
    /// Retries of the alert job, 0 to 100
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(0..=100))]
    retries: u32,
    /// Longest time of an attempt of the alert job [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = parsers::span, allow_hyphen_values = true)]
    timeout: Option<Duration>,
    /// Tag of the alert job; may be given several times, up to 10
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<Tag>,
    /// Set the alert although the queue does not exist yet
    #[arg(long)]
    create: bool,
}

impl AlertCommand {
    /// Returns the name of its queue.
    pub(super) fn queue(&self) -> &str {
        match self {
            Self::Show(queue) | Self::Remove(queue) => &queue.name,
            Self::Set(set) => &set.queue.name,
        }
    }

    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Show(queue) => show(&queue, context).await,
            Self::Set(set) => set.run(context).await,
            Self::Remove(queue) => remove(&queue, context).await,
        }
    }
}

impl Set {
    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let script = Script::read(&self.file, self.script_type)?;
        let mut job = JobRequest::new(script.script_type, script.text).retries(self.retries);
        if let Some(timeout) = self.timeout {
            job = job.timeout(timeout);
        }
        if let Some(group) = self.group {
            job = job.group(group);
        }
        for tag in self.tags {
            job = job.tag(tag);
        }
        let job = job.build().map_err(meshwork::Error::from)?;
        let mut spec = JobSpec::written(&job).map_err(CommandError::usage)?;
        spec.remove("id");
        let params = json!({
            "queue": self.queue.name,
            "after": self.after,
            "job": spec,
            "create": self.create || context.out.is_in_part(),
        });
        let alert = context.call("queue.set_alert", &params).await?;
        print(context, &alert)
    }
}

async fn show(queue: &Queue, context: &mut App) -> Result<Exit, CommandError> {
    let params = json!({"queue": queue.name});
    let alert = context.call("queue.alert", &params).await?;
    print(context, &alert)
}

fn print(context: &mut App, alert: &QueueAlertView) -> Result<Exit, CommandError> {
    if context.out.is_json() {
        context.out.json(alert)?;
        return Ok(Exit::DONE);
    }
    let [queue, target] = [&alert.queue, &alert.target].map(|list| context.queue_name(list));
    let (after, failures) = (alert.after, alert.failures);
    let state = if alert.alerted { ", alerted" } else { "" };
    context.out.line(format_args!(
        "{queue} alert after {after}, {} in a row{state}; the job goes to {target}",
        counted(failures, "failure")
    ))?;
    if let (Some(job), Some(error)) = (&alert.failed_job, &alert.error) {
        context
            .out
            .line(format_args!("last failure {job}: {error}"))?;
    }
    Ok(Exit::DONE)
}

async fn remove(queue: &Queue, context: &mut App) -> Result<Exit, CommandError> {
    let params = json!({"queue": queue.name});
    let removed: BTreeMap<String, String> = context.call("queue.remove_alert", &params).await?;
    let name = context.queue_name(removed.get("queue").unwrap_or(&queue.name));
    context
        .out
        .line(format_args!("{name} has no alert any more"))?;
    Ok(Exit::DONE)
}
