//! `meshwork batch list`.

use meshwork::model::time;

use super::shown::Shown;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Table, note};

/// List batches: those that go on, then the others, the last to end first
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(1..=999))]
    limit: u32,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let limit = self.limit as usize;
        let mut batches = client.batches(limit + 1).await?;
        if batches.len() > limit {
            batches.truncate(limit);
            note(format_args!("the first {limit}; there are more (--limit)"));
        }
        if context.out.is_json() {
            for batch in &batches {
                context.out.json(&Shown::from(batch))?;
            }
            return Ok(Exit::DONE);
        }
        let numbers = ["jobs", "pending", "finished", "failed"].map(Column::number);
        let columns = ["id", "state"].map(Column::text).into_iter().chain(numbers);
        let last = ["opened", "name"].map(Column::text);
        let mut table = Table::new(columns.chain(last));
        for batch in &batches {
            let [total, pending, succeeded, failed] =
                [batch.total, batch.pending(), batch.succeeded, batch.failed]
                    .map(|n| n.to_string());
            table.row([
                batch.id.to_string(),
                batch.state.as_str().to_owned(),
                total,
                pending,
                succeeded,
                failed,
                time::iso(batch.created_ms),
                batch.name.clone(),
            ]);
        }
        context.out.table(table)?;
        Ok(Exit::DONE)
    }
}
