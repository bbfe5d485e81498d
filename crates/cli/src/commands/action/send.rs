//! `meshwork action send`.

use serde::Serialize;

use super::{Asked, Side};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Send an action that nobody waits for, and print its id
#[derive(Debug, clap::Args)]
pub(crate) struct Send {
    #[command(flatten)]
    side: Side,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, Serialize)]
struct Sent<'a> {
    action_id: &'a str,
}

impl Send {
    pub(super) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        let client = self.side.client(&self.asked.origin, context).await?;
        let id = client.send(self.asked.request()).await?;
        if context.out.is_json() {
            context.out.json(&Sent { action_id: &id })?;
        } else {
            context.out.line(&id)?;
        }
        Ok(Exit::DONE)
    }
}
