//! `meshwork message read`.

use std::collections::BTreeMap;

use meshwork::context::MessageView;
use serde_json::json;

use super::look::print;
use super::settle;
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
        let of = self.args.need_for_calls(context).await?;
        settle(context).await?;
        let params = json!({"context": of, "limit": self.limit});
        let mut read: BTreeMap<String, Vec<MessageView>> =
            context.call("message.read", &params).await?;
        print(context, &read.remove("messages").unwrap_or_default())
    }
}
