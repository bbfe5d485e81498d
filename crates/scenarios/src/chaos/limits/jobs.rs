//! The jobs of the scenario, and the settings of their queues.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use meshwork_broker::{Broker, Enqueued, KnownQueues, MAX_ITEMS};
use meshwork_model::job::{NewJob, OnDuplicate, Unique, Until};
use meshwork_model::name::{JobId, ScriptType};
use meshwork_model::queue::{QueueSetting, Rate};
use meshwork_model::route::Route;
use meshwork_model::state::Status;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{Instant, interval};

use super::failed;
use crate::chaos::ChaosError;

/// Greatest number of running jobs of the limited queue, and of one key in it.
pub(super) const SLOTS: usize = 5;
pub(super) const KEY_SLOTS: usize = 2;
/// Rate limit of the queue with a rate: starts in a second, and burst.
pub(super) const PER_SECOND: u64 = 40;
pub(super) const BURST: u64 = 10;
/// Greatest number of starts of one key there, in each window of a second.
pub(super) const KEY_PER_WINDOW: u64 = 10;
/// Number of keys, and of unique names.
const KEYS: usize = 5;
/// Number of unfinished jobs of each sort at any time, or slightly more, so that a job always waits for a slot.
const OPEN: u64 = 40;
/// Number of jobs of a sort that are submitted together.
const TOGETHER: usize = 10;
/// Duration of a job in milliseconds: far shorter than a lease.
const WORK_MS: std::ops::Range<u64> = 20..150;
/// Polling interval for unfinished jobs.
const LOOK: Duration = Duration::from_millis(50);
/// Timeout of the last jobs. Jobs of a dead worker return after some leases.
const END: Duration = Duration::from_secs(120);

/// Limited property of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Number of running jobs, in total and by key.
    Slots,
    /// Number of starts in a time, in total and by key.
    Rates,
    /// Number of unfinished jobs with a name, which is one.
    Names,
}

impl Sort {
    pub(super) const ALL: [Self; 3] = [Self::Slots, Self::Rates, Self::Names];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Slots => "slots",
            Self::Rates => "rates",
            Self::Names => "names",
        }
    }

    pub(super) fn script_type(self) -> Result<ScriptType, String> {
        self.name().parse().map_err(|error| format!("{error}"))
    }

    fn route(self) -> Result<Route, ChaosError> {
        Ok(Route::to(self.script_type().map_err(ChaosError::Line)?))
    }

    pub(super) fn queue(self, broker: &Broker) -> Result<String, ChaosError> {
        Ok(self.route()?.queue(broker.keys()))
    }
}

/// Stored jobs: the sort of each, and its key or its unique name.
#[derive(Debug, Default)]
pub(super) struct Submitted {
    jobs: BTreeMap<JobId, (Sort, String)>,
    next: Vec<NewJob>,
}

impl Submitted {
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &JobId> {
        self.jobs.keys()
    }

    /// Returns these jobs as if they had been stored.
    #[cfg(test)]
    pub(super) fn of_all(jobs: impl Iterator<Item = (String, Sort, String)>) -> Self {
        let stored = jobs.map(|(id, sort, name)| (JobId::foreign(id), (sort, name)));
        Self {
            jobs: stored.collect(),
            next: Vec::new(),
        }
    }

    pub(super) fn of(&self, job: &str) -> Option<(Sort, &str)> {
        let (sort, name) = self.jobs.get(&JobId::foreign(job.to_owned()))?;
        Some((*sort, name))
    }

    /// Notes a job for [`Submitted::enqueue`]. The sort defines the meaning of `name`.
    pub(super) fn add(
        &mut self,
        sort: Sort,
        id: String,
        name: Option<&str>,
        ms: u64,
    ) -> Result<(), ChaosError> {
        let mut job = NewJob::new(JobId::foreign(id), sort.route()?, ms.to_string());
        let name = name.map(str::to_owned);
        match sort {
            Sort::Slots | Sort::Rates => job.key = name,
            Sort::Names => {
                job.unique = name.map(|name| Unique {
                    name,
                    until: Until::Done,
                    policy: OnDuplicate::Keep,
                });
            }
        }
        self.next.push(job);
        Ok(())
    }

