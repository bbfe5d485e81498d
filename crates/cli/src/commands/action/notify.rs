//! `meshwork action notify`.

use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;

use super::{Asked, Side};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Publish a notification and print how many heard it
///
/// It goes to the channel of the service that --as names and of the event.
#[derive(Debug, clap::Args)]
pub(crate) struct Notify {
    #[command(flatten)]
    side: Side,
    /// What happened: document_updated
    #[arg(value_name = "EVENT", value_parser = NonEmptyStringValueParser::new())]
    event: String,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, Serialize)]
struct Heard {
    heard: usize,
}

impl Notify {
    pub(super) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        let request = self.asked.request(&self.event, self.side.dialect)?;
        let client = self.side.client(&self.asked.origin, context).await?;
        let heard = client.notify(&self.event, request).await?;
        if context.out.is_json() {
            context.out.json(&Heard { heard })?;
        } else {
            context.out.line(heard)?;
        }
        Ok(Exit::DONE)
    }
}
