//! `meshwork action notify`.

use serde::Serialize;

use super::{Asked, Side};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Publish a notification and print how many heard it
///
/// It goes to the channel of the service that --as names and of the event, which is what stands for the action's
/// type.
#[derive(Debug, clap::Args)]
pub(crate) struct Notify {
    #[command(flatten)]
    side: Side,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, Serialize)]
struct Heard {
    heard: usize,
}

impl Notify {
    pub(super) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        let client = self.side.client(&self.asked.origin, context).await?;
        let event = &self.asked.action_type;
        let heard = client.notify(event, self.asked.request()).await?;
        if context.out.is_json() {
            context.out.json(&Heard { heard })?;
        } else {
            context.out.line(heard)?;
        }
        Ok(Exit::DONE)
    }
}
