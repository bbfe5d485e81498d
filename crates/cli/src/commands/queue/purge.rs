//! `meshwork queue purge`.

use meshwork_model::name::JobId;
use meshwork_model::number::counted;
use serde::Serialize;

use super::Queue;
use crate::app::App;
use crate::change::{Change, tell};
use crate::confirm::confirm;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::known_queue::need;
use crate::out::{Progress, note};

/// Delete the waiting jobs of a queue
///
/// Counts the jobs first. Running jobs, delayed jobs, jobs with prerequisites and new jobs remain.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Purge {
    #[command(flatten)]
    pub(super) queue: Queue,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Print the number of jobs only
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Serialize)]
struct Purgeable<'a> {
    queue: &'a str,
    purgeable: usize,
}

impl Purge {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let queue = self.queue.list(&context.keys())?;
        let client = context.client().await?;
        need(context, &client, &queue).await?;
        let count = client.purgeable(&queue).await?;
        if let Some(exit) = self.ends_before(context, &queue, count)? {
            return Ok(exit);
        }
        context.record_in_audit("purge queue", &queue).await?;
        let mut progress = Progress::new(count);
        let (mut seen, mut failed) = (0, None);
        let report = |id: &JobId| {
            let line = || tell(&mut context.out, id.as_str(), Ok(Change::Done("deleted")));
            failed = failed.take().or(progress.aside(line).err());
            seen += 1;
            progress.show(seen);
        };
        let deleted = client.purge(&queue, count, report).await?;
        drop(progress);
        if let Some(error) = failed {
            return Err(error);
        }
        note(format_args!("{} deleted", counted(deleted, "job")));
        Ok(Exit::DONE)
    }

    /// Prints the number of jobs of a dry run, or asks for a confirmation. Returns the end of the command if nothing is to
    /// be deleted.
    pub(super) fn ends_before(
        &self,
        context: &mut App,
        queue: &str,
        count: usize,
    ) -> Result<Option<Exit>, CommandError> {
        if self.dry_run {
            return tell_count(context, queue, count).map(Some);
        }
        let name = context.queue_name(queue);
        if count == 0 {
            note(format_args!("nothing waits in {name}"));
            return Ok(Some(Exit::DONE));
        }
        let what = format!("to delete {} waiting in {name}", counted(count, "job"));
        confirm(&what, self.yes)?;
        Ok(None)
    }
}

/// Prints the number of jobs that would be deleted.
fn tell_count(context: &mut App, queue: &str, purgeable: usize) -> Result<Exit, CommandError> {
    if context.out.is_json() {
        context.out.json(&Purgeable { queue, purgeable })?;
    } else {
        let (name, count) = (context.queue_name(queue), counted(purgeable, "job"));
        context.out.line(format_args!("{name} {count}"))?;
    }
    Ok(Exit::DONE)
}
