//! `meshwork dead list`.

use meshwork::DeadCursor;
use meshwork::view::{DeadGroup, DeadLetterView};
use meshwork_ops::{Store, dead};

use crate::app::App;
use crate::args::filter::Select;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::known_queue::need_in;
use crate::out::{Column, Row, note};

/// Greatest number of letters that are grouped, about.
const MOST_GROUPED: usize = 100_000;

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
    #[arg(long, value_name = "CURSOR", value_parser = position)]
    cursor: Option<DeadCursor>,
}

/// Reads the position of a dead letter in the list.
fn position(text: &str) -> Result<DeadCursor, &'static str> {
    dead::position(text)
        .map_err(|_| "it is no cursor: give the word that `dead list` names where there are more")
}

impl Row for DeadGroup {
    fn columns() -> Vec<Column> {
        let names = [
            "count", "type", "reason", "first", "last", "last job", "error",
        ];
        Column::named(names, &["count"])
    }

    fn optional() -> &'static [&'static str] {
        &["first", "last job", "type"]
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.count.to_string(),
            self.script_type.clone(),
            self.reason.clone(),
            self.first_at.clone(),
            self.last_at.clone(),
            self.last_id.clone(),
            self.error.clone(),
        ]
    }
}

impl Row for DeadLetterView<'_> {
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
    pub(super) async fn run(&self, context: &mut App, store: &Store) -> Result<Exit, CommandError> {
        need_in(context, store, self.select.queue()).await?;
        let filter = self.select.filter(store, false).await?;
        let limit = self.limit as usize;
        if self.groups {
            let found = dead::grouped(store, &filter, None, MOST_GROUPED).await?;
            if found.next.is_some() {
                note(format_args!(
                    "the newest {} letters are grouped; there are more",
                    found.looked_at
                ));
            }
            context.out.rows(found.groups.into_iter().take(limit))?;
            return Ok(Exit::DONE);
        }
        let position = (self.cursor.clone(), limit);
        let (letters, next) = dead::newest(store, &filter, position, usize::MAX).await?;
        if let Some(next) = next {
            note(format_args!(
                "the newest {limit}; there are more (--limit), or continue with --cursor {next}"
            ));
        }
        let number = store.context_number();
        let letters = letters
            .iter()
            .map(|letter| DeadLetterView::new(letter, number));
        context.out.rows(letters)?;
        Ok(Exit::DONE)
    }
}
