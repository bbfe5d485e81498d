//! `meshwork schedule run`.

use serde::Serialize;

use super::FlowScope;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Run a schedule's job or flow now, in addition to its slots, and print its id; the schedule's --overlap applies
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Name of the schedule
    #[arg(value_parser = super::name)]
    name: String,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    id: &'a str,
}

impl Run {
    pub(crate) async fn run(
        self,
        scope: &FlowScope,
        context: &mut App,
    ) -> Result<Exit, CommandError> {
        let client = scope.client(&self.name, Some("run"), context).await?;
        let id = client.schedule(&self.name)?.run().await?;
        if context.out.is_json() {
            let name = &self.name;
            context.out.json(&Line {
                name,
                id: id.as_str(),
            })?;
        } else {
            context.out.line(id)?;
        }
        Ok(Exit::DONE)
    }
}
