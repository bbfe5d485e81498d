//! `meshwork dead show`.

use meshwork::view::{JobSourceView, JobView};
use meshwork_model::name::JobId;
use meshwork_model::time;
use meshwork_ops::Store;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::job_view;
use crate::out::printable;
use crate::remote::read;
use crate::scope::Params;

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

/// Time of a death.
#[derive(Deserialize)]
struct Death {
    died_at: String,
}

impl Show {
    pub(super) async fn run(&self, context: &mut App, store: &Store) -> Result<Exit, CommandError> {
        let letter = store.client.dead_letter(&self.id).await?;
        let state = letter.job.state(false);
        let job = JobView::new(&letter.job, state, store.context_number());
        let queue = job.about.queue.as_deref();
        let queue = queue.map(|queue| context.queue_in(store, queue));
        let source = JobSourceView::new(&letter.job);
        print(context, (time::iso(letter.at_ms), job), (&source, queue))
    }

    /// Runs the command by the API.
    pub(super) async fn by_api(
        &self,
        context: &mut App,
        params: Params,
    ) -> Result<Exit, CommandError> {
        let params = params.of_job().with(json!({"id": self.id.as_str()}));
        let letter: Box<RawValue> = context.call("dead.get", &params).await?;
        let job: JobView<'_> = read(&letter)?;
        let Death { died_at } = read(&letter)?;
        let source: JobSourceView<'_> = context.call("job.source", &params).await?;
        let queue = job.about.queue.as_deref();
        let queue = queue.map(|queue| context.queue_name(queue));
        print(context, (died_at, job), (&source, queue))
    }
}

/// Prints a dead letter.
fn print(
    context: &mut App,
    (died_at, job): (String, JobView<'_>),
    (source, queue): (&JobSourceView<'_>, Option<String>),
) -> Result<Exit, CommandError> {
    if context.out.is_json() {
        context.out.json(&Letter { died_at, job })?;
        return Ok(Exit::DONE);
    }
    job_view::describe(&job, source, queue.as_deref(), &mut context.out)?;
    job_view::line("died", &died_at, &mut context.out)?;
    if let Some(traceback) = &job.traceback {
        let traceback = printable(traceback.trim_end());
        context.out.line(format_args!("\n{traceback}"))?;
    }
    Ok(Exit::DONE)
}
