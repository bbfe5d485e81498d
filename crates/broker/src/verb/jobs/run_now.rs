//! run_now: queues a delayed job at once.

use meshwork_macros::boxed;
use meshwork_model::job::Job;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::word;

/// The result for a job that is to run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunNow {
    /// The job is in its queue, or in the backlog of its key.
    Queued,
    /// The job waits for other jobs, and is no longer delayed.
    Waiting,
    /// The job was not delayed; nothing was changed.
    Ready,
    /// The job runs.
    Running,
    /// The job has ended.
    Ended,
    /// The job does not exist.
    Missing,
}

impl Broker {
    /// Moves a delayed job, or one that waits for a retry, to the end of its queue.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn run_now(&self, job: &Job) -> Result<RunNow, Error> {
        let answer = self.change(Verb::RunNow, job).run(&self.conn).await?;
        let known = [
            ("queued", RunNow::Queued),
            ("waiting", RunNow::Waiting),
            ("ready", RunNow::Ready),
            ("running", RunNow::Running),
            ("ended", RunNow::Ended),
            ("missing", RunNow::Missing),
        ];
        word("run_now", answer, &known)
    }
}
