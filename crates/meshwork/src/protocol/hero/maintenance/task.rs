//! Tasks of maintenance, and the list that runs due ones.

use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_broker::{Error, LeaderTask, Outages};
use tokio::time::Instant;

use meshwork_worker::dedicated_thread::best_effort;

/// A task of maintenance. Its state may be lost with the worker; another worker continues.
pub(crate) trait Task: Send {
    /// Returns the name for logs.
    fn name(&self) -> &'static str;

    /// Runs a bounded part. Returns the time of the next one.
    ///
    /// # Errors
    /// A call to the server fails; the task is due again after a pause.
    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>>;
}

/// Interval of a leader's task without requests. A poll requests a task within a second of work for it, so this can be
/// long, and an idle worker makes few calls.
const UNREQUESTED: Duration = Duration::from_secs(10);

/// Outcome of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// True if there was work.
    pub(crate) worked: bool,
    /// Time until the next run; zero: at once. `None`: the task runs on request, the leader's tasks at its next poll.
    pub(crate) next: Option<Duration>,
}

impl Outcome {
    /// Returns an outcome that runs again at once, or on the next request.
    pub(crate) fn more(more: bool) -> Self {
        let next = if more { Duration::ZERO } else { UNREQUESTED };
        Self {
            worked: more,
            next: Some(next),
        }
    }
}

/// Which workers run a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    /// The leader, after a poll.
    ByLeader,
    /// Each worker that knows of work.
    ByAll,
}

struct Entry {
    by: Ran,
    /// The name under which a poll requests the task.
    requested_as: Option<LeaderTask>,
    task: Box<dyn Task>,
    due: Option<Instant>,
}

/// Tasks of one worker, each with its due time.
pub(crate) struct TaskList {
    entries: Vec<Entry>,
    /// Longest time of a task, and the pause after a failed one.
    timeout: Duration,
}

impl TaskList {
    pub(crate) fn new(timeout: Duration) -> Self {
        let entries = Vec::new();
        Self { entries, timeout }
    }

    /// Adds a task that no poll requests.
    pub(crate) fn add(&mut self, by: Ran, task: impl Task + 'static) {
        self.push(by, None, Box::new(task));
    }

    /// Adds the leader's task that polls request by this name.
    pub(crate) fn add_requested(&mut self, name: LeaderTask, task: Box<dyn Task>) {
        self.push(Ran::ByLeader, Some(name), task);
    }

    fn push(&mut self, by: Ran, requested_as: Option<LeaderTask>, task: Box<dyn Task>) {
        self.entries.push(Entry {
            by,
            requested_as,
            task,
            due: None,
        });
    }

    /// Returns the time of the next task that every worker runs.
    pub(crate) fn next_of_all(&self) -> Option<Instant> {
        let of_all = self.entries.iter().filter(|entry| entry.by == Ran::ByAll);
        of_all.filter_map(|entry| entry.due).min()
    }

    /// Returns true if a task is due now.
    pub(crate) fn is_due(&self) -> bool {
        let now = Instant::now();
        self.entries.iter().any(|entry| entry.is_due(now))
    }

    /// Makes the tasks of all workers due at `at`, or earlier.
    pub(crate) fn expect_tasks_of_all(&mut self, at: Instant) {
        for entry in &mut self.entries {
            if entry.by == Ran::ByAll {
                entry.due = Some(entry.due.map_or(at, |due| due.min(at)));
            }
        }
    }

    /// Makes the leader's tasks due that a poll requested, and those without a time.
    pub(crate) fn expect_leader_tasks(&mut self, requested: &[LeaderTask]) {
        let now = Instant::now();
        for entry in &mut self.entries {
            let is_requested = entry
                .requested_as
                .is_some_and(|name| requested.contains(&name));
            if entry.by == Ran::ByLeader && (is_requested || entry.due.is_none()) {
                entry.due = Some(entry.due.map_or(now, |due| due.min(now)));
            }
        }
    }

    /// Runs each due task once; the leader's tasks only by the leader. Returns true if a task of all workers had work.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) async fn run_due(&mut self, outages: &Outages, by: Ran) -> Result<bool, Error> {
        let mut worked = false;
        for entry in &mut self.entries {
            if !entry.is_due(Instant::now()) || (entry.by == Ran::ByLeader && by == Ran::ByAll) {
                continue;
            }
            let name = entry.task.name();
            let ran = best_effort(outages, name, self.timeout, entry.task.run_once()).await?;
            // The leader requests its tasks with the next poll.
            let ran = ran.unwrap_or(Outcome {
                worked: false,
                next: (entry.by == Ran::ByAll).then_some(self.timeout),
            });
            entry.due = ran.next.map(|next| Instant::now() + next);
            worked |= ran.worked && entry.by == Ran::ByAll;
        }
        Ok(worked)
    }
}

impl Entry {
    fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts its runs, and returns a fixed time of the next one.
    struct Counted(Arc<AtomicUsize>, Option<Duration>);

    impl Task for Counted {
        fn name(&self) -> &'static str {
            "counted"
        }

        fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let next = self.1;
            Box::pin(async move {
                let worked = true;
                Ok(Outcome { worked, next })
            })
        }
    }

    /// Returns the number of runs of a task when the leader polls five times.
    async fn runs(by: Ran, asks: Ran, next: Option<Duration>, polled: &[LeaderTask]) -> usize {
        let runs = Arc::new(AtomicUsize::new(0));
        let mut tasks = TaskList::new(Duration::from_secs(1));
        let task = Counted(Arc::clone(&runs), next);
        match by {
            Ran::ByLeader => tasks.add_requested(LeaderTask::CheckOrphans, Box::new(task)),
            Ran::ByAll => tasks.add(by, task),
        }
        for _ in 0..5 {
            tasks.expect_leader_tasks(polled);
            let worked = tasks.run_due(&Outages::default(), asks).await.unwrap();
            assert!(!worked, "only tasks of all workers count");
        }
        runs.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn a_task_is_not_run_before_it_is_due() {
        let minute = Some(Duration::from_secs(60));
        assert_eq!(runs(Ran::ByLeader, Ran::ByLeader, minute, &[]).await, 1);
        assert_eq!(runs(Ran::ByLeader, Ran::ByLeader, None, &[]).await, 5);
        let at_once = Some(Duration::ZERO);
        assert_eq!(runs(Ran::ByLeader, Ran::ByLeader, at_once, &[]).await, 5);
        let other = [LeaderTask::ReclaimDead];
        assert_eq!(runs(Ran::ByLeader, Ran::ByLeader, minute, &other).await, 1);
        let requested = [LeaderTask::CheckOrphans];
        assert_eq!(
            runs(Ran::ByLeader, Ran::ByLeader, minute, &requested).await,
            5
        );
    }

    #[tokio::test]
    async fn only_the_leader_runs_its_tasks() {
        assert_eq!(runs(Ran::ByLeader, Ran::ByAll, None, &[]).await, 0);
        // Not requested.
        assert_eq!(runs(Ran::ByAll, Ran::ByLeader, None, &[]).await, 0);
    }
}
