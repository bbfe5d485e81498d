//! `meshwork action notify`.

use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;

use super::{Asked, Side};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;

// What the options that it has in common with `call` and `send` mean here.
const CONTEXT: &str =
    "To those who listen in this context, as a tenant's; to those in none otherwise";
const ORIGIN: &str = "The service in whose name it is published";

/// Publish a notification and print how many heard it
///
/// It goes to the channel of the event that the service named by --as has: `meshwork action listen EVENT --of SERVICE`
/// hears it there. Nothing is kept for who does not listen at the moment; 0 is no error.
#[derive(Debug, clap::Args)]
#[command(mut_arg("context", |arg| arg.help(CONTEXT)), mut_arg("origin", |arg| arg.help(ORIGIN)))]
pub(crate) struct Notify {
    #[command(flatten)]
    side: Side,
    /// The name of what happened: document_updated
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
    pub(super) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
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
