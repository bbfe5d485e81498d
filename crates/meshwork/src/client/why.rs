//! Reasons why a job waits.

use meshwork_macros::boxed;
use std::fmt;

use meshwork_broker::{Blocker, OpenPrerequisite};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::state::{State, Status};
use meshwork_model::time;
use serde::Serialize;

use super::Client;
use crate::{Error, WorkerInfo};

/// Greatest number of quiet or faulty workers that are named.
const MAX_NAMED: usize = 10;

/// A reason why a job waits. Its text ([`fmt::Display`]) is for people.
///
/// ```
/// use std::time::Duration;
/// use meshwork::{Client, WaitReason};
///
/// #[meshwork::job]
/// struct Pay { order: u64 }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), meshwork::Error> {
/// let client = Client::in_memory();
/// let job = client.enqueue(Pay { order: 7 }).delay(Duration::from_secs(60)).await?;
/// for reason in client.why_of(job.id()).await? {
///     println!("{reason}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitReason {
    /// A prerequisite has not ended.
    Prerequisite {
        /// Its id: of a job, or in a context of a message or a flow.
        id: String,
        /// The status in its record; `None` if it does not exist.
        status: Option<String>,
        /// Its state, in the words of [`State`].
        state: Option<String>,
    },
    /// A gate of the context is closed.
    Gate {
        /// Its name.
        name: String,
    },
    /// The job is a callback of a batch that has not ended.
    Batch {
        /// The batch.
        batch: String,
        /// The event: `done` or `success`.
        event: String,
    },
    /// The job is delayed, or waits for its retry.
    Time {
        /// In milliseconds since 1970.
        due_ms: u64,
    },
    /// The job ends in error if no worker begins it by this time.
    StartTimeout {
        /// In milliseconds since 1970.
        until_ms: u64,
    },
    /// Its queue is paused.
    Paused {
        /// The queue.
        queue: String,
    },
    /// As many jobs of its queue run as may.
    Concurrency {
        /// The limit.
        limit: u64,
    },
    /// The rate of its queue does not permit a start now.
    Rate {
        /// The rate, as `100/min`.
        rate: String,
        /// Time until the next start, in milliseconds.
        wait_ms: u64,
    },
    /// Other jobs of its concurrency key come first.
    Key {
        /// The key.
        key: String,
        /// Number of jobs of the key before it.
        ahead: u64,
    },
    /// No live worker of Meshwork takes jobs of its queue. Foreign workers are not counted.
    NoWorker {
        /// The queue.
        queue: String,
    },
    /// All workers that could take it are quiet.
    QuietWorkers {
        /// The queue.
        queue: String,
        /// Their ids, at most ten.
        workers: Vec<String>,
    },
    /// A worker of its queue cannot start jobs of its type.
    FaultyWorker {
        /// Id of the worker.
        worker: String,
        /// The fault.
        fault: String,
    },
    /// Other jobs of its queue come first.
    Position {
        /// The list of its queue.
        queue: String,
        /// Number of jobs before it in the list; at least this many if not `exact`.
        ahead: u64,
        /// False if the job is behind the first 10,000 jobs of the list.
        exact: bool,
        /// Number of waiting jobs of higher priorities.
        higher: u64,
    },
}

impl WaitReason {
    /// Describes the reason with the printed name of its queue.
    #[must_use]
    pub fn text(&self, queue_name: impl Fn(&str) -> String) -> String {
        let mut reason = self.clone();
        if let Self::NoWorker { queue } | Self::QuietWorkers { queue, .. } = &mut reason {
            *queue = queue_name(queue);
        }
        reason.to_string()
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prerequisite { id, state, .. } => {
                let state = state.as_deref().unwrap_or("gone");
                write!(f, "it waits for {id} ({state})")
            }
            Self::Gate { name } => write!(f, "the gate {name} is closed"),
            Self::Batch { batch, event } => {
                write!(f, "it waits for batch {batch}, as its callback on {event}")
            }
            Self::Time { due_ms } => write!(f, "its next run is at {}", time::iso(*due_ms)),
            Self::StartTimeout { until_ms } => {
                let until = time::iso(*until_ms);
                write!(f, "it ends in error if no worker begins it by {until}")
            }
            Self::Paused { .. } => f.write_str("its queue is paused"),
            Self::Concurrency { limit } => {
                write!(f, "{limit} of its queue run, as many as may")
            }
            Self::Rate { rate, wait_ms } => {
                write!(f, "its queue starts {rate}; the next in {wait_ms} ms")
            }
            Self::Key { key, ahead } => write!(
                f,
                "it is not the turn of its key {key}; {ahead} of it are before this one"
            ),
            Self::NoWorker { queue } => write!(f, "no worker listens to {queue}: start one"),
            Self::QuietWorkers { queue, workers } => {
                let workers = workers.join(", ");
                write!(f, "only quiet workers listen to {queue}: {workers}")
            }
            Self::FaultyWorker { worker, fault } => {
                write!(f, "worker {worker} cannot start jobs of its type: {fault}")
            }
            Self::Position {
                ahead,
                exact,
                higher,
                ..
            } => {
                let at_least = if *exact { "" } else { "at least " };
                write!(f, "jobs before it in its queue: {at_least}{ahead}")?;
                match higher {
                    0 => Ok(()),
                    higher => write!(f, "; of higher priorities: {higher}"),
                }
            }
        }
    }
}

