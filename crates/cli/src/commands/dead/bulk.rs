//! What replay and delete have in common: some dead letters by their ids, or all that a filter includes.

use futures_util::StreamExt;
use meshwork::model::name::JobId;
use meshwork::{Client, DeadFilter, DeadLetter, Error as MeshworkError};

use super::filter::Filter;
use crate::change::{Change, tell};
use crate::confirm::confirm;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Progress, note};
use crate::value;

/// Calls under way at the same time.
const AT_ONCE: usize = 64;

/// Which ones.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true)
    .args(["ids", "all"]).args(super::filter::OPTIONS))]
pub(super) struct Bulk {
    /// The jobs' ids; or choose with --all or the options below
    #[arg(value_name = "ID", value_parser = value::job_id, conflicts_with = "all",
          conflicts_with_all = super::filter::OPTIONS)]
    ids: Vec<JobId>,
    /// All dead letters
    #[arg(long, conflicts_with_all = super::filter::OPTIONS)]
    all: bool,
    #[command(flatten)]
    filter: Filter,
    /// Do not ask, where many are meant
    #[arg(short, long)]
    yes: bool,
}

impl Bulk {
    /// Does `act` to each of them. One that is refused does not hold up the others.
    pub(super) async fn run(
        &self,
        context: &mut Context,
        verb: &str,
        act: impl AsyncFn(&Client, &DeadLetter) -> Result<Change, MeshworkError>,
    ) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        if self.ids.is_empty() {
            return self.many(&client, context, verb, act).await;
        }
        let mut exit = Exit::DONE;
        for id in &self.ids {
            let changed = match client.dead_letter(id).await {
                Ok(letter) => act(&client, &letter).await,
                Err(error) => Err(error),
            };
            exit = exit.or(tell(&mut context.out, id.as_str(), changed)?);
        }
        Ok(exit)
    }

    async fn many(
        &self,
        client: &Client,
        context: &mut Context,
        verb: &str,
        act: impl AsyncFn(&Client, &DeadLetter) -> Result<Change, MeshworkError>,
    ) -> Result<Exit, CommandError> {
        let mut filter = self.filter.resolve(client).await?;
        // What dies from now on was not meant.
        let from_now_on = client.broker().now().await? + 1;
        let until = filter.until_ms.unwrap_or(u64::MAX);
        filter.until_ms = Some(until.min(from_now_on));
        let count = count(client, &filter).await?;
        if count == 0 {
            note("there is no such dead letter");
            return Ok(Exit::DONE);
        }
        confirm(&format!("to {verb} {count} dead letters"), self.yes)?;
        let mut progress = Progress::new(count);
        let (mut exit, mut cursor, mut seen, mut done) = (Exit::DONE, None, 0, 0);
        loop {
            let page = client.dead_letters(&filter, cursor.as_ref()).await?;
            let mut changes = futures_util::stream::iter(&page.letters)
                .map(async |letter| (letter, act(client, letter).await))
                .buffered(AT_ONCE);
            while let Some((letter, changed)) = changes.next().await {
                let one = progress.aside(|| tell(&mut context.out, &letter.job.id, changed))?;
                (exit, seen) = (exit.or(one), seen + 1);
                done += usize::from(one == Exit::DONE);
                progress.show(seen);
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        drop(progress);
        note(format_args!("{done} of {seen} dead letters: {verb}"));
        Ok(exit)
    }
}

/// How many are meant.
async fn count(client: &Client, filter: &DeadFilter) -> Result<usize, CommandError> {
    let (mut count, mut cursor) = (0, None);
    loop {
        let page = client.dead_letters(filter, cursor.as_ref()).await?;
        count += page.letters.len();
        cursor = page.next;
        if cursor.is_none() {
            return Ok(count);
        }
    }
}
