//! `meshwork message read`.

use meshwork::context::Coordinator;

use super::look::print;
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;

/// Take received messages off msg_in and print them, in the order of their arrival
///
/// Chat and mail are processed by that. The records remain, for `message list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Read {
    /// Greatest number of messages, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(1..=1_000))]
    limit: u32,
    #[command(flatten)]
    args: ContextArgs,
}

impl Read {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let (me, handle) = self.args.open(context).await?;
        if let Some(coordinator) = super::without_supervisor(context, handle.node()).await? {
            coordinator.settle().await?;
        }
        let coordinator = Coordinator::new(handle.node()).await?;
        let most = self.limit as usize;
        let views = handle
            .read_inbox(&me, coordinator.transport(), most)
            .await?;
        print(context, &views)
    }
}
