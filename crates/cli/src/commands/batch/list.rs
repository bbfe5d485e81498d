//! `meshwork batch list`.

use meshwork::view::BatchView;
use serde_json::Map;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row, note};

/// List batches: open ones, then ended ones, the last to end first
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Greatest number of rows, 1 to 999
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(1..=999))]
    limit: u32,
}

impl List {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let limit = self.limit as usize;
        let mut batches = match context.near().await? {
            Some(client) => {
                let batches = client.batches(limit + 1).await?;
                batches.iter().map(BatchView::from).collect()
            }
            None => {
                let all = ("batches", limit + 1);
                context.pages("batch.list", Map::new(), all).await?.0
            }
        };
        if batches.len() > limit {
            batches.truncate(limit);
            note(format_args!("the first {limit}; there are more (--limit)"));
        }
        context.out.rows(batches)?;
        Ok(Exit::DONE)
    }
}

impl Row for BatchView {
    fn columns() -> Vec<Column> {
        let names = [
            "id", "state", "jobs", "pending", "finished", "failed", "opened", "name",
        ];
        Column::named(names, &["jobs", "pending", "finished", "failed"])
    }

    fn cells(&self) -> Vec<String> {
        let numbers = [self.total, self.pending, self.succeeded, self.failed];
        let [total, pending, succeeded, failed] = numbers.map(|n| n.to_string());
        let (id, state) = (self.id.clone(), self.state.clone());
        let (opened, name) = (self.created_at.clone(), self.name.clone());
        vec![id, state, total, pending, succeeded, failed, opened, name]
    }
}
