//! cancel: stop a job.

use std::collections::HashSet;

use meshwork_model::job::Job;
use meshwork_model::name::ScriptType;
use meshwork_model::state::Status;

use super::word;
use crate::script::Verb;
use crate::{Broker, Error};

/// What became of a job that was to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It ended in error.
    Cancelled,
    /// A worker runs it, and is told; when it has stopped the run, the job ends in error.
    Stopping,
    /// It had ended already.
    Ended,
    /// There is no such job.
    Missing,
}

/// Instances of a type that are asked to stop a job: each request is a list of its own.
const MOST_ASKED: usize = 100;

impl Broker {
    /// Stops a job. One that waits becomes `error` with `reason` (Hero: `stopped`) at once. Of one that
    /// runs, its worker is told through the control queue of its type. If it is run without a lease, the
    /// control queue of the instance it was sent to and, where it names a worker, the stop queue of Hero tell
    /// it too. Requests that nobody takes are gone after a minute. With `force` a running job ends at once, and
    /// its worker learns so when it renews.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn cancel(&self, job: &Job, reason: &str, force: bool) -> Result<Cancelled, Error> {
        self.cancel_at(job, &[], reason, force).await
    }

    /// As [`Broker::cancel`]; of a job that is run without a lease, the workers of other makes whose presence is
    /// told are asked too, each through the control queue of its instance. Finding them costs a walk over all
    /// keys.
    ///
    /// # Errors
    /// If the server does not take a call; repeat it then.
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

    /// The control queues of the instances of a type that are there and not ours, [`MOST_ASKED`] at most.
    async fn foreign_instances(&self, script_type: &ScriptType) -> Result<Vec<String>, Error> {
        let of_type = format!("{script_type}:");
        let ours = self.live_actors(self.now().await?, &of_type).await?;
        let ours: HashSet<_> = ours.into_iter().map(|(name, _)| name).collect();
        let (mut found, mut from) = (HashSet::new(), 0);
        loop {
            let page = self.actors(from).await?;
            let names = page.actors.into_iter().map(|(name, _)| name);
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
