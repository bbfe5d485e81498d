//! Maintenance: tasks of the leader, and promotion of delayed jobs. Each task is a file; a [`TaskList`] runs them. The
//! [`leader`] of a second runs all tasks. Delayed jobs and schedules are on time although a worker dies: a worker that
//! gets the wakeup of the earliest job promotes it, the leader does too, and each other worker checks a little later.

mod batch_monitor;
mod cron;
mod dependency_resolver;
mod leader;
mod orphan_rescuer;
mod promoter;
mod pruner;
mod task;

use std::time::Duration;

use meshwork_broker::{Broker, Error, Retention};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::worker::dedicated_thread::Never;
pub(super) use leader::{LEADS_FOR, Leadership, POLL_EVERY};
pub(super) use promoter::{NextDue, wait_for_wakeups};
use task::{Ran, TaskList};

/// Most time of one poll's tasks: renewals and cancel requests get the rest of the second.
const TIME_SLICE: Duration = Duration::from_millis(500);
/// Timeout of one task, and the pause after one that failed.
const TASK_TIMEOUT: Duration = POLL_EVERY;
/// Extra time of a leader past its next poll: by then another one leads for sure.
const SLACK: Duration = Duration::from_millis(300);
/// After a job or slot is due, workers that do not lead look for it, each some time in this range of milliseconds: so soon
/// that a job is on time although the leader is dead, and not all at once.
const BACKUP_JITTER: std::ops::Range<u64> = 20..60;

/// Runs the tasks until the connection breaks.
///
/// # Errors
/// If the connection breaks.
pub(super) async fn maintain(
    broker: &Broker,
    retention: Retention,
    mut polls: watch::Receiver<Leadership>,
    next_due: &NextDue,
    wakeup: &Notify,
) -> Result<Never, Error> {
    let mut noted = next_due.subscribe();
    let mut maintenance = Maintenance {
        broker,
        tasks: tasks(broker, retention),
        backup: None,
        until: Instant::now(),
    };
    loop {
        let next = maintenance.next();
        tokio::select! {
            Ok(()) = polls.changed() => {
                let leadership = polls.borrow_and_update().clone();
                if leadership.leads {
                    maintenance.lead(&leadership).await?;
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

/// All tasks, in their order.
fn tasks(broker: &Broker, retention: Retention) -> TaskList {
    let mut tasks = TaskList::new(TASK_TIMEOUT);
    tasks.add(Ran::ByAll, cron::Cron::new(broker));
    tasks.add(Ran::ByAll, promoter::Promoter::new(broker));
    tasks.add(Ran::ByLeader, orphan_rescuer::DeadProcesses::new(broker));
    tasks.add(
        Ran::ByLeader,
        dependency_resolver::DependencyResolver::new(broker),
    );
    tasks.add(Ran::ByLeader, orphan_rescuer::Watchdog::new(broker));
    tasks.add(Ran::ByLeader, pruner::Pruner::new(broker, retention));
    tasks.add(
        Ran::ByLeader,
        batch_monitor::BatchMonitor::new(broker, retention),
    );
    tasks.add(Ran::ByLeader, orphan_rescuer::OrphanedPrefetch::new(broker));
    tasks.add(Ran::ByLeader, orphan_rescuer::ForeignScan::new(broker));
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
}

impl Maintenance<'_> {
    fn next(&self) -> Option<Instant> {
        let own = self.tasks.next_of_all();
        own.filter(|own| *own <= self.until)
            .into_iter()
            .chain(self.backup)
            .min()
    }

    /// Runs all tasks that are due; those that have more to do again, while there is time.
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

    /// Runs what is due: slots of schedules, and jobs whose delay is over.
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

    /// It promotes what becomes due until another worker leads for sure.
    fn keep_on(&mut self) {
        self.until = self.until.max(Instant::now() + POLL_EVERY + SLACK);
    }

    /// Another worker leads: looks later for what that one should have promoted.
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
