//! `meshwork dead list`.

use std::fmt;
use std::str::FromStr;

use meshwork::{Client, DeadCursor, DeadLetter, JobFilter};
use meshwork_model::time;
use serde::Serialize;

use super::groups;
use crate::app::App;
use crate::args::filter::Select;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::job_view::Summary;
use crate::out::{Column, Row, note};

/// List dead letters, the newest first
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    select: Select,
    /// Count the letters by type, reason and error; errors that differ in numbers, ids and quoted texts count as one
    #[arg(long, conflicts_with = "cursor")]
    groups: bool,
    /// Greatest number of rows, 1 to 100000
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(1..=100_000))]
    limit: u32,
    /// Continue after a list that was cut; the earlier command printed this word on stderr
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<ListPosition>,
}

/// Position of a dead letter in the list: the time of its death, in milliseconds since 1970, and its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ListPosition {
    at_ms: u64,
    id: String,
}

impl ListPosition {
    fn of(letter: &DeadLetter) -> Self {
        Self {
            at_ms: letter.at_ms,
            id: letter.job.id.clone(),
        }
    }
}

impl fmt::Display for ListPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.at_ms, self.id)
    }
}

impl FromStr for ListPosition {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('/').filter(|(_, id)| !id.is_empty());
        let place = parts.and_then(|(at_ms, id)| {
            let at_ms = at_ms.parse().ok().filter(|at_ms| *at_ms < u64::MAX)?;
            let id = id.to_owned();
            Some(Self { at_ms, id })
        });
        place.ok_or("it is no cursor: give the word that `dead list` names where there are more")
    }
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
            job: Summary::new(&letter.job, letter.job.state(false)),
        }
    }
}

impl Row for Line<'_> {
    fn columns() -> Vec<Column> {
        let names = ["id", "type", "reason", "died", "attempts", "error"];
        Column::named(names, &["attempts"])
    }

    fn optional() -> &'static [&'static str] {
        &["died", "attempts", "type"]
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
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let filter = self.select.filter(&context.keys())?;
        let client = context.client().await?;
        let filter = self.select.timed(filter, &client, false).await?;
        let limit = self.limit as usize;
        if self.groups {
            let groups = groups::of(&client, &filter).await?;
            context.out.rows(groups.into_iter().take(limit))?;
            return Ok(Exit::DONE);
        }
        let mut letters = newest(&client, &filter, self.cursor, limit + 1).await?;
        if letters.len() > limit {
            letters.truncate(limit);
            if let Some(next) = letters.last().map(ListPosition::of) {
                note(format_args!(
                    "the newest {limit}; there are more (--limit), or continue with --cursor {next}"
                ));
            }
        }
        context.out.rows(letters.iter().map(Line::from))?;
        Ok(Exit::DONE)
    }
}

/// Returns up to `most` letters that match the filter; with a position, only those after it.
async fn newest(
    client: &Client,
    filter: &JobFilter,
    after: Option<ListPosition>,
    most: usize,
) -> Result<Vec<DeadLetter>, CommandError> {
    // Letters of the same time may follow.
    let mut cursor = after
        .as_ref()
        .map(|after| DeadCursor::before(after.at_ms + 1));
    let mut letters = Vec::new();
    loop {
        let page = client.dead_letters(filter, cursor.as_ref()).await?;
        let follows = |letter: &DeadLetter| {
            after
                .as_ref()
                .is_none_or(|after| ListPosition::of(letter) < *after)
        };
        letters.extend(page.letters.into_iter().filter(follows));
        cursor = page.next;
        if cursor.is_none() || letters.len() >= most {
            letters.truncate(most);
            return Ok(letters);
        }
    }
}