impl Client {
    /// Returns all reasons why a job waits; none for a job that runs or has ended. The number of commands does not
    /// depend on the number of stored jobs.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn why(&self, job: &Job) -> Result<Vec<WaitReason>, Error> {
        let waits = job.status() == Some(Status::WaitingForPrerequisites);
        if !waits && job.status() != Some(Status::Dispatched) {
            return Ok(Vec::new());
        }
        let mut reasons = Vec::new();
        if waits {
            reasons.extend(self.open_prerequisites(job).await?);
        }
        for blocker in self.broker.blockers(job).await? {
            reasons.extend(self.of_blocker(job, blocker));
        }
        let until = job.start_by_ms;
        reasons.extend(until.map(|until_ms| WaitReason::StartTimeout { until_ms }));
        reasons.extend(self.of_workers(job).await?);
        let aside = |reason: &WaitReason| {
            matches!(reason, WaitReason::Time { .. } | WaitReason::Key { .. })
        };
        if !waits && !reasons.iter().any(aside) {
            let list = self.broker.queue_of(job);
            let position = self.broker.position(&list, &job.job_id()).await?;
            reasons.extend(position.map(|position| WaitReason::Position {
                queue: position.queue,
                ahead: position.ahead,
                exact: position.exact,
                higher: position.higher,
            }));
        }
        Ok(reasons)
    }

    /// Same as [`Client::why`], for the job of an id.
    ///
    /// # Errors
    /// The job does not exist, or a call to the server fails.
    #[boxed]
    pub async fn why_of(&self, id: &JobId) -> Result<Vec<WaitReason>, Error> {
        let job = self.status(id).await?;
        self.why(&job).await
    }

    async fn open_prerequisites(&self, job: &Job) -> Result<Vec<WaitReason>, Error> {
        let open = self.broker.open_prerequisites(job).await?;
        let reason = |open| match open {
            OpenPrerequisite::Ends {
                id,
                status,
                delayed,
            } => Some(WaitReason::Prerequisite {
                id: id.to_string(),
                state: status.as_deref().map(|status| state(status, delayed)),
                status,
            }),
            OpenPrerequisite::Gate(name) => Some(WaitReason::Gate { name }),
            _ => None,
        };
        let mut reasons: Vec<_> = open.into_iter().filter_map(reason).collect();
        if let Some((event, batch)) = job.callback.as_deref().and_then(|of| of.split_once(' ')) {
            reasons.push(WaitReason::Batch {
                batch: batch.to_owned(),
                event: event.to_owned(),
            });
        }
        Ok(reasons)
    }

    fn of_blocker(&self, job: &Job, blocker: Blocker) -> Option<WaitReason> {
        Some(match blocker {
            Blocker::Time(due_ms) => WaitReason::Time { due_ms },
            Blocker::Paused => WaitReason::Paused {
                queue: self.broker.queue_of(job),
            },
            Blocker::Key { key, ahead } => WaitReason::Key {
                key,
                ahead: ahead as u64,
            },
            Blocker::Concurrency(limit) => WaitReason::Concurrency { limit },
            Blocker::Rate(rate, wait_ms) => WaitReason::Rate {
                rate: rate.to_string(),
                wait_ms,
            },
            _ => return None,
        })
    }

    /// Returns the reasons for which no worker takes a job.
    async fn of_workers(&self, job: &Job) -> Result<Vec<WaitReason>, Error> {
        let queue = self.broker.queue_of(job);
        let is_listened = self.broker.is_listened(&queue).await?;
        let workers = self.workers_of(&queue).await?;
        let is_able = |worker: &WorkerInfo| !worker.quiet && worker.fault.is_none();
        let is_served = workers.is_empty() || workers.iter().any(is_able);
        if is_listened && is_served {
            return Ok(Vec::new());
        }
        let name = |worker: &WorkerInfo| {
            let named = worker.worker.clone();
            named.unwrap_or_else(|| worker.instance.clone())
        };
        let faulty = workers.iter().filter_map(|worker| {
            Some(WaitReason::FaultyWorker {
                worker: name(worker),
                fault: worker.fault.clone()?,
            })
        });
        let mut reasons: Vec<_> = faulty.take(MAX_NAMED).collect();
        let quiet = workers.iter().filter(|worker| worker.quiet);
        let quiet: Vec<_> = quiet.take(MAX_NAMED).map(name).collect();
        if is_served {
            reasons = vec![WaitReason::NoWorker { queue }];
        } else if !quiet.is_empty() {
            reasons.push(WaitReason::QuietWorkers {
                queue,
                workers: quiet,
            });
        }
        Ok(reasons)
    }

    /// Returns the live workers of Meshwork that may take jobs of a queue, by its type, group and instance.
    async fn workers_of(&self, queue: &str) -> Result<Vec<WorkerInfo>, Error> {
        let Some(parts) = self.broker.keys().queue_parts(queue) else {
            return Ok(Vec::new());
        };
        let all = self.broker.workers_of_type(&parts.script_type).await?;
        let all = all.iter().map(|(key, value)| WorkerInfo::read(key, value));
        let is = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|it| it == is);
        let takes = |worker: &WorkerInfo| {
            is(&parts.group, &worker.group) && is(&parts.instance, &worker.instance)
        };
        Ok(all.filter(takes).collect())
    }
}

/// Returns the word for the state of a job, or the status of anything else.
fn state(status: &str, delayed: bool) -> String {
    let state = match status.parse::<Status>() {
        Ok(Status::Dispatched) if delayed => State::Delayed,
        Ok(status) => status.into(),
        Err(_) => return status.to_owned(),
    };
    state.as_str().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_an_object_with_its_name() {
        let reason = WaitReason::Position {
            queue: "q".to_owned(),
            ahead: 3,
            exact: true,
            higher: 0,
        };
        let json = serde_json::to_string(&reason).unwrap();
        let expected = r#"{"reason":"position","queue":"q","ahead":3,"exact":true,"higher":0}"#;
        assert_eq!(json, expected);
        assert_eq!(reason.to_string(), "jobs before it in its queue: 3");
    }
}
