//! Enqueues a series: finds the jobs that exist already, and stores the rest.

use meshwork::Client;
use meshwork_broker::{MAX_ITEMS, Retried};
use meshwork_model::job::{Job, NewJob, field};
use meshwork_model::name::JobId;
use meshwork_model::route::Route;
use meshwork_model::state::Status;

use super::Work;
use super::series::Series;
use crate::error::CommandError;
use crate::persist::persist;

/// Bytes of inputs per batch, unless one input is larger: a bound on memory.
const MAX_PIECE: usize = 16 * 1024 * 1024;
/// Greatest number of jobs in a batch.
const MAX_JOBS: usize = 1000;

/// State of a series before its jobs are enqueued.
pub(super) struct Before {
    statuses: Vec<Option<Status>>,
    pub(super) finished: usize,
}

/// Finds the jobs of an earlier run of the series.
pub(super) async fn look_back(client: &Client, series: &Series) -> Result<Before, CommandError> {
    let statuses = statuses(client, &series.ids).await?;
    Ok(Before {
        finished: finished(&statuses),
        statuses,
    })
}

/// Enqueues the missing jobs, and retries the failed ones.
pub(super) async fn submit(work: &Work<'_>, before: Before) -> Result<(), CommandError> {
    let (mut piece, mut size) = (Vec::new(), 0);
    for ((id, input), status) in work.series.ids.iter().zip(work.inputs).zip(before.statuses) {
        match status {
            Some(Status::Error) => retry(work.client, id, work.route).await?,
            Some(_) => {}
            None => {
                let job = work.request.clone().id(id.clone()).input(input.read()?);
                let job = job.build().map_err(meshwork::Error::from)?;
                size += weight(&job);
                piece.push(job);
            }
        }
        if size >= MAX_PIECE || piece.len() >= MAX_JOBS {
            work.client.enqueue_built(&piece).await?;
            (piece, size) = (Vec::new(), 0);
        }
    }
    Ok(work.client.enqueue_built(&piece).await?)
}

fn weight(job: &NewJob) -> usize {
    job.script.len() + job.input.as_ref().map_or(0, Vec::len)
}

/// Retries a failed job, unless another client does so at the same time.
async fn retry(client: &Client, id: &JobId, route: &Route) -> Result<(), CommandError> {
    let job = minimal(id, route);
    let broker = client.broker();
    persist(broker.outages(), "retry", async || {
        let there = broker.statuses(std::slice::from_ref(id)).await?;
        // After a broken call the job may have been queued, and have run.
        if there == [Some(Status::Error)] {
            return broker.retry(&job).await;
        }
        Ok(Retried::Unfinished)
    })
    .await?;
    Ok(())
}

/// Returns a record with the fields that select the job's queue.
pub(super) fn minimal(id: &JobId, route: &Route) -> Job {
    let mut fields = vec![
        (field::SCRIPT_TYPE, route.script_type.as_str()),
        (field::PRIORITY, route.priority.as_str()),
    ];
    fields.extend(
        route
            .group
            .as_ref()
            .map(|group| (field::GROUP, group.as_str())),
    );
    let owned = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()));
    Job::from_fields(id.as_str(), owned)
}

/// Returns the statuses of any number of jobs, in order.
pub(super) async fn statuses(
    client: &Client,
    ids: &[JobId],
) -> Result<Vec<Option<Status>>, CommandError> {
    let mut statuses = Vec::with_capacity(ids.len());
    for chunk in ids.chunks(MAX_ITEMS) {
        let broker = client.broker();
        let there = async || broker.statuses(chunk).await;
        statuses.extend(persist(broker.outages(), "statuses", there).await?);
    }
    Ok(statuses)
}

/// Counts the finished jobs.
pub(super) fn finished(statuses: &[Option<Status>]) -> usize {
    statuses
        .iter()
        .filter(|status| **status == Some(Status::Finished))
        .count()
}
