//! What is there of a series already, and submitting the rest.

use meshwork::Client;
use meshwork::model::job::{Job, NewJob, field};
use meshwork::model::name::JobId;
use meshwork::model::route::Route;
use meshwork::model::state::Status;
use meshwork_broker::{MAX_ITEMS, Retried};

use super::Work;
use super::series::Series;
use crate::error::CommandError;
use crate::persist::persist;

/// Jobs are read and sent in pieces of so many bytes, unless a single one is larger: the inputs are never
/// all in memory.
const MAX_PIECE: usize = 16 * 1024 * 1024;
/// The most jobs in a piece.
const MAX_JOBS: usize = 1000;

/// What is there of a series before its jobs are submitted.
pub(super) struct Before {
    statuses: Vec<Option<Status>>,
    pub(super) finished: usize,
}

/// Looks at what an earlier run of the series has left.
pub(super) async fn look_back(client: &Client, series: &Series) -> Result<Before, CommandError> {
    let statuses = statuses(client, &series.ids).await?;
    Ok(Before {
        finished: finished(&statuses),
        statuses,
    })
}

/// Submits the jobs that are not there, and queues those again that failed before.
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
            work.client.submit_all(&piece).await?;
            (piece, size) = (Vec::new(), 0);
        }
    }
    Ok(work.client.submit_all(&piece).await?)
}

fn weight(job: &NewJob) -> usize {
    job.script.len() + job.input.as_ref().map_or(0, Vec::len)
}

/// Queues a job again that failed, unless somebody else does it at the same time.
async fn retry(client: &Client, id: &JobId, route: &Route) -> Result<(), CommandError> {
    let job = minimal(id, route);
    let broker = client.broker();
    persist(broker.outages(), "retry", async || {
        let there = broker.statuses(std::slice::from_ref(id)).await?;
        // After a broken call it may have been queued, and have run.
        if there == [Some(Status::Error)] {
            return broker.retry(&job).await;
        }
        Ok(Retried::Unfinished)
    })
    .await?;
    Ok(())
}

/// As much of a record as tells which queue the job belongs to.
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

/// The statuses of any number of jobs, in order.
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

/// How many have finished.
pub(super) fn finished(statuses: &[Option<Status>]) -> usize {
    statuses
        .iter()
        .filter(|status| **status == Some(Status::Finished))
        .count()
}
