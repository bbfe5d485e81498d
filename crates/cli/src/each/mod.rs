//! One job per input file: checks the files, enqueues their jobs as a resumable series, collects and prints the
//! results.
//!
//! Files are read twice: first all of them before anything is written to the server, and again when their jobs are
//! submitted.

mod collect;
mod results;
mod series;
mod submit;

use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt;
use meshwork::{Client, JobRequest};
use meshwork_model::name::JobId;
use meshwork_model::route::Route;

use crate::app::App;
use crate::args::input::Input;
use crate::args::script::Script;
use crate::ephemeral_worker::{EphemeralWorker, WorkerTuning};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::job_args::JobArgs;
use crate::out::note;
use crate::persist::persist;
use collect::{Collection, Tally};
use results::Results;
use series::Series;

/// Greatest number of concurrent cancellations.
const STOPPING: usize = 64;
/// Longest time for the cancellation of abandoned jobs.
const STOPPING_TIME: Duration = Duration::from_secs(30);
/// The `error` of a cancelled job.
const STOPPED: &str = "stopped";

/// Options of a series.
pub(crate) struct Task {
    pub(crate) script: Script,
    pub(crate) job_args: JobArgs,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) tuning: WorkerTuning,
    /// Starts anew instead of resuming.
    pub(crate) fresh: bool,
}

/// Runs the script on each file and prints the results.
pub(crate) async fn run(context: &mut App, task: Task) -> Result<Exit, CommandError> {
    let interrupt = Interrupt::listen()?;
    let request = task.job_args.checked(&task.script).await?;
    let queued = task.job_args.depends_on.is_empty();
    let route = request
        .clone()
        .build()
        .map_err(meshwork::Error::from)?
        .route;
    let inputs = look_at(&task.files, &interrupt)?;
    let client = interrupt.or(context.client()).await?;
    let mut ephemeral = EphemeralWorker::ensure(&client, &interrupt, (&route, task.tuning)).await?;
    let digest = series::digest(&task.script, &task.job_args, &inputs);
    if task.fresh {
        interrupt
            .or(forget(&client, &digest, &inputs, &route))
            .await?;
    }
    let series = interrupt
        .or(Series::begin(&client, digest, &inputs))
        .await?;
    ephemeral.own_jobs(&series.ids);
    let work = Work {
        client: &client,
        series: &series,
        inputs: &inputs,
        request,
        route: &route,
        queued,
    };
    let worked = interrupt
        .or(Box::pin(work.run(context, &mut ephemeral)))
        .await;
    ephemeral.shutdown().await;
    match worked {
        Ok(tally) => conclude(&client, &series, tally).await,
        Err(error) => {
            if error.exit != Exit::NOT_ENDED && !interrupt.is_urgent() {
                abandon(&client, &series, &route, &error).await;
            }
            Err(error)
        }
    }
}

/// Reads all files before anything is written.
fn look_at(files: &[PathBuf], interrupt: &Interrupt) -> Result<Vec<Input>, CommandError> {
    let look = |path: &PathBuf| {
        interrupt.check()?;
        Ok(Input::look_at(path)?)
    };
    files.iter().map(look).collect()
}

/// A series and the parts of its jobs.
struct Work<'a> {
    client: &'a Client,
    series: &'a Series,
    inputs: &'a [Input],
    request: JobRequest,
    route: &'a Route,
    /// True if the jobs enter a queue at once, without prerequisites.
    queued: bool,
}

impl Work<'_> {
    /// Enqueues the missing jobs, and collects all results.
    async fn run(
        self,
        context: &mut App,
        ephemeral: &mut EphemeralWorker,
    ) -> Result<Tally, CommandError> {
        let before = submit::look_back(self.client, self.series).await?;
        if self.series.resumed {
            let (finished, all) = (before.finished, self.inputs.len());
            note(format_args!(
                "resuming: {finished} of {all} already finished (--fresh starts again)"
            ));
        }
        submit::submit(&self, before).await?;
        let mut results = Results::new(context.out.is_json());
        let collection = Collection::new(&self, self.request.wait_budget());
        let tally = collection
            .collect(ephemeral, &mut results, &mut context.out)
            .await?;
        results.conclude(&mut context.out)?;
        context.out.flush()?;
        Ok(tally)
    }
}

/// Reports the counts. Ends the series unless it has failures that the user may retry.
async fn conclude(client: &Client, series: &Series, tally: Tally) -> Result<Exit, CommandError> {
    if tally.failed == 0 {
        let broker = client.broker();
        persist(broker.outages(), "each", async || {
            broker.end_series(&series.digest).await
        })
        .await?;
        note(format_args!("{} finished", tally.finished));
        return Ok(Exit::DONE);
    }
    note(format_args!(
        "{} finished, {} failed; the same command runs only the failed ones again",
        tally.finished, tally.failed
    ));
    Ok(Exit::FAILED)
}

/// Cancels the open jobs of an earlier series of the same name, and deletes the series.
async fn forget(
    client: &Client,
    digest: &str,
    inputs: &[Input],
    route: &Route,
) -> Result<(), CommandError> {
    let broker = client.broker();
    let outages = broker.outages();
    let Some(seed) = persist(outages, "series", async || broker.series(digest).await).await? else {
        return Ok(());
    };
    stop_all(client, &series::job_ids(&seed, inputs), route).await?;
    persist(outages, "each", async || broker.end_series(digest).await).await
}

/// Cancels all open jobs after an error, since nobody waits for their results.
async fn abandon(client: &Client, series: &Series, route: &Route, why: &CommandError) {
    let all = series.ids.len();
    match tokio::time::timeout(STOPPING_TIME, stop_all(client, &series.ids, route)).await {
        // All jobs have finished, and the reader closed stdout on purpose.
        Ok(Ok(finished)) if finished == all && why.exit == Exit::NO_READER => {}
        Ok(Ok(finished)) => note(format_args!(
            "{finished} of {all} finished; the same command continues from there"
        )),
        Ok(Err(error)) => note(format_args!("the jobs could not be cancelled: {error}")),
        Err(_) => note("the jobs could not be cancelled: the server does not answer"),
    }
}

/// Cancels all jobs that have not ended. Returns the number of finished ones.
async fn stop_all(client: &Client, ids: &[JobId], route: &Route) -> Result<usize, CommandError> {
    let broker = client.broker();
    let before = submit::statuses(client, ids).await?;
    let unfinished = ids
        .iter()
        .zip(&before)
        .filter(|(_, status)| status.is_some_and(|status| !status.is_final()))
        // In reverse order: jobs that would run next are cancelled last.
        .rev()
        .map(|(id, _)| submit::minimal(id, route));
    let mut stopping = futures_util::stream::iter(unfinished)
        .map(async |job| {
            let cancel = async || broker.cancel(&job, STOPPED, true).await;
            persist(broker.outages(), "cancel", cancel).await
        })
        .buffer_unordered(STOPPING);
    while let Some(stopped) = stopping.next().await {
        stopped?;
    }
    Ok(submit::finished(&before))
}
