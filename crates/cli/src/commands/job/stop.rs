//! `meshwork job stop`.

use std::time::Duration;

use meshwork::model::job::Job;
use meshwork::model::name::JobId;
use meshwork::{BulkStop, Cancelled, Client, Error as MeshworkError};
use tokio::time::Instant;

use super::select;
use crate::change::{Change, tell};
use crate::confirm::confirm;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Out, Progress, note};
use crate::value;

/// Stop jobs that wait or run; they end in error
///
/// Of a job that runs, its worker is told; it lets the script put things in order, kills it after a grace
/// period, and then the job has ended. A worker that is gone is found out when its lease ends. With --all, or
/// with options that choose, all jobs that are there now and fit are stopped; those that run are told, and not
/// waited for.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true)
    .args(["ids", "all"]).args(select::OPTIONS))]
pub(crate) struct Stop {
    /// The jobs' ids; or choose with --all or the options below
    #[arg(value_name = "ID", value_parser = value::job_id, conflicts_with = "all",
          conflicts_with_all = select::OPTIONS)]
    ids: Vec<JobId>,
    /// All jobs that have not ended
    #[arg(long, conflicts_with_all = select::OPTIONS)]
    all: bool,
    #[command(flatten)]
    select: select::Select,
    /// Do not ask, where many are meant
    #[arg(short, long)]
    yes: bool,
    /// Only say which are meant
    #[arg(long, conflicts_with = "ids")]
    dry_run: bool,
    /// End them at once, whatever their workers say; a script goes on until its worker learns of it
    #[arg(long)]
    force: bool,
    /// Stop their children too: the jobs that they submitted with submit(), on all levels
    #[arg(long, requires = "ids")]
    children: bool,
    /// Do not wait until they have ended
    #[arg(long)]
    no_wait: bool,
    /// How long to wait until all of them have ended, in seconds
    #[arg(long, value_name = "S", default_value = "60", value_parser = value::wait,
          allow_hyphen_values = true, conflicts_with = "no_wait")]
    timeout: Duration,
}

impl Stop {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        if self.ids.is_empty() {
            return self.many(context).await;
        }
        let client = context.client().await?;
        // First all are told, so that all their workers stop at the same time.
        let mut told = Vec::with_capacity(self.ids.len());
        for id in &self.ids {
            told.push(self.stop(&client, id).await);
        }
        let (mut running, mut exit) = (Vec::new(), Exit::DONE);
        if self.children {
            // A job that is told to stop submits no more.
            for (id, _) in self.ids.iter().zip(&told).filter(|(_, told)| told.is_ok()) {
                running.extend(self.children(&client, id, &mut context.out).await?);
            }
        }
        let until = Instant::now() + self.timeout;
        let running = running.into_iter().map(|id| (id, Ok(Cancelled::Stopping)));
        for (id, mut stopped) in self.ids.iter().cloned().zip(told).chain(running) {
            if matches!(stopped, Ok(Cancelled::Stopping)) && !self.no_wait {
                let left = until.saturating_duration_since(Instant::now());
                stopped = client
                    .stopped(&id, left)
                    .await
                    .map_err(|error| self.late(error));
            }
            let change = match stopped {
                Ok(Cancelled::Missing) => Err(MeshworkError::NoJob { id: id.clone() }),
                Ok(became) => Ok(Change::Done(word(became))),
                Err(error) => Err(error),
            };
            exit = exit.or(tell(&mut context.out, id.as_str(), change)?);
            context.out.flush()?;
        }
        Ok(exit)
    }

    /// Stops the descendants of a job and tells of each. Returns those that are to be waited for: they run, so there
    /// are no more of them than the workers have slots.
    async fn children(
        &self,
        client: &Client,
        id: &JobId,
        out: &mut Out,
    ) -> Result<Vec<JobId>, CommandError> {
        let (mut running, mut failed) = (Vec::new(), None);
        let told = |job: &Job, became| match became {
            Cancelled::Stopping if !self.no_wait => running.push(job.job_id()),
            // Somebody has deleted it meanwhile.
            Cancelled::Missing => {}
            became => {
                let said = tell(out, &job.id, Ok(Change::Done(word(became))));
                failed = failed.take().or(said.err());
            }
        };
        match client.stop_children(id, self.force, told).await {
            // Of a job that is not there, none are known.
            Ok(_) | Err(MeshworkError::NoJob { .. }) => failed.map_or(Ok(running), Err),
            Err(error) => Err(error.into()),
        }
    }

    /// All that are meant. What comes from now on is not.
    async fn many(&self, context: &mut Context) -> Result<Exit, CommandError> {
        let filter = self.select.filter(&context.keys())?;
        let client = context.client().await?;
        let filter = self.select.bounded(filter, &client).await?;
        let count = client
            .stop_all(&filter, BulkStop::DryRun, |_, _| ())
            .await?;
        let how = match (self.dry_run, self.force) {
            (true, _) => BulkStop::DryRun,
            (false, true) => BulkStop::Force,
            (false, false) => BulkStop::Stop,
        };
        if count == 0 {
            note("there is no such job");
            return Ok(Exit::DONE);
        }
        if how != BulkStop::DryRun {
            confirm(&format!("to stop {count} jobs"), self.yes)?;
        }
        let mut progress = Progress::new(count);
        let (mut seen, mut failed) = (0, None);
        let told = |job: &Job, became: Option<Cancelled>| {
            let word = Ok(Change::Done(became.map_or("meant", word)));
            let line = || tell(&mut context.out, &job.id, word);
            let said = progress.aside(line);
            failed = failed.take().or(said.err());
            seen += 1;
            progress.show(seen);
        };
        client.stop_all(&filter, how, told).await?;
        drop(progress);
        if let Some(error) = failed {
            return Err(error);
        }
        let done = if self.dry_run { "meant" } else { "stopped" };
        note(format_args!("{seen} jobs {done}"));
        Ok(Exit::DONE)
    }

    async fn stop(&self, client: &Client, id: &JobId) -> Result<Cancelled, MeshworkError> {
        if self.force {
            client.stop_by_force(id).await
        } else {
            client.stop(id).await
        }
    }

    /// The whole time, not what was left of it for this one.
    fn late(&self, mut error: MeshworkError) -> MeshworkError {
        if let MeshworkError::NotStopped { waited, .. } = &mut error {
            *waited = self.timeout;
        }
        error
    }
}

const fn word(became: Cancelled) -> &'static str {
    match became {
        Cancelled::Cancelled => "stopped",
        Cancelled::Stopping => "stopping",
        Cancelled::Ended => "ended",
        Cancelled::Missing => "missing",
    }
}
