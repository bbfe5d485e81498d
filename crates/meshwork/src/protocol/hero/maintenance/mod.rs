//! Maintenance: tasks of the leader, and promotion of delayed jobs. Each task is a file; a [`TaskList`] runs them.
//! Delayed jobs and schedules are on time even if a worker dies: one worker gets the wakeup for the earliest job and
//! promotes it, the leader does so too, and each other worker checks a little later. See also [`leader`].

mod batch_monitor;
mod cron;
mod dependency_resolver;
mod history;
mod leader;
mod orphan_rescuer;
#[cfg(feature = "scripts")]
mod plain_flows;
mod promoter;
mod pruner;
mod task;

use std::time::Duration;

#[cfg(feature = "scripts")]
use meshwork_broker::flow::Flows;
use meshwork_broker::{Broker, Error, LeaderTask, Rescue, Retention};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

pub(super) use leader::{LEADS_FOR, Leadership, POLL_EVERY};
use meshwork_worker::dedicated_thread::{Never, best_effort};
pub(super) use orphan_rescuer::move_away;
pub(super) use promoter::{NextDue, wait_for_wakeups};
use task::{Ran, Task, TaskList};

/// Longest time of the tasks of one poll, so that renewals and cancel requests are not delayed.
const TIME_SLICE: Duration = Duration::from_millis(500);
/// Longest time of one task, and the pause after a failed one.
const TASK_TIMEOUT: Duration = POLL_EVERY;
/// Extra time of a leader after its next poll is due. After it, another worker leads certainly.
const SLACK: Duration = Duration::from_millis(300);
/// Delay in milliseconds after which workers other than the leader look for a due job or slot. It is short, so that a
/// job is on time without the leader, and random, so that not all look at once.
const BACKUP_JITTER: std::ops::Range<u64> = 20..60;

/// Runs the tasks until the connection breaks. Calls `more` when the leader has not run all that is due.
///
/// # Errors
/// The connection breaks.
pub(super) async fn maintain(
    broker: &Broker,
    retention: Retention,
    mut polls: watch::Receiver<Leadership>,
    (next_due, wakeup): (&NextDue, &Notify),
    more: &(dyn Fn() + Sync),
) -> Result<Never, Error> {
    let mut noted = next_due.subscribe();
    let mut maintenance = Maintenance {
        broker,
        tasks: tasks(broker, retention),
        backup: None,
        until: Instant::now(),
        noted: None,
    };
    loop {
        let next = maintenance.next();
        tokio::select! {
            Ok(()) = polls.changed() => {
                let leadership = polls.borrow_and_update().clone();
                maintenance.note_rescue().await?;
                if leadership.leads {
                    maintenance.lead(&leadership).await?;
                    if maintenance.tasks.is_due() {
                        more();
                    }
                } else {
                    maintenance.stand_by(&leadership);
                }
            }
            () = wakeup.notified() => {
                maintenance.keep_on();
                maintenance.promote().await?;
            }
            Ok(()) = noted.changed() => {
                noted.mark_unchanged();
                if let Some(at) = next_due.take() {
                    maintenance.promote_at(at);
                }
            }
            () = at(next) => maintenance.promote().await?,
        }
    }
}

/// Returns all tasks, in order.
fn tasks(broker: &Broker, retention: Retention) -> TaskList {
    let mut tasks = TaskList::new(TASK_TIMEOUT);
    tasks.add(Ran::ByAll, cron::Cron::new(broker));
    tasks.add(Ran::ByAll, promoter::Promoter::new(broker));
    for name in LeaderTask::ALL {
        let task: Box<dyn Task> = match name {
            LeaderTask::ReclaimDead => Box::new(orphan_rescuer::DeadProcesses::new(broker)),
            LeaderTask::ResolveDependents => {
                Box::new(dependency_resolver::DependencyResolver::new(broker))
            }
            LeaderTask::CheckOrphans => Box::new(orphan_rescuer::Watchdog::new(broker)),
            LeaderTask::SweepBatches => {
                Box::new(batch_monitor::BatchMonitor::new(broker, retention))
            }
        };
        tasks.add_requested(name, task);
    }
    tasks.add(Ran::ByLeader, pruner::Pruner::new(broker, retention));
    tasks.add(Ran::ByLeader, history::History::new(broker));
    tasks.add(Ran::ByLeader, orphan_rescuer::OrphanedPrefetch::new(broker));
    tasks.add(Ran::ByLeader, orphan_rescuer::ForeignScan::new(broker));
    #[cfg(feature = "scripts")]
    if let Some(flows) = Flows::of(broker) {
        tasks.add(Ran::ByLeader, plain_flows::PlainFlowScan::new(flows));
    }
    tasks
}

async fn at(next: Option<Instant>) {
    match next {
        Some(next) => tokio::time::sleep_until(next).await,
        None => std::future::pending().await,
    }
}

struct Maintenance<'a> {
    broker: &'a Broker,
    tasks: TaskList,
    /// Time of this worker's backup promotion.
    backup: Option<Instant>,
    /// End of this worker's leadership, unless it is extended.
    until: Instant,
    /// Time of the last note of this worker's rule for orphans.
    noted: Option<Instant>,
}

impl Maintenance<'_> {
    fn next(&self) -> Option<Instant> {
        let own = self.tasks.next_of_all();
        own.filter(|own| *own <= self.until)
            .into_iter()
            .chain(self.backup)
            .min()
    }

    /// Runs all due tasks. Repeats those that have more work while there is time.
    async fn lead(&mut self, leadership: &Leadership) -> Result<(), Error> {
        let began = Instant::now();
        self.keep_on();
        if let Some(due) = leadership.due {
            self.promote_at(began + due);
        }
        self.tasks.expect_leader_tasks(&leadership.tasks);
        while self.tasks.is_due() && began.elapsed() < TIME_SLICE {
            self.run(Ran::ByLeader).await?;
        }
        Ok(())
    }

    /// Notes the rule for orphans, since another worker may lead.
    async fn note_rescue(&mut self) -> Result<(), Error> {
        if self
            .noted
            .is_some_and(|at| at.elapsed() < Rescue::NOTE_EVERY)
        {
            return Ok(());
        }
        let note = self.broker.note_rescue();
        let noted = best_effort(self.broker.outages(), "sweep", TASK_TIMEOUT, note).await?;
        self.noted = noted.map(|()| Instant::now());
        Ok(())
    }

    /// Fires due schedules and promotes due jobs.
    async fn promote(&mut self) -> Result<(), Error> {
        self.backup = None;
        self.tasks.expect_tasks_of_all(Instant::now());
        self.run(Ran::ByAll).await
    }

    async fn run(&mut self, by: Ran) -> Result<(), Error> {
        if self.tasks.run_due(self.broker.outages(), by).await? {
            self.keep_on();
        }
        Ok(())
    }

    /// Continues to promote until another worker certainly leads.
    fn keep_on(&mut self) {
        self.until = self.until.max(Instant::now() + POLL_EVERY + SLACK);
    }

    /// Schedules a backup promotion, since another worker leads.
    fn stand_by(&mut self, leadership: &Leadership) {
        let due = leadership.due.filter(|due| *due <= POLL_EVERY + SLACK);
        self.backup = due.map(|due| {
            let late = Duration::from_millis(rand::random_range(BACKUP_JITTER));
            Instant::now() + due + late
        });
    }

    fn promote_at(&mut self, at: Instant) {
        self.until = self.until.max(at);
        self.tasks.expect_tasks_of_all(at);
    }
}
