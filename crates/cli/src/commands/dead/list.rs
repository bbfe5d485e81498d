//! `meshwork dead list`.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Display;

use meshwork::DeadCursor;
use meshwork::view::{DeadGroup, DeadLetterView};
use meshwork_ops::dead::Groups;
use meshwork_ops::{Store, dead};
use serde_json::json;

use crate::app::App;
use crate::args::filter::Select;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::known_queue::need_in;
use crate::out::{Column, Row, note};
use crate::scope::Params;

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
        let or_empty = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or_default().to_owned();
        vec![
            job.id.to_string(),
            or_empty(&about.script_type),
            or_empty(&about.dead),
            self.died_at.clone(),
            about.attempts.to_string(),
            or_empty(&job.error),
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
            let (groups, more) = (found.groups, found.next.is_some());
            return self.print_groups(context, groups, (found.looked_at, more));
        }
        let position = (self.cursor.clone(), limit);
        let (letters, next) = dead::newest(store, &filter, position, usize::MAX).await?;
        let number = store.context_number();
        let letters = letters.iter();
        let letters = letters.map(|letter| DeadLetterView::new(letter, number));
        self.print(context, letters, next)
    }

    fn print<'a>(
        &self,
        context: &mut App,
        letters: impl IntoIterator<Item = DeadLetterView<'a>>,
        next: Option<impl Display>,
    ) -> Result<Exit, CommandError> {
        if let Some(next) = next {
            let limit = self.limit;
            note(format_args!(
                "the newest {limit}; there are more (--limit), or continue with --cursor {next}"
            ));
        }
        context.out.rows(letters)?;
        Ok(Exit::DONE)
    }

    fn print_groups(
        &self,
        context: &mut App,
        groups: Vec<DeadGroup>,
        (looked_at, more): (u64, bool),
    ) -> Result<Exit, CommandError> {
        if more {
            note(format_args!(
                "the newest {looked_at} letters are grouped; there are more"
            ));
        }
        let limit = self.limit as usize;
        context.out.rows(groups.into_iter().take(limit))?;
        Ok(Exit::DONE)
    }

    /// Runs the command by the API.
    pub(super) async fn by_api(
        &self,
        context: &mut App,
        params: Params,
    ) -> Result<Exit, CommandError> {
        let mut fields = self.select.params()?;
        if self.groups {
            if !fields.is_empty() {
                return Err(CommandError::usage(
                    "--groups with --api groups all letters: leave the filter out",
                ));
            }
            let (groups, looked) = grouped(context, params).await?;
            return self.print_groups(context, groups, looked);
        }
        if let Some(cursor) = &self.cursor {
            fields.insert("cursor".to_owned(), cursor.to_string().into());
        }
        let limit = ("letters", self.limit as usize);
        let found = context.pages("dead.list", params.with(fields.into()), limit);
        let (letters, next): (Vec<DeadLetterView<'_>>, _) = found.await?;
        let letters = letters.into_iter();
        let letters = letters.filter(|it| self.select.has_tags(&it.job.about.tags));
        self.print(context, letters, next)
    }
}

/// Groups the letters of the API, part by part. Returns the number of letters too, and true if there are more.
async fn grouped(
    context: &App,
    params: Params,
) -> Result<(Vec<DeadGroup>, (u64, bool)), CommandError> {
    let (mut groups, mut looked_at) = (BTreeMap::<String, DeadGroup>::new(), 0);
    let mut fields = params.with(json!({}));
    let mut more = true;
    while more && looked_at < MOST_GROUPED as u64 {
        let part: Groups = context.call("dead.groups", &fields).await?;
        looked_at += part.looked_at;
        for group in part.groups {
            match groups.get_mut(&group.fingerprint) {
                // The newest letters come first.
                Some(known) => {
                    known.count += group.count;
                    known.first_at = group.first_at;
                }
                None => {
                    groups.insert(group.fingerprint.clone(), group);
                }
            }
        }
        more = part.next.is_some();
        fields.insert("cursor".to_owned(), json!(part.next));
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| Reverse((group.count, group.last_at.clone())));
    Ok((groups, (looked_at, more)))
}
