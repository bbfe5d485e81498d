//! `meshwork dead show`.

use meshwork::view::JobView;
use meshwork_model::name::JobId;
use meshwork_model::time;
use meshwork_ops::Store;
use serde::Serialize;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::job_view;
use crate::out::printable;

/// Show a dead letter: reason and time of its death, attempts, error and output
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Show {
    /// The job's id, or its beginning, of at least 4 characters
    #[arg(value_parser = parsers::job_id)]
    pub(super) id: JobId,
}

#[derive(Debug, Serialize)]
struct Letter<'a> {
    died_at: String,
    #[serde(flatten)]
    job: JobView<'a>,
}

impl Show {
    pub(super) async fn run(&self, context: &mut App, store: &Store) -> Result<Exit, CommandError> {
        let letter = store.client.dead_letter(&self.id).await?;
        let (died_at, job) = (time::iso(letter.at_ms), &letter.job);
        if context.out.is_json() {
            context.out.json(&Letter {
                died_at,
                job: JobView::new(job, job.state(false), store.context_number()),
            })?;
            return Ok(Exit::DONE);
        }
        let queue = job.queue.as_deref();
        let queue = queue.map(|queue| context.queue_in(store, queue));
        let (state, queue) = (job.state(false), queue.as_deref());
        job_view::describe(job, state, queue, &mut context.out)?;
        job_view::line("died", &died_at, &mut context.out)?;
        let secrets = job.env_vars.secrets();
        if let Some(traceback) = &job.traceback {
            let traceback = secrets.mask(traceback.trim_end());
            context
                .out
                .line(format_args!("\n{}", printable(&traceback)))?;
        }
        Ok(Exit::DONE)
    }
}
