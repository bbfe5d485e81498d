//! set_job: changes the priority, the due time and the timeout of a job that waits.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::job::Job;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::route::Priority;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::word;

/// New values of a job that waits. `None` keeps a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobChange {
    /// Priority.
    pub priority: Option<Priority>,
    /// Time from now until the job may start; zero: at once.
    pub delay: Option<Duration>,
    /// Longest time of one attempt, in whole seconds.
    pub timeout: Option<Duration>,
}

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetJob {
    /// The job has the new values. If its priority or its due time was given, it is at the end of its queue.
    Set,
    /// A worker has taken the job from its queue, and is about to run it. Nothing was changed.
    Taken,
    /// The queue of the job is too long to search. Nothing was changed.
    Long,
    /// The job runs.
    Running,
    /// The job has ended.
    Ended,
    /// The job does not exist.
    Missing,
}

impl Broker {
    /// Changes a job that waits.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn set_job(&self, job: &Job, change: &JobChange) -> Result<SetJob, Error> {
        let queue = self.queue_of(job);
        let base = JobKeys::without_priority(&queue);
        let target = match change.priority {
            None => queue.clone(),
            Some(Priority::Normal) => base.to_owned(),
            Some(priority) => JobKeys::work_queue_priority(base, priority),
        };
        let number = |number: Option<u128>| number.map_or_else(String::new, |n| n.to_string());
        let call = self
            .change(Verb::SetJob, job)
            .key(target)
            .arg(change.priority.map_or("", Priority::as_str))
            .arg(number(change.delay.map(|delay| delay.as_millis())))
            .arg(number(
                change.timeout.map(|timeout| timeout.as_secs().into()),
            ));
        let known = [
            ("set", SetJob::Set),
            ("taken", SetJob::Taken),
            ("long", SetJob::Long),
            ("running", SetJob::Running),
            ("ended", SetJob::Ended),
            ("missing", SetJob::Missing),
        ];
        word("set_job", call.run(&self.conn).await?, &known)
    }
}
