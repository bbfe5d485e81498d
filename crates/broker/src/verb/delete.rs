//! delete: forget a job.

use std::collections::BTreeSet;

use meshwork_model::job::Job;
use meshwork_model::route::Listen;

use super::word;
use crate::script::Verb;
use crate::{Broker, Error};

/// What became of a job that was to be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// Its record and its reply are gone, and it will not run.
    Deleted,
    /// A worker holds it; stop it first.
    Running,
    /// There is no such job.
    Missing,
}

impl Broker {
    /// Deletes a job that does not run. The id of a job of another client is taken off all queues that workers of its
    /// type listen to, and off those that a walk has met ([`Broker::sweep`]), each up to 10,000 ids long.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn delete(&self, job: &Job) -> Result<Deleted, Error> {
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

    /// Where the id of a job of another client may stand.
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
