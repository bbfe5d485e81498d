//! alert: sets, removes and reads the alert of a queue.

use meshwork_macros::boxed;
use meshwork_model::job::NewJob;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::queue::{InvalidSetting, check_alert};
use meshwork_model::stored;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::text;

/// Name of the setting that claims read.
const SETTING: &str = "alert";

/// The alert of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueAlert {
    /// The queue, without its priority.
    pub queue: String,
    /// Failures in a row after which an alert job is enqueued.
    pub after: u32,
    /// Script type of the alert job.
    pub script_type: String,
    /// Queue of the alert job.
    pub target: String,
    /// Failures in a row so far.
    pub failures: u64,
    /// True if the alert job for these failures was enqueued.
    pub alerted: bool,
    /// The job that failed last.
    pub failed_job: Option<String>,
    /// The error of that job.
    pub error: Option<String>,
}

impl Broker {
    /// Enqueues `job` after `after` failures in a row of jobs of `queue`, once per series of failures, and again after
    /// the first success that follows. Its ids are the id of `job`, a dot and a number. Replaces an earlier alert of
    /// the queue, and begins to count anew. Jobs that workers have claimed before do not count.
    ///
    /// # Errors
    /// The number or the job is not valid, or the queue belongs to a context: nothing was changed. If the server
    /// refuses the call, repeat it.
    #[boxed]
    pub async fn set_alert(&self, queue: &str, after: u32, job: &NewJob) -> Result<(), Error> {
        job.check()?;
        check_alert(after, job)?;
        if self.keys.context().is_some() {
            return Err(InvalidSetting::alert_in_context().into());
        }
        let mut call = self.scripts.call(Verb::Alert);
        call.push_arg(JobKeys::without_priority(queue));
        call.push_arg(SETTING);
        call.push_arg(after);
        call.push_arg(job.id.as_str());
        call.push_arg(job.route.queue(&self.keys));
        call.push_arg("script_type");
        call.push_arg(job.route.script_type.as_str());
        let names = stored::field_lists(&self.keys).values.iter().copied();
        let values = names.zip(stored::values(&self.keys, job));
        for (name, value) in values.chain(stored::options(&self.keys, job)) {
            call.push_arg(name);
            call.push_arg(value);
        }
        let _: i64 = call.run(&self.conn).await?;
        Ok(())
    }

    /// Removes the alert of a queue. Returns whether there was one.
    ///
    /// # Errors
    /// If the server refuses the call, repeat it.
    #[boxed]
    pub async fn remove_alert(&self, queue: &str) -> Result<bool, Error> {
        let mut call = self.scripts.call(Verb::Alert);
        for arg in [JobKeys::without_priority(queue), SETTING, "", "", ""] {
            call.push_arg(arg);
        }
        let had: i64 = call.run(&self.conn).await?;
        Ok(had == 1)
    }

    /// Returns the alert of a queue, if it has one.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn alert(&self, queue: &str) -> Result<Option<QueueAlert>, Error> {
        let queue = JobKeys::without_priority(queue);
        let mut get = redis::cmd("HMGET");
        get.arg(self.keys.alert(queue));
        let names = [
            "after",
            "job script_type",
            "queue",
            "failures",
            "alerted",
            "failed",
            "error",
        ];
        for name in names {
            get.arg(name);
        }
        let values: Vec<Option<Vec<u8>>> = self.ask("alert", &get).await?;
        let mut values = values.into_iter().map(|value| value.map(text));
        let mut next = || values.next().flatten();
        let Some(after) = next().and_then(|after| after.parse().ok()) else {
            return Ok(None);
        };
        Ok(Some(QueueAlert {
            queue: queue.to_owned(),
            after,
            script_type: next().unwrap_or_default(),
            target: next().unwrap_or_default(),
            failures: next().and_then(|n| n.parse().ok()).unwrap_or_default(),
            alerted: next().is_some(),
            failed_job: next(),
            error: next(),
        }))
    }
}
