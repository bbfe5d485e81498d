//! `meshwork schedule show`.

use meshwork::view::ScheduleJobView;
use serde_json::json;

use super::FlowScope;
use super::view::describe;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Show a schedule: its job, its next slots and its history
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// Name of the schedule
    #[arg(value_parser = super::name)]
    name: String,
}

impl Show {
    pub(crate) async fn run(
        self,
        scope: &FlowScope,
        context: &mut App,
    ) -> Result<Exit, CommandError> {
        if context.remote.is_some() {
            let params = json!({"name": self.name});
            let view = context.call("schedule.get", &params).await?;
            return print(&view, context);
        }
        let client = scope.client(&self.name, None, context).await?;
        let there = client.schedule(&self.name)?.show().await?;
        print(&ScheduleJobView::from(&there), context)
    }
}

fn print(view: &ScheduleJobView<'_>, context: &mut App) -> Result<Exit, CommandError> {
    match context.out.is_json() {
        true => context.out.json(view)?,
        false => describe(view, &mut context.out)?,
    }
    Ok(Exit::DONE)
}
