//! `meshwork schedule show`.

use serde::Serialize;

use super::FlowScope;
use super::view::{JobView, View};
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

#[derive(Debug, Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    schedule: &'a View,
    job: Option<JobView<'a>>,
}

impl Show {
    pub(crate) async fn run(
        self,
        scope: &FlowScope,
        context: &mut App,
    ) -> Result<Exit, CommandError> {
        let client = scope.client(&self.name, None, context).await?;
        let there = client.schedule(&self.name)?.show().await?;
        let view = View::from(&there);
        if context.out.is_json() {
            let job = there.schedule.as_ref().ok();
            context.out.json(&Line {
                schedule: &view,
                job: job.map(|schedule| JobView::from(schedule.template())),
            })?;
        } else {
            view.describe(&there, &mut context.out)?;
        }
        Ok(Exit::DONE)
    }
}
