//! `meshwork job why`.

use meshwork::view::WhyView;
use meshwork_model::name::JobId;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::printable;
use crate::whole_id::whole_id;

/// Show why a job waits, or why it failed
#[derive(Debug, clap::Args)]
pub(crate) struct Why {
    /// The job's id, or its beginning, of at least 4 characters
    #[arg(value_parser = parsers::job_id)]
    pub(super) id: JobId,
}

impl Why {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let job = client.status(&whole_id(&client, &self.id).await?).await?;
        let state = client.states(std::slice::from_ref(&job)).await?;
        let state = state.into_iter().next().flatten();
        let waits = client.why(&job).await?;
        let why = WhyView::new(&job, state, &waits, |queue| context.queue_name(queue));
        let why = why.skipped(client.why_skipped(&job).await?);
        print(context, &why)
    }
}

/// Prints the reasons of a job's state.
pub(super) fn print(context: &mut App, why: &WhyView<'_>) -> Result<Exit, CommandError> {
    if context.out.is_json() {
        context.out.json(why)?;
        return Ok(Exit::DONE);
    }
    for reason in &why.reasons {
        let text = format!("{} {}: {reason}", why.id, why.state);
        context.out.line(printable(&text))?;
    }
    Ok(Exit::DONE)
}
