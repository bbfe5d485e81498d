//! `meshwork schedule run`.

use serde::{Deserialize, Serialize};
use serde_json::json;

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

/// A job that was started.
#[derive(Deserialize)]
struct Started {
    id: String,
}

impl Run {
    pub(crate) async fn run(
        self,
        scope: &FlowScope,
        context: &mut App,
    ) -> Result<Exit, CommandError> {
        let name = &self.name;
        let id = match context.remote {
            Some(_) => {
                let params = json!({"name": name});
                let Started { id } = context.call("schedule.run", &params).await?;
                id
            }
            None => {
                let client = scope.client(name, Some("run"), context).await?;
                client.schedule(name)?.run().await?.to_string()
            }
        };
        if context.out.is_json() {
            context.out.json(&Line { name, id: &id })?;
        } else {
            context.out.line(id)?;
        }
        Ok(Exit::DONE)
    }
}
