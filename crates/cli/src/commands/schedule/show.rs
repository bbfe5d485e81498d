//! `meshwork schedule show`.

use meshwork::view::ScheduleView;
use serde::Serialize;

use super::FlowScope;
use super::view::{JobView, describe};
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
    schedule: &'a ScheduleView,
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
        let view = ScheduleView::from(&there);
        if context.out.is_json() {
            let job = there.schedule.as_ref().ok();
            context.out.json(&Line {
                schedule: &view,
                job: job.map(|schedule| JobView::from(schedule.template())),
            })?;
        } else {
            describe(&view, &there, &mut context.out)?;
        }
        Ok(Exit::DONE)
    }
}
