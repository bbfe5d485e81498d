//! The reasons why a job waits, as values and texts.

use std::fmt;

use meshwork_model::number::counted;
use meshwork_model::time;
use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
        /// Its state: `queued`, `delayed`, `waiting`, `running`, `finished`, `failed` or `cancelled`.
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
        /// Number of jobs of the key that run, if they are as many as may.
        #[serde(skip_serializing_if = "Option::is_none")]
        running: Option<u64>,
        /// The rate of the key, as `100/min`, if it does not permit a start now.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate: Option<String>,
        /// Time until the key's next start by that rate, in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
    },
    /// The job is an open approval, or waits for one.
    Approval {
        /// The flow.
        flow: u32,
        /// Name of the approval in the flow.
        name: String,
        /// Its question.
        question: String,
        /// Time of its refusal without an answer, in milliseconds since 1970.
        until_ms: Option<u64>,
    },
    /// The job is a pause of a flow, or waits for one.
    Pause {
        /// Id of the pause.
        job: String,
        /// Its end, in milliseconds since 1970.
        until_ms: Option<u64>,
    },
    /// The job of a flow ends with a message, or waits for such a job.
    Message {
        /// Id of that job.
        job: String,
        /// Type of the message that an actor has to send; `None` for the answer of another context.
        message_type: Option<String>,
        /// The actor that has to send it.
        from: Option<u32>,
    },
    /// The job is a `foreach` of a flow whose items run, or waits for one.
    Items {
        /// Id of the `foreach`.
        job: String,
        /// Number of items that have ended.
        ended: usize,
        /// Number of all items.
        total: usize,
    },
    /// The next step of the job's flow has not been taken.
    Step {
        /// The flow.
        flow: u32,
    },
    /// The flow of the job has lost its plan, and never goes on.
    NoPlan {
        /// The flow.
        flow: u32,
    },
    /// All slots of the workers that take jobs of its queue are busy.
    Busy {
        /// Number of these workers.
        workers: usize,
        /// Number of their slots.
        slots: usize,
    },
    /// A worker holds its id and has no free slot for it.
    Prefetched {
        /// The worker.
        worker: String,
    },
    /// No queue and no worker holds its id.
    Lost,
    /// The job counts as running, but the lease of its worker is over.
    LeaseOver {
        /// The worker.
        worker: String,
        /// The end of the lease, in milliseconds since 1970; `None` if there is none.
        ended_ms: Option<u64>,
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
            Self::Paused { .. }
            | Self::Concurrency { .. }
            | Self::Rate { .. }
            | Self::Key { .. }
            | Self::Position { .. } => self.limit(f),
            Self::Approval { .. }
            | Self::Pause { .. }
            | Self::Message { .. }
            | Self::Items { .. }
            | Self::Step { .. }
            | Self::NoPlan { .. } => self.flow(f),
            Self::Busy { .. }
            | Self::Prefetched { .. }
            | Self::Lost
            | Self::LeaseOver { .. }
            | Self::NoWorker { .. }
            | Self::QuietWorkers { .. }
            | Self::FaultyWorker { .. } => self.worker(f),
        }
    }
}

impl WaitReason {
    /// Writes a limit of the queue, or a place in it.
    fn limit(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused { .. } => f.write_str("its queue is paused"),
            Self::Concurrency { limit } => {
                write!(f, "{limit} of its queue run, as many as may")
            }
            Self::Rate { rate, wait_ms } => {
                let wait = time::duration(*wait_ms);
                write!(f, "its queue starts {rate}; the next in {wait}")
            }
            Self::Key {
                key,
                ahead,
                running,
                rate,
                wait_ms,
            } => {
                write!(
                    f,
                    "it is not the turn of its key {key}; {ahead} of it are before this one"
                )?;
                if let Some(running) = running {
                    write!(f, "; {running} of it run, as many as may")?;
                }
                match (rate, wait_ms) {
                    (Some(rate), Some(ms)) => {
                        write!(
                            f,
                            "; the key starts {rate}, the next in {}",
                            time::duration(*ms)
                        )
                    }
                    _ => Ok(()),
                }
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
            _ => Ok(()),
        }
    }

    /// Writes what the flow of the job waits for.
    fn flow(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Approval {
                flow,
                name,
                question,
                until_ms,
            } => {
                write!(
                    f,
                    "an approval is open: {question}: answer with `meshwork flow approve {flow} {name}`"
                )?;
                until(f, *until_ms)
            }
            Self::Pause { job, until_ms } => {
                write!(f, "{job} pauses the flow")?;
                until(f, *until_ms)
            }
            Self::Message {
                job,
                message_type,
                from,
            } => match (message_type, from) {
                (Some(kind), Some(from)) => {
                    write!(f, "{job} waits for a message {kind} of actor {from}")
                }
                _ => write!(f, "{job} runs in another context, whose answer is open"),
            },
            Self::Items { job, ended, total } => {
                write!(f, "{ended} of {total} items of {job} have ended")
            }
            Self::Step { flow } => {
                write!(
                    f,
                    "the next step of flow {flow} is due: a worker of its context takes it"
                )
            }
            Self::NoPlan { flow } => {
                write!(
                    f,
                    "the plan of its flow {flow} is gone: delete the flow, and submit it again"
                )
            }
            _ => Ok(()),
        }
    }

    /// Writes what the workers do.
    fn worker(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy { workers, slots } => {
                let of = counted(*workers, "worker");
                match *slots {
                    1 => write!(f, "the slot of {of} is busy"),
                    slots => write!(f, "all {slots} slots of {of} are busy"),
                }
            }
            Self::Prefetched { worker } => {
                write!(f, "worker {worker} has prefetched it, and runs other jobs")
            }
            Self::Lost => f.write_str(
                "no queue holds its id: a worker finds it within two minutes, and queues it again",
            ),
            Self::LeaseOver { worker, ended_ms } => {
                write!(f, "worker {worker} has lost it: its lease is over")?;
                if let Some(ended) = ended_ms {
                    write!(f, " since {}", time::iso(*ended))?;
                }
                f.write_str(", and another worker takes the job over")
            }
            Self::NoWorker { queue } => write!(f, "no worker listens to {queue}: start one"),
            Self::QuietWorkers { queue, workers } => {
                let workers = workers.join(", ");
                write!(f, "only quiet workers listen to {queue}: {workers}")
            }
            Self::FaultyWorker { worker, fault } => {
                write!(f, "worker {worker} cannot start jobs of its type: {fault}")
            }
            _ => Ok(()),
        }
    }
}

/// Writes the end of a wait.
fn until(f: &mut fmt::Formatter<'_>, until_ms: Option<u64>) -> fmt::Result {
    match until_ms {
        Some(until) => write!(f, ", until {}", time::iso(until)),
        None => Ok(()),
    }
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
