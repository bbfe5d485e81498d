//! Runs all jobs that are due.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::job::Job;
use meshwork_model::state::{State, Status};

use crate::{Client, Error, Worker};

/// Longest time of [`drain`].
const LIMIT: Duration = Duration::from_secs(60);
/// Pause between two looks at the store.
const LOOK: Duration = Duration::from_millis(5);

/// Jobs that [`drain`] found at its end, by state.
///
/// [`Clock`](super::Clock) has an example.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Jobs that have finished.
    pub finished: usize,
    /// Jobs that ended in error.
    pub failed: usize,
    /// Jobs that wait for their time or for a retry.
    pub delayed: usize,
    /// Jobs that still wait: for other jobs, or for a worker of another type.
    pub waiting: usize,
}

/// Starts the worker, runs all jobs that are due and those that they enqueue, and stops it. Due jobs are those that wait,
/// delayed ones whose time has come, and those of due schedules. Other delayed jobs stay: a [`Clock`](super::Clock) or
/// [`Client::run_now`] makes them due.
///
/// # Errors
/// The worker does not start, a call to the server fails, or jobs still run after 60 s.
#[boxed]
pub async fn drain(client: &Client, worker: Worker) -> Result<Drained, Error> {
    let worker = worker.start().await?;
    let queues = worker.queues();
    let done = tokio::time::timeout(LIMIT, idle(client, &queues)).await;
    worker.stop().await;
    match done {
        Ok(done) => done?,
        Err(_) => return Err(Error::StillBusy { waited: LIMIT }),
    }
    count(client).await
}

/// Waits until no job of these queues is due or runs.
async fn idle(client: &Client, queues: &[String]) -> Result<(), Error> {
    let mut looks = tokio::time::interval(LOOK);
    loop {
        looks.tick().await;
        if !is_busy(client, queues).await? {
            return Ok(());
        }
    }
}

async fn is_busy(client: &Client, queues: &[String]) -> Result<bool, Error> {
    // The worker does both, within a second.
    let broker = client.broker();
    if broker.promote().await?.due > 0 || broker.fire_schedules().await?.due > 0 {
        return Ok(true);
    }
    if client.broker().running().await? > 0 {
        return Ok(true);
    }
    for (job, state) in stored(client).await? {
        let is_ours = queues.contains(&client.broker().queue_of(&job));
        match state {
            State::Queued | State::Running | State::Cancelling if is_ours => return Ok(true),
            // It is about to be enqueued if all that it waits for has ended.
            State::Waiting if is_ours => {
                let of = client.prerequisites(&job).await?;
                let has_ended = |status: Option<Status>| status.is_none_or(Status::is_final);
                if of.into_iter().all(|(_, status)| has_ended(status)) {
                    return Ok(true);
                }
            }
            _ => {}
        }
    }
    Ok(false)
}

/// Returns all jobs with their states.
async fn stored(client: &Client) -> Result<Vec<(Job, State)>, Error> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let page = client.list(from).await?;
        let states = client.states(&page.jobs).await?;
        let known = page.jobs.into_iter().zip(states);
        all.extend(known.filter_map(|(job, state)| Some((job, state?))));
        from = page.next;
        if from == 0 {
            return Ok(all);
        }
    }
}

async fn count(client: &Client) -> Result<Drained, Error> {
    let mut drained = Drained::default();
    for (_, state) in stored(client).await? {
        let count = match state {
            State::Finished => &mut drained.finished,
            State::Failed | State::Cancelled => &mut drained.failed,
            State::Delayed => &mut drained.delayed,
            State::Queued | State::Waiting | State::Running | State::Cancelling => {
                &mut drained.waiting
            }
        };
        *count += 1;
    }
    Ok(drained)
}
