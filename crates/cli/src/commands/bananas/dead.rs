//! `meshwork bananas dead`.

use meshwork::protocol::bananas::Client;
use meshwork_broker::bananas::RetriedDead;
use meshwork_model::name::JobId;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Side, of_bananas};
use crate::app::App;
use crate::args::parsers;
use crate::change::{Change, tell};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row};

/// List the jobs that failed for good, the latest first; show, retry or delete them
///
/// Records are kept for 7 days, ids for longer.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Dead {
    #[command(subcommand)]
    command: Option<DeadCommand>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, clap::Subcommand)]
enum DeadCommand {
    /// List dead letters, newest first
    List(List),
    /// Print the record of one as it is stored
    Show(One),
    /// Queue dead letters again, with all their attempts
    #[command(visible_alias = "replay")]
    Retry(Several),
    /// Delete dead letters, with their records and results
    Delete(Several),
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    side: Side,
    /// Greatest number of rows, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = parsers::whole::<u16>(1..=1000))]
    limit: u16,
}

#[derive(Debug, clap::Args)]
struct One {
    #[command(flatten)]
    side: Side,
    /// The job's id
    #[arg(value_parser = parsers::job_id)]
    id: JobId,
}

#[derive(Debug, clap::Args)]
struct Several {
    #[command(flatten)]
    side: Side,
    /// The jobs' ids
    #[arg(required = true, value_name = "ID", value_parser = parsers::job_id)]
    ids: Vec<JobId>,
}

#[derive(Debug, Serialize)]
struct Letter {
    id: String,
    name: String,
    attempts: u32,
    error: String,
}

impl Row for Letter {
    fn columns() -> Vec<Column> {
        Column::named(["id", "name", "attempts", "error"], &["attempts"])
    }

    fn cells(&self) -> Vec<String> {
        // `show` prints the other lines of an error.
        let error = self.error.lines().next().unwrap_or_default().to_owned();
        let (id, name) = (self.id.clone(), self.name.clone());
        vec![id, name, self.attempts.to_string(), error]
    }
}

impl Dead {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self.command {
            None => self.list.run(context).await,
            Some(DeadCommand::List(list)) => list.run(context).await,
            Some(DeadCommand::Show(one)) => one.show(context).await,
            Some(DeadCommand::Retry(some)) => some.change(context, replay).await,
            Some(DeadCommand::Delete(some)) => some.change(context, delete).await,
        }
    }
}

impl List {
    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = self.side.client(context).await?;
        let mut letters = Vec::new();
        for id in client
            .dead_letters(0)
            .await?
            .into_iter()
            .take(self.limit.into())
        {
            let record = client.get(&JobId::foreign(id.clone())).await.ok();
            let word = |field| record.as_ref().map(|record| record.word(field));
            letters.push(Letter {
                name: word("name").unwrap_or_default(),
                attempts: record.as_ref().map_or(0, |record| record.attempts()),
                error: word("error").unwrap_or_else(|| "its record is gone".to_owned()),
                id,
            });
        }
        context.out.rows(letters)?;
        Ok(Exit::DONE)
    }
}

impl One {
    async fn show(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = self.side.client(context).await?;
        let record = client.dead_letter(&self.id).await.map_err(of_bananas)?;
        // Unchanged text, to preserve large numbers; it was parsed as JSON before.
        match RawValue::from_string(record.text().to_owned()) {
            Ok(record) if context.out.is_json() => context.out.json(&record)?,
            _ => context.out.line(record.text())?,
        }
        Ok(Exit::DONE)
    }
}

impl Several {
    /// Changes all of them. A refused job does not stop the others.
    async fn change(
        self,
        context: &mut App,
        act: impl AsyncFn(&Client, &JobId) -> Result<Change, meshwork::Error>,
    ) -> Result<Exit, CommandError> {
        let client = self.side.client(context).await?;
        let mut exit = Exit::DONE;
        for id in &self.ids {
            let changed = act(&client, id).await;
            exit = exit.or(tell(&mut context.out, id.as_str(), changed)?);
        }
        Ok(exit)
    }
}

async fn replay(client: &Client, id: &JobId) -> Result<Change, meshwork::Error> {
    Ok(match client.retry_dead_letter(id).await? {
        RetriedDead::NoRecord => Change::Refused(
            "no_record",
            "has no record any more: enqueue the job again, and delete this one",
        ),
        RetriedDead::Unfinished => Change::Refused(
            "unfinished",
            "was queued again already: delete it from the dead letters, its record stays",
        ),
        _ => Change::Done("queued"),
    })
}

async fn delete(client: &Client, id: &JobId) -> Result<Change, meshwork::Error> {
    client.delete_dead_letter(id).await?;
    Ok(Change::Done("deleted"))
}
