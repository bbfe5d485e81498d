//! Enqueueing many jobs of a spread queue, in few calls for each part.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::try_join_all;
use meshwork_broker::Enqueued;
use meshwork_model::job::NewJob;

use super::enqueue::Choice;
use super::{Opened, Spread, SpreadError, TRIES};
use crate::client::Enqueueable;

/// Greatest number of calls in flight that draw numbers in one part.
const AT_ONCE: usize = 64;

/// A job that is not stored yet.
struct Open {
    /// Place in the answers.
    at: usize,
    job: NewJob,
    choice: Choice,
    /// True if the old part of its key has answered that it has none of the key's jobs.
    moved: bool,
    patience: Duration,
}

/// Outcome of a call for some jobs of one part: answers by place, jobs that go elsewhere, and whether the layout is old.
type Round<A> = (Vec<(usize, Result<A, SpreadError>)>, Vec<Open>, bool);

impl Spread {
    /// Enqueues any number of jobs, and returns an answer for each, in order, as [`Spread::enqueue`] does. A refused job
    /// does not affect others. Jobs of one key stay in their order.
    ///
    /// # Errors
    /// A job is invalid or cannot be in a spread queue; nothing is written then. Or a call to the server fails; some jobs
    /// may be stored then. Those with unique names can be enqueued again.
    pub async fn enqueue_all<E: Enqueueable>(
        &self,
        jobs: impl IntoIterator<Item = E>,
    ) -> Result<Vec<Result<E::Answer, SpreadError>>, SpreadError> {
        let mut opened = self.opened();
        let mut open = Vec::new();
        for (at, job) in jobs.into_iter().enumerate() {
            let request = job.into_request()?;
            let patience = request.wait_budget();
            let (job, choice) = self.checked(request, &opened)?;
            let moved = false;
            open.push(Open {
                at,
                job,
                choice,
                moved,
                patience,
            });
        }
        let mut answers: Vec<_> = open.iter().map(|_| None).collect();
        for _ in 0..TRIES {
            let by_part = self.by_part(open, &opened).await?;
            let rounds = by_part
                .into_iter()
                .map(|(part, jobs)| self.round::<E>(&opened, part, jobs));
            let mut stale = false;
            open = Vec::new();
            for (answered, left, is_stale) in try_join_all(rounds).await? {
                for (at, answer) in answered {
                    answers[at] = Some(answer);
                }
                open.extend(left);
                stale |= is_stale;
            }
            if open.is_empty() {
                return Ok(answers.into_iter().flatten().collect());
            }
            open.sort_by_key(|one| one.at);
            if stale {
                opened = self.reopen().await?;
                open.iter_mut().for_each(|one| one.moved = false);
            }
        }
        Err(SpreadError::Busy(self.name().clone()))
    }

    /// Divides jobs by the part that they go to next.
    async fn by_part(
        &self,
        jobs: Vec<Open>,
        opened: &Opened,
    ) -> Result<BTreeMap<(usize, bool), Vec<Open>>, SpreadError> {
        let mut by_part: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for one in jobs {
            let parts = self.parts(&one.choice, opened).await?;
            let next = if one.moved {
                parts.last()
            } else {
                parts.first()
            };
            let next = next.copied().unwrap_or_default();
            by_part.entry(next).or_default().push(one);
        }
        Ok(by_part)
    }

    async fn round<E: Enqueueable>(
        &self,
        opened: &Opened,
        (part, if_present): (usize, bool),
        mut jobs: Vec<Open>,
    ) -> Result<Round<E::Answer>, SpreadError> {
        let client = self.state.client(opened, part).await?;
        let numbers = (0..jobs.len()).map(async |_| client.next_job_id().await);
        let numbers: Vec<_> = futures_util::stream::iter(numbers)
            .buffered(AT_ONCE)
            .collect()
            .await;
        for (one, id) in jobs.iter_mut().zip(numbers) {
            one.job.id = id?;
            one.job.spread = Some(self.ticket(&one.choice, &opened.layout, if_present));
        }
        let built: Vec<_> = jobs.iter().map(|one| one.job.clone()).collect();
        let stored = client.store_all(&built).await?;
        let (mut answers, mut left, mut stale) = (Vec::new(), Vec::new(), false);
        for (mut one, stored) in jobs.into_iter().zip(stored) {
            match stored.0 {
                Enqueued::Elsewhere => match one.choice.apart() {
                    Some(error) => answers.push((one.at, Err(error))),
                    None => {
                        one.moved = true;
                        left.push(one);
                    }
                },
                Enqueued::Stale(_) => {
                    stale = true;
                    left.push(one);
                }
                _ => {
                    let placed = client.placed(&one.job, stored).await;
                    let answer = placed.and_then(|placed| E::answer(client, placed, one.patience));
                    answers.push((one.at, answer.map_err(SpreadError::from)));
                }
            }
        }
        Ok((answers, left, stale))
    }
}
