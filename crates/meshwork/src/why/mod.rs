//! Finds the reasons why a job waits.

#[cfg(feature = "scripts")]
mod of_flow;
mod reason;

use meshwork_macros::boxed;

use meshwork_broker::{Blocker, OpenPrerequisite};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::state::{State, Status};

use crate::Client;
#[cfg(feature = "scripts")]
use crate::flow::{FlowClient, FlowError, FlowId};
use crate::{Error, WorkerInfo};

pub use reason::WaitReason;

/// Greatest number of quiet or faulty workers that are named.
const MAX_NAMED: usize = 10;

impl Client {
    /// Returns all reasons why a job waits; none for a job that a worker runs or that has ended. An open approval, a
    /// pause and a `foreach` of a flow count as running: the reasons say what for. The number of commands does not depend
    /// on the number of stored jobs, but for those of its flow.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn why(&self, job: &Job) -> Result<Vec<WaitReason>, Error> {
        let waits = job.status() == Some(Status::WaitingForPrerequisites);
        let runs = job.status() == Some(Status::Started);
        if !waits && !runs && job.status() != Some(Status::Dispatched) {
            return Ok(Vec::new());
        }
        #[cfg(feature = "scripts")]
        if let Some(reasons) = self.of_flow(job).await? {
            return Ok(reasons);
        }
        if runs {
            return self.of_lease(job).await;
        }
        let mut reasons = Vec::new();
        if waits {
            reasons.extend(self.open_prerequisites(job).await?);
        }
        for blocker in self.broker().blockers(job).await? {
            reasons.extend(self.of_blocker(job, blocker));
        }
        let until = job.start_by_ms;
        reasons.extend(until.map(|until_ms| WaitReason::StartTimeout { until_ms }));
        let is_blocked = !reasons.is_empty();
        reasons.extend(self.of_workers(job, is_blocked || waits).await?);
        let aside = |reason: &WaitReason| {
            matches!(reason, WaitReason::Time { .. } | WaitReason::Key { .. })
        };
        if !waits && !reasons.iter().any(aside) {
            reasons.extend(self.of_place(job).await?);
        }
        Ok(reasons)
    }

    /// Returns why the flow of a finished job skipped it, for people; `None` for all other jobs.
    ///
    /// # Errors
    /// A call to the server fails.
    #[cfg(feature = "scripts")]
    #[boxed]
    pub async fn why_skipped(&self, job: &Job) -> Result<Option<String>, Error> {
        let is_finished = job.status() == Some(Status::Finished);
        // A job that was begun was not skipped.
        let flow = job.flow.filter(|_| is_finished && job.started_ms.is_none());
        let flows = flow.map(|flow| (FlowClient::new(self.broker()), flow));
        let Some((Ok(flows), flow)) = flows else {
            return Ok(None);
        };
        match of_flow::skipped(&flows, FlowId(flow), &job.id).await {
            Ok(cause) => Ok(cause),
            Err(FlowError::Broker(error)) => Err(error.into()),
            // The flow is gone by now.
            Err(_) => Ok(None),
        }
    }

    /// Returns what the flow of a job waits for; `None` if the job is in no flow, or its queue and workers decide.
    #[cfg(feature = "scripts")]
    async fn of_flow(&self, job: &Job) -> Result<Option<Vec<WaitReason>>, Error> {
        let Some(flow) = job.flow else {
            return Ok(None);
        };
        let Ok(flows) = FlowClient::new(self.broker()) else {
            return Ok(None);
        };
        match of_flow::waits(&flows, FlowId(flow), &job.id).await {
            Ok(reasons) => Ok(reasons),
            Err(FlowError::Broker(error)) => Err(error.into()),
            Err(FlowError::NoPlan(_)) => Ok(Some(vec![WaitReason::NoPlan { flow }])),
            Err(_) => Ok(None),
        }
    }

    /// Returns the loss of a running job whose worker does not renew its lease.
    async fn of_lease(&self, job: &Job) -> Result<Vec<WaitReason>, Error> {
        // A plain runner has no lease.
        let Some(worker) = &job.worker else {
            return Ok(Vec::new());
        };
        let ended_ms = self.broker().lease_until(&job.job_id()).await;
        let ended_ms = self.broker().or_nothing(ended_ms)?;
        let now = self.broker().now().await?;
        if ended_ms.is_some_and(|ended| ended >= now) || self.has_changed(job).await? {
            return Ok(Vec::new());
        }
        let worker = worker.clone();
        Ok(vec![WaitReason::LeaseOver { worker, ended_ms }])
    }

    /// Returns the place of a job that may run.
    async fn of_place(&self, job: &Job) -> Result<Option<WaitReason>, Error> {
        let (list, id) = (self.broker().queue_of(job), job.job_id());
        let broker = self.broker();
        if let Some(position) = broker.or_nothing(broker.position(&list, &id).await)? {
            return Ok(Some(WaitReason::Position {
                queue: position.queue,
                ahead: position.ahead,
                exact: position.exact,
                higher: position.higher,
            }));
        }
        if let Some(worker) = broker.or_nothing(broker.prefetched_by(&id).await)? {
            return Ok(Some(WaitReason::Prefetched { worker }));
        }
        Ok((!self.has_changed(job).await?).then_some(WaitReason::Lost))
    }

    /// Returns true if the job has another status by now, or is gone.
    async fn has_changed(&self, job: &Job) -> Result<bool, Error> {
        let now = self.broker().statuses(&[job.job_id()]).await?;
        Ok(now != [job.status()])
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
        let open = self.broker().open_prerequisites(job).await?;
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
                queue: self.broker().queue_of(job),
            },
            Blocker::Key {
                key,
                ahead,
                full,
                rate,
            } => WaitReason::Key {
                key,
                ahead: ahead as u64,
                running: full,
                wait_ms: rate.as_ref().map(|(_, ms)| *ms),
                rate: rate.map(|(rate, _)| rate.to_string()),
            },
            Blocker::Concurrency(limit) => WaitReason::Concurrency { limit },
            Blocker::Rate(rate, wait_ms) => WaitReason::Rate {
                rate: rate.to_string(),
                wait_ms,
            },
            _ => return None,
        })
    }

    /// Returns the reasons for which no worker takes a job; busy ones only if nothing else keeps it.
    async fn of_workers(&self, job: &Job, is_kept: bool) -> Result<Vec<WaitReason>, Error> {
        let queue = self.broker().queue_of(job);
        let broker = self.broker();
        let is_listened = broker.or_nothing(broker.is_listened(&queue).await)?;
        let workers = self.workers_of(&queue).await?;
        let is_able = |worker: &WorkerInfo| !worker.quiet && worker.fault.is_none();
        let is_served = workers.is_empty() || workers.iter().any(is_able);
        if is_listened && is_served {
            let busy = busy(workers.iter().filter(|worker| is_able(worker)));
            return Ok(busy.filter(|_| !is_kept).into_iter().collect());
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
        let broker = self.broker();
        let Some(parts) = broker.keys().queue_parts(queue) else {
            return Ok(Vec::new());
        };
        let all = broker.or_nothing(broker.workers_of_type(&parts.script_type).await)?;
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

/// Returns the workers if all of their slots are busy.
fn busy<'w>(workers: impl Iterator<Item = &'w WorkerInfo>) -> Option<WaitReason> {
    let (mut count, mut slots) = (0, 0);
    for worker in workers {
        let of_worker = worker.slots?;
        if worker.in_flight? < of_worker {
            return None;
        }
        (count, slots) = (count + 1, slots + of_worker);
    }
    (count > 0).then_some(WaitReason::Busy {
        workers: count,
        slots,
    })
}
