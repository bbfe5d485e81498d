//! `meshwork queue weight`.

use meshwork_model::keys::hero::JobKeys;
use meshwork_model::queue::{MAX_WEIGHT, QueueSetting};

use super::Queue;
use super::line::{Line, print};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::known_queue::need;

/// Give a key a larger share of a fair queue
///
/// In each round a key starts as many jobs as its weight; the default is 1. The queue has to be fair: `queue limit set
/// QUEUE --fair`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Weight {
    #[command(flatten)]
    pub(super) queue: Queue,
    /// Concurrency key
    #[arg(value_name = "KEY")]
    pub(super) key: String,
    /// Weight, 1 to 100; 1 removes the setting
    #[arg(value_name = "N", allow_hyphen_values = true,
          value_parser = parsers::whole::<u64>(1..=MAX_WEIGHT))]
    pub(super) weight: u64,
}

impl Weight {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let list = self.queue.list(&context.keys())?;
        let list = JobKeys::without_priority(&list);
        let weight = Some(self.weight).filter(|weight| *weight > 1);
        let client = context.client().await?;
        let change = [QueueSetting::Weight(self.key, weight)];
        change[0].check().map_err(CommandError::usage)?;
        need(context, &client, list).await?;
        context.record_in_audit("limit queue", list).await?;
        client.update_queue(list, &change).await?;
        let set = client.settings().await?;
        print(context, &Line::of(context, list, &set))
    }
}
