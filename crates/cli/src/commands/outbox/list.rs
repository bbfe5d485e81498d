//! `meshwork outbox list`.

use meshwork_model::number::counted;
use meshwork_model::time;
use serde::Serialize;

use super::database::{OutboxArgs, with_pool};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row, note};

/// List the rows that the store refused, the oldest first
///
/// A row in state `waiting` is tried again, up to once a minute. One in state `set aside` waits for `meshwork outbox
/// retry` or `delete`. Prints the numbers of all rows on stderr.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    outbox: OutboxArgs,
    /// Greatest number of rows, 1 to 100000
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(1..=100_000))]
    limit: u32,
}

#[derive(Debug, Serialize)]
struct Line {
    id: String,
    state: &'static str,
    attempts: u32,
    created_at: String,
    error: String,
}

impl Row for Line {
    fn columns() -> Vec<Column> {
        Column::named(
            ["id", "state", "attempts", "created", "error"],
            &["attempts"],
        )
    }

    fn optional() -> &'static [&'static str] {
        &["created", "attempts"]
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.id.clone(),
            self.state.to_owned(),
            self.attempts.to_string(),
            self.created_at.clone(),
            self.error.clone(),
        ]
    }
}

impl List {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let (outbox, pool) = self.outbox.open(context).await?;
        let limit = self.limit as usize;
        let (mut rows, mut more) = (Vec::new(), true);
        while more && rows.len() < limit {
            let page = with_pool!(&pool, |pool| outbox.errors(pool, rows.last()).await)?;
            more = !page.is_empty();
            rows.extend(page);
        }
        let lines = rows.into_iter().take(limit).map(|row| Line {
            id: row.id,
            state: if row.set_aside {
                "set aside"
            } else {
                "waiting"
            },
            attempts: row.attempts,
            created_at: time::iso(row.created_ms),
            error: row.error,
        });
        context.out.rows(lines)?;
        let backlog = with_pool!(&pool, |pool| outbox.backlog(pool).await)?;
        let waiting = match backlog.waiting {
            0 => "no row waits".to_owned(),
            rows => format!(
                "{} waiting, the first for {}",
                counted(rows, "row"),
                time::duration(backlog.oldest_ms)
            ),
        };
        note(format_args!("{waiting}; {} set aside", backlog.set_aside));
        Ok(Exit::DONE)
    }
}