    /// Stores the noted jobs. Jobs that are refused because their name is taken are dropped.
    pub(super) async fn enqueue(&mut self, broker: &Broker) -> Result<(), ChaosError> {
        let next = std::mem::take(&mut self.next);
        let outcomes = broker.enqueue(&next).await;
        for (job, outcomes) in next
            .into_iter()
            .zip(outcomes.map_err(|error| failed(&error))?)
        {
            let sort = Sort::ALL.into_iter().find(|sort| {
                let name = sort.name();
                job.route.script_type.as_str() == name
            });
            let name = job.key.or(job.unique.map(|unique| unique.name));
            match (outcomes, sort) {
                (Enqueued::Stored, Some(sort)) => {
                    self.jobs.insert(job.id, (sort, name.unwrap_or_default()));
                }
                (Enqueued::Kept(_), Some(Sort::Names)) => {}
                (outcomes, _) => return Err(failed(&format!("{} is {outcomes:?}", job.id))),
            }
        }
        Ok(())
    }
}

fn rate(rate: Result<Rate, meshwork_model::queue::RateError>) -> Result<Rate, ChaosError> {
    rate.map_err(|error| failed(&error))
}

/// Sets the limits.
pub(super) async fn configure(broker: &Broker) -> Result<(), ChaosError> {
    let slots = [
        QueueSetting::Concurrency(Some(SLOTS as u64)),
        QueueSetting::KeyConcurrency(Some(KEY_SLOTS as u64)),
        QueueSetting::Fair(true),
    ];
    let bucket = rate(Rate::bucket(PER_SECOND, 1000, BURST))?;
    let window = rate(Rate::window(KEY_PER_WINDOW, 1000))?;
    let rates = [
        QueueSetting::Rate(Some(bucket)),
        QueueSetting::KeyRate(Some(window)),
    ];
    for (sort, settings) in [(Sort::Slots, &slots[..]), (Sort::Rates, &rates[..])] {
        let set = broker.configure(&sort.queue(broker)?, settings).await;
        set.map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// Submits more jobs whenever few are unfinished, until it is stopped.
pub(super) async fn submit(
    broker: Broker,
    enough: Arc<AtomicBool>,
    seed: u64,
) -> Result<Submitted, ChaosError> {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut submitted, mut known) = (Submitted::default(), KnownQueues::default());
    let (mut looks, mut number) = (interval(LOOK), 0);
    while !enough.load(Ordering::SeqCst) {
        looks.tick().await;
        let stats = broker.stats(&mut known, false).await;
        let stats = stats.map_err(|error| failed(&error))?;
        for sort in Sort::ALL {
            let queue = sort.queue(&broker)?;
            let figures = stats.queues.iter().find(|figures| figures.queue == queue);
            let open = figures.map_or(0, |it| it.created.saturating_sub(it.finished + it.failed));
            if open >= OPEN {
                continue;
            }
            for _ in 0..TOGETHER {
                number += 1;
                let name = format!("key-{}", random.random_range(0..KEYS));
                let ms = random.random_range(WORK_MS);
                submitted.add(sort, format!("{}-{number}", sort.name()), Some(&name), ms)?;
            }
        }
        submitted.enqueue(&broker).await?;
    }
    Ok(submitted)
}

/// Waits until all jobs have ended. Returns those that failed.
pub(super) async fn all_done(
    broker: &Broker,
    submitted: &Submitted,
) -> Result<Vec<String>, ChaosError> {
    let until = Instant::now() + END;
    let mut looks = interval(LOOK);
    let mut left: Vec<JobId> = submitted.ids().cloned().collect();
    let mut lost = Vec::new();
    while !left.is_empty() && Instant::now() < until {
        looks.tick().await;
        let mut open = Vec::new();
        for chunk in left.chunks(MAX_ITEMS) {
            let statuses = broker.statuses(chunk).await;
            for (id, status) in chunk.iter().zip(statuses.map_err(|error| failed(&error))?) {
                match status {
                    Some(Status::Finished) => {}
                    Some(Status::Error) | None => lost.push(format!("{id} is {status:?}")),
                    Some(_) => open.push(id.clone()),
                }
            }
        }
        left = open;
    }
    lost.extend(left.iter().map(|id| format!("{id} has not ended")));
    Ok(lost)
}

/// Returns the unique names that no new job gets.
pub(super) async fn names_taken(
    broker: &Broker,
) -> Result<impl Iterator<Item = String>, ChaosError> {
    let mut last = Submitted::default();
    let names: Vec<_> = (0..KEYS).map(|key| format!("key-{key}")).collect();
    for name in &names {
        last.add(Sort::Names, format!("last-{name}"), Some(name), 0)?;
    }
    last.enqueue(broker).await?;
    let free = move |name: &String| last.of(&format!("last-{name}")).is_some();
    Ok(names.into_iter().filter(move |name| !free(name)))
}
