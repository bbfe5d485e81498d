//! Shared calls: jobs that many tasks enqueue one by one go to the server in few calls. The first ones are sent at once.
//! While [`MOST_CALLS`] calls are in flight, further jobs wait for the end of one and share the next call.

use std::collections::VecDeque;
use std::slice::from_ref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use meshwork_broker::Enqueued;
use meshwork_model::job::NewJob;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Client, REPEAT_FOR};
use crate::Error;

/// Greatest number of calls in flight: the server handles one while the answer of another is on its way.
const MOST_CALLS: usize = 2;
/// Greatest number of jobs in a shared call, so that it delays other clients by few milliseconds at most.
const MOST_JOBS: usize = 100;

/// The outcome of a job, and whether its call was repeated.
pub(crate) type Stored = (Enqueued, bool);

/// Jobs of one client that wait for a call: one for each task that waits for its answer.
#[derive(Debug, Default)]
pub(super) struct SharedCalls(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    calls: usize,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    job: NewJob,
    /// Time after which a broken call is not repeated.
    until: Instant,
    answer: oneshot::Sender<(NewJob, Result<Stored, Error>)>,
}

impl SharedCalls {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the jobs of the next call. Jobs whose tasks were dropped are left out.
    fn next(&self) -> Vec<Waiting> {
        let mut state = self.state();
        let together = state.waiting.len().min(MOST_JOBS);
        let next = state.waiting.drain(..together);
        next.filter(|one| !one.answer.is_closed()).collect()
    }
}

/// A call in flight. Its end makes room for those that wait, also if its task is dropped.
struct InFlight<'a>(&'a Client);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut state = self.0.shared_calls.state();
        match Handle::try_current() {
            Ok(runtime) if !state.waiting.is_empty() => {
                runtime.spawn(share_calls(self.0.clone()));
            }
            _ => state.calls -= 1,
        }
    }
}

/// Sends calls, one after the other, until no job waits.
async fn share_calls(client: Client) {
    let _in_flight = InFlight(&client);
    loop {
        let next = client.shared_calls.next();
        if next.is_empty() {
            return;
        }
        client.share_call(next).await;
        // Tasks that the call has woken add their next jobs.
        tokio::task::yield_now().await;
    }
}

impl Client {
    /// Stores a job, alone or with others that are enqueued at the same time. Returns the job too. The call is made by a
    /// task of its own: a caller that is not polled must not delay the jobs of others.
    pub(crate) async fn store_one(&self, job: NewJob) -> Result<(NewJob, Stored), Error> {
        let (answer, answered) = oneshot::channel();
        let until = Instant::now() + REPEAT_FOR;
        let starts = {
            let mut state = self.shared_calls.state();
            state.waiting.push_back(Waiting { job, until, answer });
            let starts = state.calls < MOST_CALLS;
            state.calls += usize::from(starts);
            starts
        };
        if starts {
            tokio::spawn(share_calls(self.clone()));
        }
        match answered.await {
            Ok((job, stored)) => Ok((job, stored?)),
            // The runtime shuts down.
            Err(_) => Err(meshwork_broker::Error::timed_out("enqueue").into()),
        }
    }

    async fn store_alone(&self, job: &NewJob, until: Instant) -> Result<Stored, Error> {
        let (mut enqueued, repeated) = self.store_until(from_ref(job), until).await?;
        Ok((enqueued.pop().unwrap_or(Enqueued::Stored), repeated))
    }

    /// Stores jobs in one call. If it fails, each is stored by itself, so that the reason affects no other.
    async fn share_call(&self, together: Vec<Waiting>) {
        let until = together.iter().map(|one| one.until).min();
        let (jobs, rest): (Vec<_>, Vec<_>) = together
            .into_iter()
            .map(|one| (one.job, (one.until, one.answer)))
            .unzip();
        let stored = match self
            .store_until(&jobs, until.unwrap_or_else(Instant::now))
            .await
        {
            Ok((enqueued, repeated)) => {
                let each = enqueued.into_iter().map(|one| Ok((one, repeated)));
                each.collect()
            }
            Err(error) if jobs.len() == 1 => vec![Err(error)],
            Err(_) => {
                let each = jobs.iter().zip(&rest);
                let each = each.map(|(job, (until, _))| self.store_alone(job, *until));
                let alone = join_all(each).await.into_iter();
                // The first call may have stored a part.
                alone
                    .map(|one| one.map(|(enqueued, _)| (enqueued, true)))
                    .collect::<Vec<_>>()
            }
        };
        for ((job, (_, answer)), stored) in jobs.into_iter().zip(rest).zip(stored) {
            // The receiver is gone if the task was dropped.
            let _ = answer.send((job, stored));
        }
    }
}
