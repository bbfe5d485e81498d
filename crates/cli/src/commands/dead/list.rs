//! `meshwork dead list`.

use meshwork::model::time;
use meshwork::{Client, DeadLetter, JobFilter};
use serde::Serialize;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row, note};
use crate::record::Summary;
use crate::select::Select;

/// List dead letters, the newest first
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    select: Select,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    died_at: String,
    #[serde(flatten)]
    job: Summary<'a>,
}

impl<'a> From<&'a DeadLetter> for Line<'a> {
    fn from(letter: &'a DeadLetter) -> Self {
        Self {
            died_at: time::iso(letter.at_ms),
            job: Summary::from(&letter.job),
        }
    }
}

impl Row for Line<'_> {
    fn columns() -> Vec<Column> {
        let names = ["id", "type", "reason", "died", "attempts", "error"];
        Column::named(names, &["attempts"])
    }

    fn cells(&self) -> Vec<String> {
        let (job, about) = (&self.job, &self.job.about);
        let or_empty = |text: Option<&str>| text.unwrap_or_default().to_owned();
        vec![
            job.id.to_owned(),
            or_empty(about.script_type),
            or_empty(about.dead),
            self.died_at.clone(),
            about.attempts.to_string(),
            or_empty(job.error.as_deref()),
        ]
    }
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let filter = self.select.filter(&context.keys())?;
        let client = context.client().await?;
        let filter = self.select.timed(filter, &client, false).await?;
        let limit = self.limit as usize;
        let mut letters = newest(&client, &filter, limit + 1).await?;
        if letters.len() > limit {
            letters.truncate(limit);
            note(format_args!("the newest {limit}; there are more (--limit)"));
        }
        context.out.rows(letters.iter().map(Line::from))?;
        Ok(Exit::DONE)
    }
}

/// Up to `most` of those that are meant.
async fn newest(
    client: &Client,
    filter: &JobFilter,
    most: usize,
) -> Result<Vec<DeadLetter>, CommandError> {
    let (mut letters, mut cursor) = (Vec::new(), None);
    loop {
        let page = client.dead_letters(filter, cursor.as_ref()).await?;
        letters.extend(page.letters);
        cursor = page.next;
        if cursor.is_none() || letters.len() >= most {
            letters.truncate(most);
            return Ok(letters);
        }
    }
}
