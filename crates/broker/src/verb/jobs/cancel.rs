//! cancel: cancels a job.

use meshwork_macros::boxed;
use std::collections::HashSet;

use meshwork_model::job::Job;
use meshwork_model::name::ScriptType;
use meshwork_model::state::Status;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::word;

/// The result of cancelling a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The job ended in error.
    Cancelled,
    /// A worker runs the job and was notified. The job ends in error when the worker has stopped it.
    Stopping,
    /// The job had ended already.
    Ended,
    /// The job does not exist.
    Missing,
}

/// Greatest number of instances that are notified. Each request is a list of its own.
const MOST_ASKED: usize = 100;

impl Broker {
    /// Cancels a job. A waiting job becomes `error` with `reason` (Hero: `stopped`) at once. The worker of a running
    /// job is notified through the control queue of its type. For a job without a lease there are further requests:
    /// on the control queue of its instance and, if the record names a worker, on Hero's stop queue. Requests that no
    /// worker takes expire after a minute. With `force` a running job ends at once, and its worker notices at the
    /// next renewal.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn cancel(&self, job: &Job, reason: &str, force: bool) -> Result<Cancelled, Error> {
        self.cancel_at(job, &[], reason, force).await
    }

    /// Cancels a job like [`Broker::cancel`]. For a job without a lease, all registered foreign workers are notified
    /// too, each through the control queue of its instance. Finding them requires a scan of all keys.
    ///
    /// # Errors
    /// The server refuses a call; repeat it then.
    #[boxed]
    pub async fn cancel_anywhere(
        &self,
        job: &Job,
        reason: &str,
        force: bool,
    ) -> Result<Cancelled, Error> {
        let runs = job.status() == Some(Status::Started);
        let instances = match runs && !force && !job.leased {
            true => self.foreign_instances(&self.type_of(job)).await?,
            false => Vec::new(),
        };
        self.cancel_at(job, &instances, reason, force).await
    }

    /// Returns the control queues of a type's foreign instances that are alive, at most [`MOST_ASKED`].
    async fn foreign_instances(&self, script_type: &ScriptType) -> Result<Vec<String>, Error> {
        let of_type = format!("{script_type}:");
        let ours = self.live_workers(self.now().await?, &of_type).await?;
        let ours: HashSet<_> = ours.into_iter().map(|(name, _)| name).collect();
        let (mut found, mut from) = (HashSet::new(), 0);
        loop {
            let page = self.workers(from).await?;
            let names = page.workers.into_iter().map(|(name, _)| name);
            found.extend(names.filter(|name| name.starts_with(&of_type) && !ours.contains(name)));
            from = page.next;
            if from == 0 || found.len() >= MOST_ASKED {
                break;
            }
        }
        let queue = |name: String| {
            let mut parts = name.splitn(3, ':').skip(1);
            let (group, instance) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            let keys = &self.keys;
            Some(keys.control_queue_instance(script_type, &group, &instance))
        };
        Ok(found
            .into_iter()
            .filter_map(queue)
            .take(MOST_ASKED)
            .collect())
    }

    async fn cancel_at(
        &self,
        job: &Job,
        instances: &[String],
        reason: &str,
        force: bool,
    ) -> Result<Cancelled, Error> {
        let mut call = self
            .change(Verb::Cancel, job)
            .key(self.keys.control_queue_type(&self.type_of(job)))
            .arg(reason)
            .arg(u8::from(force));
        for queue in instances {
            call.push_key(queue);
        }
        let answer = call.run(&self.conn).await?;
        let known = [
            ("cancelled", Cancelled::Cancelled),
            ("stopping", Cancelled::Stopping),
            ("ended", Cancelled::Ended),
            ("missing", Cancelled::Missing),
        ];
        word("cancel", answer, &known)
    }
}
