//! run_now: let a job that waits for its time run at once.

use meshwork_model::job::Job;

use super::word;
use crate::script::Verb;
use crate::{Broker, Error};

/// What became of a job that is to run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunNow {
    /// It stands in its queue, or waits for the turn of its key.
    Queued,
    /// It waits for other jobs, and then for no time any more.
    Waiting,
    /// It waits for no time; nothing was changed.
    Ready,
    /// It runs.
    Running,
    /// It has ended.
    Ended,
    /// There is no such job.
    Missing,
}

impl Broker {
    /// Puts a job that waits for its time, or for its next run after a failure, at the end of its queue.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
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
