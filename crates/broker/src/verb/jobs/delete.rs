//! delete: deletes a job.

use meshwork_macros::boxed;
use std::collections::BTreeSet;

use meshwork_model::job::Job;
use meshwork_model::keys::context::FlowId;
use meshwork_model::route::Listen;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::word;

/// The result of deleting a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// Its record and its reply are deleted, and it will not run.
    Deleted,
    /// A worker runs the job; cancel it first.
    Running,
    /// The job does not exist.
    Missing,
    /// The job belongs to a flow, which is deleted as a whole.
    OfFlow,
}

impl Broker {
    /// Deletes a job that does not run. The id of a foreign client's job is removed from all queues that workers of
    /// its type claim from, and from those that a scan has found ([`Broker::scan_orphans`]). Each is searched up to 10,000
    /// ids.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn delete(&self, job: &Job) -> Result<Deleted, Error> {
        if self.is_of_flow(job).await? {
            return Ok(Deleted::OfFlow);
        }
        self.delete_any(job).await
    }

    /// Deletes a job, also one of a flow.
    pub(crate) async fn delete_any(&self, job: &Job) -> Result<Deleted, Error> {
        let mut call = self.change(Verb::Delete, job);
        if job.foreign {
            for list in self.lists_of(job).await? {
                call.push_key(list);
            }
        }
        let answer = call.run(&self.conn).await?;
        let known = [
            ("deleted", Deleted::Deleted),
            ("running", Deleted::Running),
            ("missing", Deleted::Missing),
        ];
        word("delete", answer, &known)
    }

    /// Returns true if the job is part of a flow that is still there.
    pub(crate) async fn is_of_flow(&self, job: &Job) -> Result<bool, Error> {
        let (Some(keys), Some(flow)) = (self.keys.context(), job.flow) else {
            return Ok(false);
        };
        let mut cmd = redis::cmd("EXISTS");
        cmd.arg(keys.flow(FlowId(flow)));
        self.ask("flow_read", &cmd).await
    }

    /// Returns the lists that may have the id of a foreign client's job.
    async fn lists_of(&self, job: &Job) -> Result<BTreeSet<String>, Error> {
        let listen = job.route().map(|route| Listen {
            script_type: route.script_type,
            group: route.group.unwrap_or_default(),
            instance: route.instance,
            routes: None,
        });
        let of_type = listen.map(|listen| listen.queues(&self.keys));
        let mut lists: BTreeSet<_> = of_type.into_iter().flatten().flatten().collect();
        lists.extend(self.known_queues().await?);
        Ok(lists)
    }
}
