//! `meshwork bananas dead`.

use meshwork::model::name::JobId;
use serde::Serialize;

use super::Side;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::out::{Column, Table};

/// List the jobs that failed for good, the latest first
///
/// A record stays for seven days, the id for longer.
#[derive(Debug, clap::Args)]
pub(crate) struct Dead {
    #[command(flatten)]
    side: Side,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

#[derive(Debug, Serialize)]
struct Letter {
    id: String,
    name: String,
    attempts: u32,
    error: String,
}

impl Dead {
    pub(super) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        let client = self.side.client(context).await?;
        let mut letters = Vec::new();
        for id in client.dead(0).await?.into_iter().take(self.limit.into()) {
            let record = client.get(&JobId::foreign(id.clone())).await.ok();
            let word = |field| record.as_ref().map(|record| record.word(field));
            letters.push(Letter {
                name: word("name").unwrap_or_default(),
                attempts: record.as_ref().map_or(0, |record| record.attempts()),
                error: word("error").unwrap_or_else(|| "its record is gone".to_owned()),
                id,
            });
        }
        if context.out.is_json() {
            for letter in &letters {
                context.out.json(letter)?;
            }
            return Ok(Exit::DONE);
        }
        let mut table = Table::new([
            Column::text("id"),
            Column::text("name"),
            Column::number("attempts"),
            Column::text("error"),
        ]);
        for letter in letters {
            let attempts = letter.attempts.to_string();
            table.row([letter.id, letter.name, attempts, letter.error]);
        }
        context.out.table(table)?;
        Ok(Exit::DONE)
    }
}
