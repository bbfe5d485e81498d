//! `meshwork flow logs`.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use meshwork::flow::FlowView;
use meshwork_model::keys::context::FlowId;
use meshwork_model::name::JobId;
use meshwork_model::secret::Secrets;
use meshwork_model::time;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::place::Place;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;
use crate::out::log_file::LogDirs;
use crate::out::logs;
use crate::out::logs::Which;
use crate::out::note;

/// Pause between two reads with --follow.
const LOOK: Duration = Duration::from_millis(200);

/// Print the output of a flow's jobs: stdout and stderr, with the names of the jobs
///
/// With --follow, prints each line behind the name of its job until the flow has ended, all on stdout. The exit code is
/// the outcome of the flow.
#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    /// Number of the flow
    id: FlowId,
    /// Only this job [default: all]
    job: Option<String>,
    /// Print new lines until the flow has ended
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    dirs: LogDirs,
    #[command(flatten)]
    place: ContextArgs,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line<'a> {
    job: Cow<'a, str>,
    at: Option<String>,
    stream: Cow<'a, str>,
    line: String,
}

impl Line<'_> {
    /// Prints the line behind the name of its job.
    fn print(&self, context: &mut App) -> Result<(), CommandError> {
        if context.out.is_json() {
            return Ok(context.out.json(self)?);
        }
        let text = format!("{}: {}\n", self.job, self.line);
        Ok(context.out.raw(text.as_bytes())?)
    }
}

/// Page of log lines.
#[derive(Deserialize)]
struct LogPage {
    lines: Vec<Line<'static>>,
    next: Option<String>,
}

impl Logs {
    async fn by_api(self, context: &mut App) -> Result<Exit, CommandError> {
        if self.follow {
            return Err(CommandError::usage(
                "--follow does not work with --api: `meshwork job logs -f` follows one job of the flow",
            ));
        }
        let fields = json!({"id": self.id.0, "job": self.job});
        let mut params = self.place.params(context, fields).await?;
        loop {
            let LogPage { lines, next } = context.call("flow.logs", &params).await?;
            lines.iter().try_for_each(|line| line.print(context))?;
            let Some(next) = next else {
                return Ok(Exit::DONE);
            };
            params.insert("cursor".to_owned(), next.into());
        }
    }

    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        if context.remote.is_some() {
            return self.by_api(context).await;
        }
        let place = Place::open(&self.place, context).await?;
        let view = place.flows.status(self.id).await?;
        if let Some(name) = &self.job
            && view.job(name).is_none()
        {
            let why = format!("the flow {} has no job `{name}`", self.id);
            return Err(CommandError::new(Exit::NO_JOB, why));
        }
        if self.follow {
            return self.follow(&place, context).await;
        }
        for of in self.jobs(&place, &view) {
            let lines = place.client.log_lines(&of.id).await?;
            let mut record = place.client.status(&of.id).await?;
            if record.stdout.is_empty() && record.stderr.is_empty() {
                logs::add(&mut record, &lines);
            }
            if !record.stdout.is_empty() || !record.stderr.is_empty() {
                // Labels are on the stream of the lines, so that a pipe gets both.
                if !context.out.is_json() {
                    context.out.line(format_args!("{}:", of.name))?;
                }
                logs::print(&record, Which::All, &self.dirs, &mut context.out)?;
            }
        }
        Ok(Exit::DONE)
    }

    /// Returns the selected jobs and their items that are stored.
    fn jobs(&self, place: &Place, view: &FlowView) -> Vec<Source> {
        let mut found = Vec::new();
        for job in &view.jobs {
            if self.job.as_ref().is_some_and(|name| *name != job.name) {
                continue;
            }
            let own = (job.name.clone(), Some(&job.id), job.status);
            let items = job.items.iter().enumerate().map(|(item, of)| {
                let name = format!("{}[{item}]", job.name);
                (name, of.id.as_ref(), of.status)
            });
            for (name, id, status) in std::iter::once(own).chain(items) {
                if let Some(id) = id.and_then(|id| place.flows.job_id(id)) {
                    found.push(Source { name, id, status });
                }
            }
        }
        found
    }

    /// Prints new lines until the flow has ended.
    async fn follow(&self, place: &Place, context: &mut App) -> Result<Exit, CommandError> {
        let (mut read, mut done) = (HashMap::new(), HashSet::new());
        loop {
            let view = place.flows.status(self.id).await?;
            for of in self.jobs(place, &view) {
                if matches!(of.status, "waiting" | "ready" | "skipped") || done.contains(&of.name) {
                    continue;
                }
                let last = read.entry(of.name.clone()).or_default();
                of.print(place, last, context).await?;
                if of.has_ended() {
                    done.insert(of.name);
                }
            }
            context.out.flush()?;
            if view.is_ended() {
                if let Some(error) = &view.error {
                    note(format_args!("flow {} failed: {error}", view.id));
                }
                return Ok(match view.is_finished() {
                    true => Exit::DONE,
                    false => Exit::FAILED,
                });
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// A job or an item, with its name.
struct Source {
    name: String,
    id: JobId,
    status: &'static str,
}

impl Source {
    fn has_ended(&self) -> bool {
        matches!(self.status, "finished" | "error" | "stopped")
    }

    /// Prints the lines after `last`; of an ended job without lines, those of its record.
    async fn print(
        &self,
        place: &Place,
        last: &mut Option<String>,
        context: &mut App,
    ) -> Result<(), CommandError> {
        let broker = place.client.broker();
        let mut secrets = None;
        loop {
            let lines = broker.log_lines(&self.id, last.as_deref()).await;
            let lines = lines.map_err(meshwork::Error::from)?;
            let Some(end) = lines.last() else { break };
            *last = Some(end.id.clone());
            if secrets.is_none() {
                secrets = Some(place.client.status(&self.id).await?.env_vars.secrets());
            }
            for line in &lines {
                let at = Some(time::iso(line.at_ms));
                self.tell(
                    &line.stream,
                    at,
                    &masked(secrets.as_ref(), &line.line),
                    context,
                )?;
            }
        }
        if last.is_none() && self.has_ended() {
            // Its worker forwards no lines.
            let record = place.client.status(&self.id).await?;
            let secrets = record.env_vars.secrets();
            for (stream, bytes) in [("stdout", &record.stdout), ("stderr", &record.stderr)] {
                let text = masked(Some(&secrets), bytes);
                for line in text.lines() {
                    self.tell(stream, None, line, context)?;
                }
            }
        }
        Ok(())
    }

    fn tell(
        &self,
        stream: &str,
        at: Option<String>,
        line: &str,
        context: &mut App,
    ) -> Result<(), CommandError> {
        let line = Line {
            job: self.name.as_str().into(),
            at,
            stream: stream.into(),
            line: line.to_owned(),
        };
        line.print(context)
    }
}

fn masked(secrets: Option<&Secrets>, bytes: &[u8]) -> String {
    let bytes = match secrets {
        Some(secrets) => secrets.mask_bytes(bytes),
        None => bytes.into(),
    };
    String::from_utf8_lossy(&bytes).into_owned()
}
