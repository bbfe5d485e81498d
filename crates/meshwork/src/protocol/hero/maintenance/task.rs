//! Tasks, and the list that runs those that are due.

use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_broker::{Error, Outages};
use tokio::time::Instant;

use crate::worker::dedicated_thread::in_turn;

/// A task of maintenance. Its state may be lost: another worker continues.
pub(crate) trait Task: Send {
    /// For logs.
    fn name(&self) -> &'static str;

    /// Runs a bounded part, and returns the time of the next one.
    ///
    /// # Errors
    /// If the server does not take a call; it is due again after a pause.
    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>>;
}

/// Interval of a leader's task that no poll requests. A poll requests it within a second of work for it, so that an
/// idle worker makes few calls.
const UNREQUESTED: Duration = Duration::from_secs(10);

/// Outcome of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// True if there was work.
    pub(crate) worked: bool,
    /// Time until the next run; zero: at once. None: the task runs on request, the leader's with its next poll.
    pub(crate) next: Option<Duration>,
}

impl Outcome {
    /// Runs again at once, or on the next request.
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
    /// The leader, when it polls.
    ByLeader,
    /// Every worker that knows of something to do.
    ByAll,
}

struct Entry {
    by: Ran,
    task: Box<dyn Task>,
    due: Option<Instant>,
}

/// The tasks of one worker, and when each is due.
pub(crate) struct TaskList {
    entries: Vec<Entry>,
    /// The time that a task may take, and the pause after one that failed.
    timeout: Duration,
}

impl TaskList {
    pub(crate) fn new(timeout: Duration) -> Self {
        let entries = Vec::new();
        Self { entries, timeout }
    }

    /// Appends a task; it runs on request.
    pub(crate) fn add(&mut self, by: Ran, task: impl Task + 'static) {
        let task = Box::new(task);
        let due = None;
        self.entries.push(Entry { by, task, due });
    }

    /// Time of the next task that every worker runs.
    pub(crate) fn next_of_all(&self) -> Option<Instant> {
        let of_all = self.entries.iter().filter(|entry| entry.by == Ran::ByAll);
        of_all.filter_map(|entry| entry.due).min()
    }

    /// True if a task is due now.
    pub(crate) fn is_due(&self) -> bool {
        let now = Instant::now();
        self.entries.iter().any(|entry| entry.is_due(now))
    }

    /// The tasks of all workers are due at `at`, or before.
    pub(crate) fn expect_tasks_of_all(&mut self, at: Instant) {
        for entry in &mut self.entries {
            if entry.by == Ran::ByAll {
                entry.due = Some(entry.due.map_or(at, |due| due.min(at)));
            }
        }
    }

    /// Makes the leader's tasks due that a poll requested, and those without a time.
    pub(crate) fn expect_leader_tasks(&mut self, requested: &[String]) {
        let now = Instant::now();
        for entry in &mut self.entries {
            let is_requested = requested.iter().any(|name| name == entry.task.name());
            if entry.by == Ran::ByLeader && (is_requested || entry.due.is_none()) {
                entry.due = Some(entry.due.map_or(now, |due| due.min(now)));
            }
        }
    }

    /// Runs each task once that is due, the leader's only by the leader. Returns whether one that all workers run had
    /// anything to do.
    ///
    /// # Errors
    /// If the connection is lost.
    pub(crate) async fn run_due(&mut self, outages: &Outages, by: Ran) -> Result<bool, Error> {
        let mut worked = false;
        for entry in &mut self.entries {
            if !entry.is_due(Instant::now()) || (entry.by == Ran::ByLeader && by == Ran::ByAll) {
                continue;
            }
            let name = entry.task.name();
            let ran = in_turn(outages, name, self.timeout, entry.task.run_once()).await?;
            // The leader asks for its tasks with the next poll.
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

    /// Counts its runs, and tells when it is due next.
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

    /// Number of runs of a task that five polls of the leader request.
    async fn runs(by: Ran, asks: Ran, next: Option<Duration>, polled: &[String]) -> usize {
        let runs = Arc::new(AtomicUsize::new(0));
        let mut tasks = TaskList::new(Duration::from_secs(1));
        tasks.add(by, Counted(Arc::clone(&runs), next));
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
        let other = ["other".to_owned()];
        assert_eq!(runs(Ran::ByLeader, Ran::ByLeader, minute, &other).await, 1);
        let requested = ["counted".to_owned()];
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
